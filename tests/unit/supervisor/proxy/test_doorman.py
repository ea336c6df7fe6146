"""Admission, decided from files that change meanwhile, and counted before a byte of the body is read."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import h11
import pytest

from patience import PATIENCE
from sparkwright.adapters.machine import SystemClock, boot_id, seconds_since_boot
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import DeploymentState, Live
from sparkwright.domain.standby import FOLDER, TERM_FILE, Term
from sparkwright.gateway.decide import GatewayAnswer
from sparkwright.gateway.keys import FrontSetting, Key, Keys, RouteSetting, digest, text_of
from sparkwright.supervisor.proxy.behind import Behind
from sparkwright.supervisor.proxy.connection import RequestHead
from sparkwright.supervisor.proxy.gateway import CountedRequest, Doorman, _end_when_fenced
from sparkwright.supervisor.proxy.spool import Spool, SpoolFull

KEY = "sk-sw-" + "1f" * 24
ROUTES = ("POST /v1/chat/completions", "GET /v1/models", "GET /v1/realtime")


def make_route(name: str) -> RouteSetting:
    return RouteSetting(name, "127.0.0.1:1", 9000, 8443, 9100, "", (name,), ROUTES, ("/v1/realtime",))


def write_file(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def doorman(tmp_path: Path, *names: str, **limits: int) -> Doorman:
    home = tmp_path / "_gateway"
    write_file(home / "door", "gateway.json", to_json(FrontSetting(8443, str(tmp_path / "keys.json"), 9100)))
    write_file(tmp_path, "keys.json", text_of(Keys((replace(Key("ci", digest(KEY)), **limits),))))  # type: ignore[arg-type]
    for name in names:
        write_file(tmp_path / name / "door", "door.json", to_json(make_route(name)))
    return Doorman(home, SystemClock())


def request_head(method: str = "POST", path: str = "/v1/chat/completions", **more: str) -> RequestHead:
    headers = {"Host": "x", "Authorization": f"Bearer {KEY}", **more}
    return RequestHead(h11.Request(method=method, target=path, headers=list(headers.items())))


class Vanishing(Behind):
    """A deployment whose file is taken away after so many reads."""

    reads = 0

    @property
    def setting(self) -> RouteSetting | None:
        self.reads -= 1
        return make_route(self.name) if self.reads >= 0 else None


async def test_a_deployment_that_goes_costs_no_other_s_request(tmp_path: Path) -> None:
    """Its file may be removed at any time while a request for another one is decided: one of 72,000 got a 503 by
    that."""
    for reads in range(8):
        door = doorman(tmp_path, "other", "tiny")
        going = Vanishing(tmp_path / "other", SystemClock())
        going.reads = reads
        door._all()["other"] = going
        entry: Any = door.first(request_head())
        found: Any = await door.choose(request_head(), "tiny", entry)
        assert found.at.name == "tiny", reads


async def test_a_gateway_whose_last_deployment_is_gone_says_so(tmp_path: Path) -> None:
    """Clients got 404 in the moment between the removal of the folder and the end of the gateway."""
    door = doorman(tmp_path, "tiny")
    entry: Any = door.first(request_head())
    shutil.rmtree(tmp_path / "tiny")
    door._scanned = door._looked = -1e9
    answers = [door.first(request_head()), await door.choose(request_head(), "tiny", entry)]
    assert [(one.status, one.code) for one in answers if isinstance(one, GatewayAnswer)] == [
        (503, "deployment_gone")
    ] * 2


async def test_a_node_without_most_votes_lets_nobody_in(tmp_path: Path) -> None:
    """Guards "never both": a term that is over, of an earlier boot or that cannot be read refuses; no file at all is a
    head without a standby. Who has no key learns nothing of it."""
    door, path = doorman(tmp_path, "tiny"), tmp_path / FOLDER / TERM_FILE
    entry: Any = door.first(request_head())
    now, boot = seconds_since_boot(), boot_id()
    over = Term(boot, now - 0.1, "spark-2 serves in its place")
    for text in (to_json(over), to_json(Term("another boot", now + 60)), "{", ""):
        write_file(path.parent, path.name, text)
        await asyncio.sleep(0.06)
        answers: list[Any] = [door.first(request_head()), await door.choose(request_head(), "tiny", entry)]
        assert [(one.status, one.code) for one in answers] == [(503, "gateway_fenced")] * 2, text
        assert door.first(request_head(Authorization="Bearer other")).status == 401  # type: ignore[union-attr]
    write_file(path.parent, path.name, to_json(Term(boot, now + 60)).ljust(400))
    await asyncio.sleep(0.06)
    assert not door.fenced and not isinstance(door.first(request_head()), GatewayAnswer)


class LookedAtDoorman(Doorman):
    """Keeps each answer to the question whether it is fenced."""

    looks: list[str]

    @property
    def fenced(self) -> str:
        self.looks.append(super().fenced)
        return self.looks[-1]


async def test_answers_are_cut_when_the_votes_are_lost(tmp_path: Path) -> None:
    """Guards streams that would go on next to the other node's; a process that begins without votes stays and
    refuses."""
    doorman(tmp_path, "tiny")
    door, over = LookedAtDoorman(tmp_path / "_gateway", SystemClock()), asyncio.Event()
    door.looks, path = [], tmp_path / FOLDER / TERM_FILE
    write_file(path.parent, path.name, to_json(Term(boot_id(), 0.0)))
    async with asyncio.timeout(PATIENCE):
        watching = asyncio.create_task(_end_when_fenced(door, over))
        while len(door.looks) < 3:
            await asyncio.sleep(0.05)
        assert not over.is_set() and all(door.looks)
        write_file(path.parent, path.name, to_json(Term(boot_id(), seconds_since_boot() + 600)))
        while door.looks[-1]:  # the votes must be seen before they are lost
            await asyncio.sleep(0.05)
        assert not over.is_set()
        write_file(path.parent, path.name, to_json(Term(boot_id(), seconds_since_boot() + 0.8)))
        await over.wait()
        await watching


def test_a_report_counts_after_its_file_was_removed(tmp_path: Path) -> None:
    """A replaced deployment refuses until its route is gone too."""
    clock = SystemClock()
    write_file(
        tmp_path / "tiny", "live.json", to_json(Live(clock.now(), "tiny", DeploymentState.DRAINING, 0.0, refusing=True))
    )
    behind = Behind(tmp_path / "tiny", clock)
    assert behind.refusing
    (tmp_path / "tiny" / "live.json").unlink()
    assert behind.refusing


def test_a_folder_that_cannot_be_read_closes_no_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No descriptor is free: what was there before counts, and the log has the cause."""
    door = doorman(tmp_path, "tiny")
    assert list(door.deployed) == ["tiny"]

    def refuses(_: object) -> Any:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("sparkwright.supervisor.proxy.gateway.os.scandir", refuses)
    door._scanned = door._looked = -1e9
    assert list(door.deployed) == ["tiny"]
    assert "Too many open files" in capsys.readouterr().err


