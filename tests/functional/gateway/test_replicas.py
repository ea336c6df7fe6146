"""Replicas of one model behind the gateway's own process code: engines that fail in every way, and what clients see."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from fakes.ports import free_port
from local_server import local_links
from sparkwright.adapters.machine import SystemClock
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import DeploymentState, Live
from sparkwright.gateway import decide
from sparkwright.gateway.keys import FrontSetting, Key, Keys, RouteSetting, digest, text_of
from sparkwright.supervisor.proxy import behind
from sparkwright.supervisor.proxy.gateway import Doorman
from sparkwright.supervisor.proxy.passing import Passing

KEY = "sk-sw-" + "1f" * 24
CHAT = "/v1/chat/completions"
ROUTES = (f"POST {CHAT}", "POST /v1/embeddings", "GET /v1/models")
EVENT = b'33\r\ndata: {"choices":[{"delta":{"content":"token"}}]}\n\n\r\n'
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
Behaviour = Callable[["ScriptedEngine", asyncio.StreamWriter], Awaitable[None]]


def plain_answer(text: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, len(text)) + text


async def answer_named(engine: ScriptedEngine, writer: asyncio.StreamWriter) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    writer.write(plain_answer(json.dumps({"id": engine.name, "data": [{"id": "big"}], "usage": usage}).encode()))


def sending(*pieces: bytes, abort: bool = False) -> Behaviour:
    """Sends these, then closes: abort by a reset."""

    async def behaves(engine: ScriptedEngine, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)
        if abort:
            writer.transport.abort()

    return behaves


async def hang_on(engine: ScriptedEngine, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


@dataclass
class ScriptedEngine:
    """One replica. bodies: of the requests that reached it."""

    name: str
    behaves: Behaviour = answer_named
    port: int = field(default_factory=free_port)
    bodies: list[bytes] = field(default_factory=list)
    server: asyncio.Server | None = None
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.split(b"content-length:")[1].split(b"\r\n")[0]) if b"content-length:" in head else 0
                self.bodies.append(await reader.readexactly(size))
                await self.behaves(self, writer)
                await writer.drain()
        finally:
            self.tasks.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def start(self) -> None:
        self.server = await asyncio.start_server(self, "127.0.0.1", self.port, limit=1 << 24)

    async def stop(self) -> None:
        if self.server:
            self.server.close()
        self.server = None
        for task in (left := tuple(self.tasks)):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


@dataclass
class ReplicaScene:
    folder: Path
    door: Doorman
    client: httpx.AsyncClient
    engines: list[ScriptedEngine]

    def route(self, engine: ScriptedEngine, **more: Any) -> None:
        at = f"127.0.0.1:{engine.port}"
        setting = RouteSetting(engine.name, at, 1 << 23, 8443, 9100, "", ("big",), ROUTES, (), replica_of="model")
        write_file(self.folder / engine.name / "door/door.json", to_json(replace(setting, **more)))

    def live(self, name: str, phase: DeploymentState, refusing: bool = False, at: float = 0.0, **more: Any) -> None:
        now = time.time()
        live = Live(now + at, name, phase, now + at, refusing=refusing, **more)
        write_file(self.folder / name / "live.json", to_json(live))

    def key(self, **limits: Any) -> None:
        write_file(self.folder / "keys.json", text_of(Keys((replace(Key("ci", digest(KEY)), **limits),))))

    async def post(self, text: str = "hello", path: str = CHAT, **more: Any) -> httpx.Response:
        body = {"messages": [{"role": "user", "content": text}], "model": "big", **more}
        return await self.client.post(path, json=body)

    async def used(self, count: int = 1) -> dict[str, Any]:
        """The key's row, once so many requests are over."""
        while True:
            with closing(sqlite3.connect(self.folder / "usage.sqlite")) as link:
                link.row_factory = sqlite3.Row
                row = dict(link.execute("SELECT * FROM usage").fetchone() or {})
            if row and count == sum(row[name] for name in ("finished", "uncounted", "cut", "failed")):
                return row
            await asyncio.sleep(0.02)


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "new").write_text(text)
    (path.parent / "new").replace(path)


