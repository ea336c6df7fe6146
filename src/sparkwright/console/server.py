"""The process that serves the console on a unix socket, to which the gateway sends what is below /console."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from sparkwright.adapters.unix_socket import ServiceSocket
from sparkwright.adapters.watchdog import watched_by_systemd
from sparkwright.adapters.watched import Watched
from sparkwright.console import actions, chat, connect, incidents, keys, logs, pages, requests, runs, usage
from sparkwright.console.board import DeploymentWatch, ReportBoard
from sparkwright.console.feed import Feed
from sparkwright.console.figures import without_controls
from sparkwright.console.forms import (
    Operated,
    Shown,
    allowed,
    failed,
    fields,
    for_operators,
    html_response,
    same_origin,
)
from sparkwright.console.overview import day_strips, overview
from sparkwright.console.requests import RequestFilter
from sparkwright.console.sessions import Sessions, Visitor
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.errors import SparkwrightError
from sparkwright.domain.history import RequestRecord
from sparkwright.domain.live import SERVING
from sparkwright.domain.values import asdict
from sparkwright.gateway.caddy import CONSOLE, CONSOLE_PATH
from sparkwright.gateway.keys import FRONT, FrontSetting, Key, Keys, parse
from sparkwright.report.markup import Html

_PATIENCE = 2.0
_VIEWERS = _READERS = 200
GIVEN, _CERTIFICATE = "given.crt", 64 * 1024
_SAME_ROWS, _FILTERS = 1.5, 50  # seconds for which all who filter alike get the same; how many are kept
_CONNECTIONS = 900  # below the 1,024 files that a process may have by default


class Console:
    """home: the gateway's own folder, among those of the supervisors."""

    def __init__(self, home: Path) -> None:
        setting = from_json(FrontSetting, (home / "door" / FRONT).read_bytes())
        self.keys = Watched(Path(setting.keys), parse, Keys(), time.monotonic, _PATIENCE)
        self.sessions = Sessions(home / "door", str(setting.port), lambda: self.keys.value, time.time)
        self.board = ReportBoard(home.parents[1])
        self.feed = Feed(self.board, lambda: self.keys.value)
        self.operations = actions.Operations(self.board)
        self._followers: dict[str, logs.Follower] = {}
        self._rows: dict[
            tuple[str, RequestFilter], tuple[float, Html]
        ] = {}  # by what is seen and filtered: when it was made

    @property
    def routes(self) -> list[Route]:
        shown = {
            "/": self.overview,
            "/live": self.live,
            "/days": self.days,
            "/requests": self.requests,
            "/requests/rows": self.request_rows,
            "/incidents": self.incidents,
            "/incidents/{number:int}": self.incident,
            "/connect": self.connect,
            "/connect/{name}": self.connect,
            "/ca.crt": self.authority,
            "/usage": self.usage,
            "/runs": self.runs,
            "/runs/{name}": self.run_report,
            "/logs": self.logs,
            "/logs/{name}": self.logs,
            "/logs/{name}/live": self.log_lines,
            "/logs/{name}/download": self.log_file,
        }
        operated: dict[str, Operated] = {
            **{f"/{verb}/{{name}}": partial(self.operate, verb) for verb in actions.VERBS},
            "/chat": self.chat,
            "/chat/{name}": self.chat,
            "/chat/{name}/say": self.send,
            "/keys": self.list_keys,
            "/keys/add": self.add_key,
            "/keys/limit": self.limit_key,
            "/keys/revoke": self.revoke_key,
        }
        return [
            Route(CONSOLE_PATH, RedirectResponse(f"{CONSOLE_PATH}/", 308)),
            Route(f"{CONSOLE_PATH}/login", self.login, methods=["GET", "POST"]),
            Route(f"{CONSOLE_PATH}/logout", self.logout, methods=["POST"]),
            Route(f"{CONSOLE_PATH}/assets/{{name}}", self.asset),
            *(Route(f"{CONSOLE_PATH}{path}", self._for_visitors(show)) for path, show in shown.items()),
            *(
                Route(f"{CONSOLE_PATH}{path}", self._for_visitors(for_operators(do)), methods=["GET", "POST"])
                for path, do in operated.items()
            ),
        ]

    def visitor(self, request: Request) -> Visitor | None:
        return self.sessions.visitor(request.cookies.get(self.sessions.cookie, ""))

    def _for_visitors(self, show: Shown) -> Callable[[Request], Awaitable[Response]]:
        async def shown(request: Request) -> Response:
            visitor = self.visitor(request)
            if visitor is None:
                return RedirectResponse(f"{CONSOLE_PATH}/login", 303, pages.HEADERS)
            return await show(request, visitor)

        return shown

    async def login(self, request: Request) -> Response:
        if request.method != "POST":
            return html_response(pages.login_page(gone="gone" in request.query_params))
        if not same_origin(request):
            return html_response(pages.login_page("This form came from another page; sign in here."), 403)
        value, why = self.sessions.begin((await fields(request)).get("key", ""))
        if not value:
            return html_response(pages.login_page(why), 401)
        answer = RedirectResponse(f"{CONSOLE_PATH}/", 303, pages.HEADERS)
        secure = request.headers.get("x-forwarded-proto") != "http"
        answer.set_cookie(
            self.sessions.cookie, value, path=CONSOLE_PATH, secure=secure, httponly=True, samesite="strict"
        )
        return answer

    async def logout(self, request: Request) -> Response:
        visitor = self.visitor(request)
        if visitor is None or not allowed(request, visitor, await fields(request)):
            return html_response(
                pages.message("Not signed out", visitor, "This form came from another page or session."), 403
            )
        self.sessions.end(request.cookies.get(self.sessions.cookie, ""))
        answer = RedirectResponse(f"{CONSOLE_PATH}/login", 303, pages.HEADERS)
        answer.delete_cookie(self.sessions.cookie, path=CONSOLE_PATH, httponly=True, samesite="strict")
        return answer

    async def asset(self, request: Request) -> Response:
        found = pages.ASSETS.get(request.path_params["name"])
        if found is None:
            return Response(status_code=404, headers=pages.HEADERS)
        lasting = {**pages.HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
        return Response(found[0], media_type=found[1], headers=lasting)

    async def overview(self, request: Request, visitor: Visitor) -> Response:
        self.board.refresh()
        past = await asyncio.to_thread(day_strips, self.board, visitor.key.deployment)
        body = pages.region(overview(self.board, visitor.key.deployment, visitor.operates, past))
        return html_response(pages.whole_page("Overview", visitor, body, f"{CONSOLE_PATH}/live", ""))

    async def days(self, request: Request, visitor: Visitor) -> Response:
        self.board.refresh()
        return html_response(await asyncio.to_thread(day_strips, self.board, visitor.key.deployment))

    async def requests(self, request: Request, visitor: Visitor) -> Response:
        found, filters = await self._requests(request, visitor)
        body = requests.requests_page(found, filters, urlencode(asdict(filters)), self.board.now())
        return html_response(pages.whole_page("Requests", visitor, body, at="requests"))

    async def request_rows(self, request: Request, visitor: Visitor) -> Response:
        """The table alone, for the page that asks again."""
        found, filters = await self._requests(request, visitor)
        now, key = self.board.now(), (visitor.key.deployment, filters)
        made, page = self._rows.get(key, (0.0, Html()))
        if abs(now - made) >= _SAME_ROWS:
            page = without_controls(requests.requests_table(found, filters, now))
            kept = [one for one in self._rows.items() if one[0] != key][:_FILTERS]
            self._rows = dict([(key, (now, page)), *kept])
        return html_response(page)

    async def _requests(self, request: Request, visitor: Visitor) -> tuple[tuple[RequestRecord, ...], RequestFilter]:
        self.board.refresh()
        found = await asyncio.to_thread(self.board.requests, visitor.key.deployment)
        return found, requests.wanted(request.query_params)

    async def live(self, request: Request, visitor: Visitor) -> Response:
        """Server-sent events: the live part of the page whenever it changes, until the key is revoked."""
        if self.feed.viewers >= _VIEWERS:
            return Response("too many pages are open", 503, {**pages.HEADERS, "Retry-After": "30"})
        events = self.feed.events(lambda: self.visitor(request))
        return StreamingResponse(events, media_type="text/event-stream", headers=pages.HEADERS)

    async def incidents(self, request: Request, visitor: Visitor) -> Response:
        found = self.board.incidents(visitor.key.deployment)
        return html_response(
            pages.whole_page("Incidents", visitor, incidents.listing(found, self.board.now()), at="incidents")
        )

    async def incident(self, request: Request, visitor: Visitor) -> Response:
        one = self.board.folders.read(request.path_params["number"])
        if one is None or visitor.key.deployment not in ("", one.deployment):
            text = "This head node has no incident of that number."
            return html_response(pages.message("No such incident", visitor, text), 404)
        shown = incidents.incident_page(one, self.board.now(), self.board.folders.diagnosis(one.number))
        return html_response(pages.whole_page(f"Incident {one.number}", visitor, shown, at="incidents"))

    async def connect(self, request: Request, visitor: Visitor) -> Response:
        watch = self._watch(request, visitor)
        if watch is None:
            return html_response(
                pages.message("No such deployment", visitor, "Nothing of this name is supervised here."), 404
            )
        names = [one.name for one in self.board.visible(visitor.key.deployment)]
        where = connect.Where(watch, connect.folder_of(request.query_params))
        return html_response(pages.whole_page("Connect", visitor, connect.connect_page(names, where), at="connect"))

    async def authority(self, request: Request, visitor: Visitor) -> Response:
        """The certificate that clients of this gateway have to trust; it is public."""
        try:
            given = await asyncio.to_thread((self.board.state / "door" / GIVEN).read_bytes)
        except OSError:
            return html_response(
                pages.message("No certificate", visitor, "This gateway has no authority of its own."), 404
            )
        return Response(given[:_CERTIFICATE], 200, pages.HEADERS, "application/x-x509-ca-cert")

    async def usage(self, request: Request, visitor: Visitor) -> Response:
        asked = request.query_params.get("days", "")
        days = next((span for span in usage.SPANS if str(span) == asked), usage.SPANS[0])
        self.board.refresh()
        rows = await asyncio.to_thread(self.board.used, visitor.key.deployment, days)
        return html_response(pages.whole_page("Usage", visitor, usage.usage_page(rows, days), at="usage"))

    async def runs(self, request: Request, visitor: Visitor) -> Response:
        found = await asyncio.to_thread(runs.listed, self.board.state, self._models(visitor))
        return html_response(pages.whole_page("Runs", visitor, runs.runs_page(found, self.board.now()), at="runs"))

    async def run_report(self, request: Request, visitor: Visitor) -> Response:
        name, models = request.path_params["name"], self._models(visitor)
        page = await asyncio.to_thread(runs.report, self.board.state, name, models)
        if page is None:
            return html_response(
                pages.message("No such report", visitor, "No report of this name is on this head node."), 404
            )
        return Response(page, 200, pages.HEADERS | {"Content-Security-Policy": runs.POLICY}, "text/html; charset=utf-8")

    def _models(self, visitor: Visitor) -> set[str] | None:
        """Models whose reports the visitor may see, None for all."""
        self.board.refresh()
        return self.board.models(visitor.key.deployment) if visitor.key.deployment else None

    def _watch(self, request: Request, visitor: Visitor) -> DeploymentWatch | None:
        """The deployment that the path names, else of those that the visitor's key opens one that serves."""
        self.board.refresh()
        seen, name = self.board.visible(visitor.key.deployment), request.path_params.get("name")
        serving = [watch for watch in seen if watch.live and watch.live.phase in SERVING]
        return next((watch for watch in (*serving, *seen) if name in (None, watch.name)), None)

    async def logs(self, request: Request, visitor: Visitor) -> Response:
        watch = self._watch(request, visitor)
        if watch is None:
            return html_response(
                pages.message("No such deployment", visitor, "Nothing of this name is supervised here."), 404
            )
        follower = self._followers.setdefault(watch.name, logs.Follower(watch))
        lines, names = await follower.first(), tuple(one.name for one in self.board.visible(visitor.key.deployment))
        after = lines[-1].number if lines else 0
        body = logs.logs_page(names, watch.name, lines, logs.filter_of(request.query_params))
        return html_response(
            pages.whole_page("Logs", visitor, body, f"{CONSOLE_PATH}/logs/{watch.name}/live?after={after}", "logs")
        )

    async def log_file(self, request: Request, visitor: Visitor) -> Response:
        """The lines that the page has, as text."""
        watch = self._watch(request, visitor)
        if watch is None:
            return Response(status_code=404, headers=pages.HEADERS)
        lines = await self._followers.setdefault(watch.name, logs.Follower(watch)).first()
        headers = pages.HEADERS | {"Content-Disposition": f'attachment; filename="{watch.name}.log"'}
        return Response(logs.text_of(lines), 200, headers, "text/plain; charset=utf-8")

    async def log_lines(self, request: Request, visitor: Visitor) -> Response:
        watch = self._watch(request, visitor)
        if watch is None:
            return Response(status_code=404, headers=pages.HEADERS)
        if sum(one.readers for one in self._followers.values()) >= _READERS:
            return Response("too many pages are open", 503, {**pages.HEADERS, "Retry-After": "30"})
        follower = self._followers.setdefault(watch.name, logs.Follower(watch))
        said = request.headers.get("last-event-id") or request.query_params.get("after", "")
        after = int(said) if said.isascii() and said.isdigit() else 0
        events = follower.events(after, lambda: self.visitor(request))
        return StreamingResponse(events, media_type="text/event-stream", headers=pages.HEADERS)

    async def chat(self, request: Request, visitor: Visitor, given: dict[str, str]) -> Response:
        """A form without a script gets the whole answer at once."""
        watch, key = self._watch(request, visitor), self.sessions.secret(visitor)
        if watch is None:
            return html_response(
                pages.message("No such deployment", visitor, "Nothing of this name is supervised here."), 404
            )
        turns: list[Html] = []
        if given.get("prompt", "").strip() and key:
            said = [one async for one in chat.answer(watch, key, chat.messages_of(given))]
            text = "".join(text for kind, text in said if kind == "text") or said[-1][1]
            turns = [chat.chat_turn("you", given["prompt"]), chat.chat_turn(watch.name, text)]
        body = chat.chat_page(self.board.visible(visitor.key.deployment), watch, visitor, key is not None, turns)
        return html_response(pages.whole_page("Chat", visitor, body, at="chat"))

    async def send(self, request: Request, visitor: Visitor, given: dict[str, str]) -> Response:
        """Lines of JSON as the answer comes."""
        watch, key = self._watch(request, visitor), self.sessions.secret(visitor)
        if request.method != "POST" or watch is None or key is None:
            return Response("sign in again to chat", 409, pages.HEADERS)
        try:
            said = chat.answer(watch, key, chat.messages_of(given))
        except Unreadable as error:
            return Response(str(error), 400, pages.HEADERS)
        lines = (json.dumps(one) + "\n" async for one in chat.with_signs_of_life(said))
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=pages.HEADERS)

    async def operate(self, verb: str, request: Request, visitor: Visitor, given: dict[str, str]) -> Response:
        watch, only = self._watch(request, visitor), visitor.key.deployment
        if watch is None:
            return html_response(
                pages.message("No such deployment", visitor, "Nothing of this name is supervised here."), 404
            )
        watches = self.board.visible(only)
        to = given.get("to", "") or request.query_params.get("to", "")
        other = next((one for one in actions.choices(watch, watches) if verb == "switch" and one.name == to), None)
        operation = actions.Operation(verb, watch, watches, other)
        posted = request.method == "POST" and operation.chosen
        if posted and self.operations.begin(operation, visitor):
            return RedirectResponse(f"{CONSOLE_PATH}/", 303, pages.HEADERS)
        takes = await actions.outlook_of(operation, visitor)
        return html_response(
            pages.whole_page(operation.title, visitor, actions.plan(operation, visitor, takes, busy=posted))
        )

    async def list_keys(self, request: Request, visitor: Visitor, given: dict[str, str]) -> Response:
        return self._keys_page(visitor)

    def _keys_page(self, visitor: Visitor, said: str = "", fresh: str = "", status: int = 200) -> Response:
        names = [one.name for one in self.board.visible(visitor.key.deployment)]
        shown = keys.keys_page(self._known_keys(visitor), visitor, names, said, fresh)
        return html_response(pages.whole_page("Keys", visitor, shown, at="keys"), status)

    def _known_keys(self, visitor: Visitor) -> list[Key]:
        """The keys that the visitor may see: a key for one deployment sees the keys for that one."""
        only = visitor.key.deployment
        return [key for key in self.keys.value.keys if only in ("", key.deployment)]

    async def add_key(self, request: Request, visitor: Visitor, given: dict[str, str]) -> Response:
        watch = next(iter(self.board.visible(visitor.key.deployment)), None)
        if request.method != "POST" or watch is None:
            return self._keys_page(visitor)
        try:
            fresh = await keys.add_key(watch, visitor, keys.wanted(given, visitor, tuple(self.board.watches)))
        except SparkwrightError as error:
            return self._keys_page(visitor, error.message, status=400)
        return self._keys_page(visitor, fresh=fresh)

    async def limit_key(self, request: Request, visitor: Visitor, given: dict[str, str]) -> Response:
        watch = next(iter(self.board.visible(visitor.key.deployment)), None)
        name = given.get("name", "") or request.query_params.get("name", "")
        # A limit is of a name: a visitor who does not see all keys of that name changes none.
        mine = [key for key in self._known_keys(visitor) if key.name == name]
        if watch is None or not mine or len(mine) != sum(key.name == name for key in self.keys.value.keys):
            return self._keys_page(visitor, f"There is no key {name[:80]} whose limits you can set.", status=404)
        if request.method != "POST":
            return html_response(pages.whole_page("Limits", visitor, keys.limits_form(mine[0], visitor), at="keys"))
        try:
            await keys.limit_key(watch, visitor, name, keys.limits_of(given))
        except SparkwrightError as error:
            return self._keys_page(visitor, error.message, status=400)
        return RedirectResponse(f"{CONSOLE_PATH}/keys", 303, pages.HEADERS)

    async def revoke_key(self, request: Request, visitor: Visitor, given: dict[str, str]) -> Response:
        watch = next(iter(self.board.visible(visitor.key.deployment)), None)
        name, only = given.get("name", ""), visitor.key.deployment
        if request.method != "POST" or watch is None:
            return self._keys_page(visitor)
        if given.get("sure") != "yes":
            return html_response(
                pages.whole_page("Revoke", visitor, keys.revoke_plan(name, given.get("deployment", ""), visitor))
            )
        try:
            await keys.revoke_key(watch, visitor, name, only or given.get("deployment", ""))
        except SparkwrightError as error:
            return self._keys_page(visitor, error.message, status=400)
        return RedirectResponse(f"{CONSOLE_PATH}/keys", 303, pages.HEADERS)


async def run(home: Path) -> None:
    console = Console(home)
    console.feed.look()  # before it says that nothing is supervised
    watching = asyncio.create_task(console.feed.run())
    config = uvicorn.Config(
        Starlette(routes=console.routes, exception_handlers={HTTPException: partial(failed, console.visitor)}),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        limit_concurrency=_CONNECTIONS,
    )
    own, server = ServiceSocket(home / "door", CONSOLE), uvicorn.Server(config)
    lost = asyncio.create_task(_end_when_lost(own, server))
    try:
        with closing(own.listener) as listener:
            await server.serve(sockets=[listener])
    finally:
        watching.cancel()
        lost.cancel()


async def _end_when_lost(own: ServiceSocket, server: uvicorn.Server) -> None:
    """Ends the process once its socket is removed: systemd starts it again, with a new one."""
    await own.wait_until_lost()
    server.should_exit = True


def main(home: Path) -> int:
    asyncio.run(watched_by_systemd(run(home)))
    return 0
