"""The decision on a request: let it through, hold it for a moment, or refuse it, in the form that OpenAI's clients
understand."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from math import ceil

from sparkwright.domain.codec import encodable
from sparkwright.domain.live import STALE, DeploymentState, Live, phase_text
from sparkwright.domain.units import MIB, duration
from sparkwright.domain.values import dataclass

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class GatewayAnswer:
    """retry_after: whole seconds, 0 for none."""

    status: int
    kind: str
    code: str
    message: str
    retry_after: int = 0

    @property
    def body(self) -> str:
        error = {"message": self.message, "type": self.kind, "param": None, "code": self.code}
        return encodable(json.dumps({"error": error}, ensure_ascii=False))

    @property
    def event(self) -> str:
        """The last event of a stream that has begun: the error that OpenAI's and Anthropic's clients raise."""
        return json.dumps({"type": "error", **json.loads(self.body)})

    @property
    def headers(self) -> dict[str, str]:
        """The headers without the length. A refused client need not send the rest of its body."""
        found = {"Content-Type": JSON, "Cache-Control": "no-store", "Access-Control-Allow-Origin": "*"}
        if self.retry_after:
            found["Retry-After"] = str(self.retry_after)
        if self.status == 401:
            found["WWW-Authenticate"] = "Bearer"
        return found


def invalid(status: int, code: str, message: str) -> GatewayAnswer:
    return GatewayAnswer(status, "invalid_request_error", code, message)


def key_missing(shown: bool) -> GatewayAnswer:
    problem = "This API key is not known here or was revoked." if shown else "No API key was given."
    how = "Send `Authorization: Bearer KEY`; `sparkwright keys add NAME` makes one."
    return invalid(401, "invalid_api_key", f"{problem} {how}")


NO_SUCH_PATH = invalid(404, "unknown_url", "This address serves the OpenAI API below /v1/ only.")


def no_such_route(asked: str) -> GatewayAnswer:
    """asked: method and path."""
    problem = f"{asked[:100]} is no route of this deployment."
    return invalid(404, "unknown_url", f"{problem} `serving.gateway.routes` in its recipe adds one.")


UNKNOWN_MODEL = "model_not_found"


def unknown_model(name: str, models: Iterable[str]) -> GatewayAnswer:
    """models: that the client's key opens."""
    serves = ", ".join(dict.fromkeys(models)) or "none"
    return invalid(404, UNKNOWN_MODEL, f"No deployment here serves the model {name[:100]!r}. Models: {serves}.")


def no_model(models: Iterable[str]) -> GatewayAnswer:
    serves = ", ".join(dict.fromkeys(models))
    return invalid(
        400, "model_missing", f"Several models are served here: the request must name its `model`: {serves}."
    )


def too_large(limit: int) -> GatewayAnswer:
    message = f"The request's body is larger than {limit / MIB:g} MiB (serving.gateway.body_limit)."
    return invalid(413, "request_too_large", message)


def retry_later(code: str, message: str, retry_after: int) -> GatewayAnswer:
    return GatewayAnswer(503, "service_unavailable", code, message, retry_after)


KEYS_UNREADABLE = retry_later(
    "keys_unreadable",
    "The gateway cannot read its keys file: nobody is let in until it can. `sparkwright status` shows why.",
    5,
)
NOTHING_DEPLOYED = retry_later(
    "deployment_gone",
    "No deployment is behind this address: it was taken down, or another address serves what replaced it.",
    5,
)


def not_serving(why: str) -> GatewayAnswer:
    """The refusal of a gateway without most votes. why: in words for clients."""
    return retry_later("gateway_fenced", f"This node's gateway does not serve: {why}. Ask the second address.", 3)


# Of Caddy alone: our own process, which alone knows keys, is away or broke off, and Caddy does not know which.
GATEWAY_BROKEN = retry_later(
    "gateway_unavailable", "The gateway gave no answer; where it has ended it is started again.", 5
)
GATEWAY_FAULT = GatewayAnswer(500, "server_error", "gateway_fault", "The gateway failed; its log has the cause.")
CONSOLE_AWAY = retry_later("console_unavailable", "The console does not answer at the moment; it is started again.", 5)