@asynccontextmanager
async def replica_scene(tmp_path: Path, *behaviours: Behaviour) -> AsyncIterator[ReplicaScene]:
    """Replicas `model-r1`, `model-r2`, ... of `model`, which serve `big`."""
    write_file(tmp_path / "_gateway/door/gateway.json", to_json(FrontSetting(8443, str(tmp_path / "keys.json"), 9100)))
    engines = [ScriptedEngine(f"model-r{number}", behaves) for number, behaves in enumerate(behaviours, 1)]
    own = free_port()
    door = Doorman(tmp_path / "_gateway", SystemClock())
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        asyncio.timeout(300),
        local_links(Passing({}, door), own),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{own}", headers=headers, timeout=120) as client,
    ):
        made = ReplicaScene(tmp_path, door, client, engines)
        made.key()
        for engine in engines:
            made.route(engine)
            await engine.start()
        try:
            yield made
        finally:
            for engine in engines:
                await engine.stop()


NOTHING = {
    "closed": sending(),
    "reset": sending(abort=True),
    "only the head of a stream": sending(STREAM, abort=True),
    "no HTTP": sending(b"\x00\x01 garbage\r\n\r\n"),
    "two lengths": sending(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"),
    "503": sending(plain_answer(b'{"error": "loading"}', b"503 Service Unavailable")),
    "429": sending(plain_answer(b'{"error": "queue is full"}', b"429 Too Many Requests")),
}


@pytest.mark.parametrize("how", NOTHING)
async def test_what_one_replica_does_not_answer_another_one_does(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the client: whatever one replica sends in place of an answer, the other one answers; the failed one is
    left alone for a while, and it is one request in the usage."""
    monkeypatch.setattr(behind, "_LEFT_OUT", 60.0)  # longer than the questions take on a busy machine
    async with replica_scene(tmp_path, NOTHING[how], answer_named) as it:
        answered = [(await it.post(f"question {n}")) for n in range(4)]
        assert [(one.status_code, one.json()["id"]) for one in answered] == [(200, "model-r2")] * 4
        assert len(it.engines[0].bodies) <= 1, "it is out at once"
        used = await it.used(4)
        assert (used["requests"], used["finished"], used["prompt"]) == (4, 4, 28)
        assert {name: use["under_way"] for name, use in json.loads(it.door.flights()).items()} == {
            "model-r1": 0,
            "model-r2": 0,
        }


async def test_a_replica_that_is_gone_costs_no_request_and_comes_back(tmp_path: Path) -> None:
    """Guards a killed engine: its port refuses, and later answers again."""
    async with replica_scene(tmp_path, answer_named, answer_named) as it:
        await it.engines[0].stop()
        found = [(await it.post(f"question {n}")).json()["id"] for n in range(6)]
        assert found == ["model-r2"] * 6
        await it.engines[0].start()
        async with asyncio.timeout(20):
            number = 0
            while not it.engines[0].bodies:
                number += 1
                assert (await it.post(f"again {number}")).status_code == 200
                await asyncio.sleep(0.05)


async def test_a_begun_stream_is_never_sent_twice(tmp_path: Path) -> None:
    """Guards agents: an answer that breaks off after its first token is cut, and no other replica begins it again."""
    async with replica_scene(tmp_path, sending(STREAM + EVENT, abort=True), sending(STREAM + EVENT, abort=True)) as it:
        with pytest.raises(httpx.RemoteProtocolError):
            async with it.client.stream("POST", CHAT, json={"messages": [], "model": "big", "stream": True}) as answer:
                got = b""
                async for piece in answer.aiter_bytes():
                    got += piece
        assert sum(len(one.bodies) for one in it.engines) == 1
        assert (await it.used())["requests"] == 1


async def test_a_request_that_ends_engines_ends_no_third_one(tmp_path: Path) -> None:
    """Guards a fleet from one request that crashes whatever reads it: two replicas get it, then its client a reason."""
    async with replica_scene(tmp_path, *[sending(abort=True)] * 4) as it:
        answer = await it.post()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_unavailable")
        assert sum(len(one.bodies) for one in it.engines) == 2


async def test_without_another_replica_the_engine_s_own_refusal_is_passed_on(tmp_path: Path) -> None:
    """Guards an engine's own words where all of them refuse."""
    async with replica_scene(tmp_path, NOTHING["503"], NOTHING["503"]) as it:
        answer = await it.post()
        assert (answer.status_code, answer.json()) == (503, {"error": "loading"})
        assert sum(len(one.bodies) for one in it.engines) == 2


async def test_a_websocket_is_opened_once(tmp_path: Path) -> None:
    """Guards `/v1/realtime`: no other replica is asked once the connection is open, however it ends."""
    opens = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    async with replica_scene(tmp_path, *[sending(opens, b"frame", abort=True)] * 2) as it:
        for engine in it.engines:
            it.route(engine, routes=(*ROUTES, "GET /v1/realtime"), websockets=("/v1/realtime",))
        reader, writer = await asyncio.open_connection("127.0.0.1", it.client.base_url.port)
        head = f"GET /v1/realtime?model=big HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
        head += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\r\n"
        writer.write(head.encode())
        said = await reader.read()
        writer.close()
        assert said.startswith(b"HTTP/1.1 101") and said.count(b"frame") == 1 and said.count(b"HTTP/1.1") == 1
        assert sum(len(one.bodies) for one in it.engines) == 1


async def test_a_long_body_goes_whole_to_the_second_one(tmp_path: Path) -> None:
    """Guards bodies that do not fit in memory: the second replica gets every byte of them."""
    async with replica_scene(tmp_path, sending(abort=True), sending(abort=True)) as it:
        assert (await it.post("word " * 600_000, stream=True)).status_code == 503
        first, second = (one.bodies[0] for one in it.engines)
        assert first == second and len(first) > 3_000_000


async def test_what_waits_at_a_lost_replica_is_asked_again(tmp_path: Path) -> None:
    """Guards a node that is gone without a word: as soon as its supervisor gives it up, its requests without an answer
    go to another replica; those at one that only drains stay."""
    async with replica_scene(tmp_path, hang_on, hang_on) as it:
        waiting = asyncio.create_task(it.post())
        while not (found := [one for one in it.engines if one.bodies]):
            await asyncio.sleep(0.01)
        at, other = found[0], next(one for one in it.engines if one is not found[0])
        other.behaves = answer_named
        it.live(at.name, DeploymentState.DRAINING, refusing=True)
        await asyncio.sleep(0.6)
        assert not other.bodies
        it.live(at.name, DeploymentState.BACKING_OFF, refusing=True)
        async with asyncio.timeout(60):  # the first one never answers
            assert (await waiting).json()["id"] == other.name


async def test_a_node_that_is_gone_is_out_before_the_network_says_so(tmp_path: Path) -> None:
    """Guards a node without power: no packet comes back, so a connection only times out. Then what waits there for its
    answer moves, too. Linux itself gives a connection up after two minutes, and no supervisor says anything here."""
    moved = asyncio.Event()

    async def hang_until_moved(engine: ScriptedEngine, writer: asyncio.StreamWriter) -> None:
        await moved.wait()
        await answer_named(engine, writer)

    async with replica_scene(tmp_path, hang_on, hang_until_moved) as it:
        gone, other = it.engines
        waiting = []
        for engine, closed, number in ((gone, other, 1), (other, gone, 3)):
            it.live(closed.name, DeploymentState.DRAINING, refusing=True)
            it.live(engine.name, DeploymentState.READY)
            await asyncio.sleep(0.02)
            waiting += [asyncio.create_task(it.post(f"{engine.name} {n}")) for n in range(number)]
            while len(engine.bodies) < number:
                await asyncio.sleep(0.01)
        assert gone.server
        gone.server.close()
        with full_backlog(gone.port):
            it.live(gone.name, DeploymentState.READY)
            await asyncio.sleep(0.02)
            async with asyncio.timeout(60):
                waiting.append(asyncio.create_task(it.post("the lost one has less to do than the other")))
                while len(other.bodies) < 3 + 2:
                    await asyncio.sleep(0.01)
            moved.set()
            assert {one.json()["id"] for one in await asyncio.gather(*waiting)} == {other.name}


@contextmanager
def full_backlog(port: int) -> Iterator[None]:
    """A port at which every further packet is dropped."""
    with socket.socket() as listening, ExitStack() as stack:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(0)
        for _ in range(4):
            link = stack.enter_context(socket.socket())
            link.setblocking(False)
            link.connect_ex(("127.0.0.1", port))
        yield


async def test_a_replica_that_drains_gets_nothing_new_and_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards a rolling restart: while one drains, stages or loads, the other one answers; no request is held for it."""
    monkeypatch.setattr(decide, "HOLD", 600.0)
    async with replica_scene(tmp_path, answer_named, answer_named) as it:
        for phase in (DeploymentState.DRAINING, DeploymentState.STARTING, DeploymentState.LOADING):
            it.live("model-r1", phase, refusing=True, back_at=time.time() + 500)
            async with asyncio.timeout(60):
                assert [(await it.post(f"{phase} {n}")).json()["id"] for n in range(3)] == ["model-r2"] * 3
        it.live("model-r2", DeploymentState.FAILED, refusing=True)
        it.live("model-r1", DeploymentState.FAILED, refusing=True, back_at=0.0)
        answer = await it.post()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "deployment_failed")


@pytest.mark.parametrize("at", [-3600.0, 3600.0])
async def test_clocks_that_differ_take_no_replica_away(tmp_path: Path, at: float) -> None:
    """Guards reports of another time: they count for nothing, and what the engine does decides."""
    async with replica_scene(tmp_path, answer_named, answer_named) as it:
        it.live("model-r1", DeploymentState.READY, at=at)
        it.live("model-r2", DeploymentState.FAILED, refusing=True, at=at)
        found = {(await it.post(f"question {n}")).json()["id"] for n in range(20)}
        assert found == {"model-r1", "model-r2"}


async def test_a_conversation_stays_and_requests_together_spread(tmp_path: Path) -> None:
    """Guards the choice on its way through the process: the same beginning goes to one replica; of 20 that come at once
    each replica has 10, as none has been answered yet."""
    async with replica_scene(tmp_path, answer_named, answer_named) as it:

        async def once_all_are_there(engine: ScriptedEngine, writer: asyncio.StreamWriter) -> None:
            while sum(len(one.bodies) for one in it.engines) < 20:
                await asyncio.sleep(0.01)
            await answer_named(engine, writer)

        text = "The tests of the parser fail. " * 100
        assert len({(await it.post(text + f"turn {n} " * n)).json()["id"] for n in range(8)}) == 1
        for engine in it.engines:
            engine.behaves = once_all_are_there
            engine.bodies.clear()
        await asyncio.gather(*(it.post(f"question {n} " * 200) for n in range(20)))
        assert [len(one.bodies) for one in it.engines] == [10, 10]


async def test_keys_and_limits_hold_over_all_replicas(tmp_path: Path) -> None:
    """Guards keys: one for the model opens each replica, one for another deployment none, and a limit of two at once is
    two of all replicas."""
    async with replica_scene(tmp_path, hang_on, hang_on) as it:
        it.key(deployment="other")
        assert (await it.post()).status_code == 401
        it.key(deployment="model", at_once=2)
        waiting = [asyncio.create_task(it.post(f"question {n}")) for n in range(2)]
        while sum(len(one.bodies) for one in it.engines) < 2:
            await asyncio.sleep(0.01)
        assert [len(one.bodies) for one in it.engines] == [1, 1]
        assert (await it.post()).status_code == 429
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for engine in it.engines:
            engine.behaves = answer_named
        it.key(deployment="model", per_minute=6)
        found = [await it.post(f"question {n}") for n in range(8)]
        assert [one.status_code for one in found].count(200) <= 6 and found[-1].status_code == 429


async def test_the_model_is_listed_once_under_its_own_name(tmp_path: Path) -> None:
    """Guards what clients list: two replicas are one model, also next to another deployment."""
    async with replica_scene(tmp_path, answer_named, answer_named, answer_named) as it:
        it.route(it.engines[2], replica_of="", models=("small",))
        it.live("model-r2", DeploymentState.READY)
        await it.engines[0].stop()
        it.live("model-r1", DeploymentState.BACKING_OFF, refusing=True)
        rows = (await it.client.get("/v1/models")).json()["data"]
        assert [(row["deployment"], row["state"]) for row in rows] == [("model", "ready"), ("model-r3", "unknown")]


async def test_different_models_under_one_name_do_not_stand_in_for_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guards replicas of different recipes: each answers for its own model only, and status and log say why."""
    async with replica_scene(tmp_path, answer_named, sending(abort=True)) as it:
        it.route(it.engines[1], models=("other",))
        assert (await it.post()).json()["id"] == "model-r1"
        assert (await it.post(model="other")).status_code == 503
        assert (await it.client.get("/v1/models")).json()["data"]
        shown = json.loads(it.door.flights())
        it.door.flights()
        text = "replicas of model differ in their models or API and do not stand in for each other"
        assert all(text in use["trouble"] for use in shown.values())
        assert "model-r1 (big), model-r2 (other)" in shown["model-r1"]["trouble"]
        assert capsys.readouterr().err.count(text) == 1
        it.route(it.engines[1])
        await asyncio.sleep(0.3)
        assert not any("trouble" in use for use in json.loads(it.door.flights()).values())