def test_limits_count_before_the_body(tmp_path: Path) -> None:
    """Six uploads of a key that may have one: the first is let in, and leaves room when it ends."""
    door = doorman(tmp_path, "tiny", at_once=1, per_minute=2)
    first = door.first(request_head())
    refused = [door.first(request_head()) for _ in range(5)]
    assert isinstance(first, CountedRequest)
    assert [one.status for one in refused if isinstance(one, GatewayAnswer)] == [429] * 5
    first.leave()
    again = door.first(request_head())
    assert isinstance(again, CountedRequest), again


async def test_what_reached_no_engine_is_no_request_of_the_minute(tmp_path: Path) -> None:
    """A request that no model fits is given back when it ends; one that an engine had is not."""
    door = doorman(tmp_path, "tiny", per_minute=1)
    for _ in range(3):
        entry = door.first(request_head())
        assert isinstance(entry, CountedRequest), entry
        entry.leave()
    entry = door.first(request_head())
    assert isinstance(entry, CountedRequest)
    flight = await door.choose(request_head(), "tiny", entry)
    flight.begin().ended(True)  # type: ignore[union-attr]
    entry.leave()
    refused = door.first(request_head())
    assert isinstance(refused, GatewayAnswer) and refused.code == "rate_limit_exceeded"