HOLD = 10.0
YOUNG = 1.0
CROWD = 256
AGAIN = 30.0
_API = "/v1/"
_SEGMENT = r"[A-Za-z0-9_~@:+=-][A-Za-z0-9._~@:+=-]*"
_OFTEN, _SOON, _PERSON, _LONGEST = 3, 15, 300, 600
_PASSING = frozenset(
    {
        DeploymentState.DRAINING,
        DeploymentState.BACKING_OFF,
        DeploymentState.STAGING,
        DeploymentState.STARTING,
        DeploymentState.LOADING,
    }
)
_WAITS_FOR_A_PERSON = {
    DeploymentState.FAILED: "it was given up after several starts",
    DeploymentState.NEEDS_REBOOT: "its nodes must be rebooted first",
    DeploymentState.NEEDS_POWER_CYCLE: "a node must be switched off and on first",
    DeploymentState.STOPPED: "it was taken down",
    DeploymentState.HALTED: "it stays so until then",
}


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """path: as the client wrote it, without its query. known: a key that opens something here was shown.

    length: of the body in bytes as announced, None when it is not. readable: the keys file can be read.
    """

    method: str
    path: str
    known: bool
    shown: bool = False
    length: int | None = None
    readable: bool = True

    @property
    def call(self) -> str:
        return f"{self.method} {self.path}"


@cache
def matcher(routes: tuple[str, ...]) -> re.Pattern[str]:
    """Fits `METHOD /v1/path` of what may be called. Nothing is decoded: who spells a route oddly is not served.

    What fits has only characters that Caddy sends on as they are, so that the engine sees what was compared.
    """
    return re.compile("|".join(map(_expression, routes)) or "(?!)")


def _expression(route: str) -> str:
    method, _, path = route.partition(" ")
    text = re.escape(path).replace(r"\{path\}", rf"{_SEGMENT}(?:(?:/|%2F){_SEGMENT})*").replace(r"\{id\}", _SEGMENT)
    return f"(?:{'GET|HEAD' if method == 'GET' else re.escape(method)}) {text}"


def refused(request: AdmissionRequest, limit: int, routes: re.Pattern[str]) -> GatewayAnswer | None:
    """The refusal of an invalid request; None if it is valid. limit: bytes of a body."""
    if not request.path.startswith(_API):
        return NO_SUCH_PATH
    if not routes.fullmatch(request.call):
        return no_such_route(request.call)
    if not request.known:
        return key_missing(request.shown) if request.readable else KEYS_UNREADABLE
    if request.length is not None and request.length > limit:
        return too_large(limit)
    return None


@dataclass(frozen=True, slots=True)
class Hold:
    """Ask again soon: it should be back within `seconds`."""

    seconds: float


def admitted(
    live: Live | None, now: float, held: float, crowd: int = 0, patience: float = 0.0
) -> GatewayAnswer | Hold | None:
    """None: let it through. held: seconds that this request has waited; crowd: how many others wait now.

    patience: seconds that it may wait for what it starts; 0: it starts nothing.

    The supervisor's last report counts only while it is fresh: without it the engine is asked, which answers or not.
    """
    if live is None or not is_fresh(live, now) or not live.refusing:
        return None
    if patience and crowd <= CROWD and held < patience and _comes(live, now):
        return Hold(0.0)
    wait = _wait(live, now)
    if crowd <= CROWD and wait is not None and held + wait <= HOLD:
        return Hold(wait)
    return unavailable(live, now)


def is_fresh(live: Live, now: float) -> bool:
    return abs(now - live.at) <= STALE


def _comes(live: Live, now: float) -> bool:
    """True if a waiting request will see the deployment: it is coming up, or is started for it."""
    return live.phase in _PASSING or (live.phase is DeploymentState.ON_DEMAND and not _declined_for(live, now))


def _declined_for(live: Live, now: float) -> float:
    """Seconds in which no other start is tried after one that the plan has refused."""
    return max(live.declined + AGAIN - now, 0.0) if live.declined else 0.0


def _wait(live: Live, now: float) -> float | None:
    """Seconds until it should be back, for what passes without a person; None when that is too long or nobody knows."""
    if live.phase not in _PASSING:
        return None
    if live.back_at > now:
        return live.back_at - now
    age = now - live.since
    return YOUNG - age if live.back_at == 0 and live.phase is DeploymentState.DRAINING and age < YOUNG else None