async def test_websockets_are_counted(tmp_path: Path) -> None:
    """A key opened eight at once that may have one: each is a request, and one at once while it is open."""
    door = doorman(tmp_path, "tiny", at_once=1)
    opening = request_head("GET", "/v1/realtime", Upgrade="websocket", Connection="Upgrade")
    entry = door.first(opening)
    assert isinstance(entry, CountedRequest) and entry.counted
    flight = await door.choose(opening, "", entry)
    flight.begin()  # type: ignore[union-attr]
    refused = door.first(opening)
    assert isinstance(refused, GatewayAnswer) and refused.status == 429
    flight.ended(True)  # type: ignore[union-attr]
    entry.leave()
    assert isinstance(door.first(opening), CountedRequest)
    assert isinstance(door.first(request_head("GET", "/v1/models")), CountedRequest), "a list is no request of a limit"


async def test_all_bodies_together_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client is told why beyond the bound, and room is free again when a body is gone."""
    monkeypatch.chdir(tmp_path)
    spool = Spool(most=3_000_000)
    with spool.body() as one, spool.body() as other:
        for _ in range(20):
            await one.write(b"x" * 100_000)
        await other.write(b"y" * 900_000)
        with pytest.raises(SpoolFull) as full:
            await other.write(b"y" * 100_001)
        assert full.value.answer.status == 503 and "of at most 3" in full.value.answer.message
        assert one.examine(lambda body: body[len(body) - 2 : len(body)]) == b"xx"
        one.rewind()
        assert await one.read(3) == b"xxx"
    assert spool.held == 0


def test_a_list_of_keys_that_lets_nobody_in_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `status`, which said `ready` for half a minute while each request was refused; gone: for five minutes."""
    monkeypatch.setattr("sparkwright.supervisor.proxy.gateway._KEYS_PATIENCE", 0.0)
    it = doorman(tmp_path, "alpha")

    def told() -> str:
        return str(json.loads(it.flights())["alpha"].get("trouble", ""))

    def until(word: str) -> bool:
        end = time.monotonic() + 5.0
        while time.monotonic() < end and word not in told():
            time.sleep(0.05)
        return word in told()

    assert told() == ""
    keys = tmp_path / "keys.json"
    before = keys.read_text()
    keys.write_text("")
    assert until("each request gets 503")
    keys.unlink()
    assert until("each request gets 401")
    keys.write_text(before)
    end = time.monotonic() + 5.0
    while told() and time.monotonic() < end:
        time.sleep(0.05)
    assert told() == ""


@pytest.mark.parametrize(("text", "status"), [(text_of(Keys()), 401), ("", 503)])
async def test_a_key_that_goes_while_its_request_is_read_gets_the_true_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, status: int
) -> None:
    """Guards clients from 404 `no route of this deployment`: nothing is wrong with what they asked for."""
    monkeypatch.setattr("sparkwright.supervisor.proxy.gateway._KEYS_PATIENCE", -1.0)
    it = doorman(tmp_path, "alpha")
    request = request_head()
    entry = it.first(request)
    assert isinstance(entry, CountedRequest)
    (tmp_path / "keys.json").write_text(text)
    found = await it.choose(request, "alpha", entry)
    assert isinstance(found, GatewayAnswer) and found.status == status