def unavailable(live: Live, now: float) -> GatewayAnswer:
    """The refusal with the reason, its beginning, what it waits for, and when it should be back."""
    person = _WAITS_FOR_A_PERSON.get(live.phase)
    since = duration(max(now - live.since, 0.0))
    state = f"{live.deployment} is {phase_text(live.phase)} since {since}"
    why = (live.why or live.reason).rstrip(".")
    back = person or "; ".join(text for text in (wait_reason(live, now), comes_back(live, now)) if text)
    message = f"{'(simulated) ' if live.simulated else ''}{state}{': ' + why if why else ''}; {back}."
    return retry_later(f"deployment_{live.phase}", message, retry_after(live, now))


def wait_reason(live: Live, now: float) -> str:
    """The thing it waits for, with the end of a deliberate wait; '' for nothing."""
    if live.due > now:
        end = datetime.fromtimestamp(live.due, UTC).strftime("%H:%M:%S UTC")
        return f"{live.awaited or 'back-off'} until {end}"
    return f"waiting for {live.awaited}" if live.awaited else ""


def refusal_text(live: Live, now: float) -> str:
    """The refusal as text for a screen."""
    starts = live.phase is DeploymentState.ON_DEMAND
    return f"{'' if starts else 'New requests get 503. '}{unavailable(live, now).message}"


def comes_back(live: Live, now: float) -> str:
    """The time or event of its return, as text."""
    usual = f"; a start usually takes {duration(live.usual)}" if live.usual else ""
    if live.phase is DeploymentState.ON_DEMAND:
        later = _declined_for(live, now)
        return f"{f'in {duration(later)} a request' if later else 'the next request'} starts it{usual}"
    if live.back_at > now:
        return f"it should be back in about {duration(live.back_at - now)}{usual}"
    if 0 < live.back_at < now - HOLD:
        return f"it should have been back {duration(now - live.back_at)} ago{usual}"
    return f"it should be back at any moment{usual}" if live.back_at else f"it is not known when it will be back{usual}"


def retry_after(live: Live, now: float) -> int:
    """Whole seconds, never 0: from when it should be back, else a guess by what is wrong."""
    if live.phase in _WAITS_FOR_A_PERSON:
        return _PERSON
    if live.back_at > now:
        return min(max(ceil(live.back_at - now), 1), _LONGEST)
    if later := _declined_for(live, now):
        return ceil(later)
    # A start of usual length may have begun meanwhile
    return min(max(ceil(live.usual), _OFTEN), _SOON) if live.usual else _SOON


SILENT = STALE
"""Seconds without a byte from the engine, and between two requests that may try it all the same."""


def broken(live: Live | None, now: float, unwritable: str = "") -> GatewayAnswer:
    """The request was let through and the engine gave no answer: what is known of why.

    unwritable: why the supervisor's folder cannot be written, '' if it can.
    """
    if live is not None and is_fresh(live, now):
        if live.refusing:
            return unavailable(live, now)
        message = f"{live.deployment}: the engine gave no answer just now; its supervisor examines it."
        return retry_later("engine_unavailable", message, 5)
    silent = _silence(live, now, unwritable) if live else "its supervisor does not run"
    return retry_later("engine_unavailable", f"The engine gave no answer, and {silent}.", _SOON)


def attended(live: Live, now: float) -> bool:
    """True if its supervisor reports and sees all of its nodes: then it alone decides."""
    return is_fresh(live, now) and not _out_of_sight(live)


def _out_of_sight(live: Live) -> list[str]:
    """Nodes that answered the supervisor once and do not now."""
    return [node.node for node in live.nodes if node.at and not node.reached]


def unattended(live: Live, now: float, silent: float, unwritable: str = "") -> GatewayAnswer:
    """The engine has given nothing for `silent` seconds, and its supervisor does not report or does not see a node."""
    message = f"{live.deployment}: the engine has given nothing for {duration(silent)}, and "
    if is_fresh(live, now):
        message += f"its supervisor cannot reach {', '.join(_out_of_sight(live))}. `sparkwright status` shows why."
    else:
        message += f"{_silence(live, now, unwritable)}. `sparkwright status` shows how to start it again."
    return retry_later("engine_unavailable", message, _SOON)


def _silence(live: Live, now: float, unwritable: str) -> str:
    since = duration(max(now - live.at, 0.0))
    if not unwritable:
        return f"its supervisor has not reported for {since}"
    where = f" on {live.nodes[0].node}" if live.nodes else ""
    return f"its supervisor cannot write its report since {since}: {unwritable}{where}"
