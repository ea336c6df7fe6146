"""Bounds of the console: who sends half a form, reads logs without end, or looks where nothing is theirs."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from sparkwright.console import feed, forms, runs, server
from sparkwright.console.board import ReportBoard
from sparkwright.console.server import Console
from sparkwright.console.sessions import Visitor
from sparkwright.domain.codec import to_json
from sparkwright.domain.run import RunListing
from sparkwright.gateway.keys import FrontSetting, Key, Keys, Role

VIEWER = Visitor(Key("wall", "", role=Role.VIEWER), "t")


def asking(path: str = "/console/login", **path_params: str) -> Request:
    """A request whose body has begun and does not go on."""

    async def receive() -> Any:
        if not sent:
            sent.append(True)
            return {"type": "http.request", "body": b"key=", "more_body": True}
        return await asyncio.Event().wait()

    sent: list[bool] = []
    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
    return Request(scope | {"path_params": path_params}, receive)


async def test_half_a_form_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand of them left no page for anybody."""
    monkeypatch.setattr(forms, "_WITHIN", 0.01)
    with pytest.raises(HTTPException) as refused:
        async with asyncio.timeout(60):
            await forms.fields(asking())
    assert refused.value.status_code == 408


async def test_connections_have_a_bound_and_are_free_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser gets 503 at once beyond the bound; half a form holds its place only until its deadline."""
    home = tmp_path / "_gateway"
    (home / "door").mkdir(parents=True)
    (home / "door" / "gateway.json").write_text(to_json(FrontSetting(1, str(tmp_path / "keys.json"), 2)))
    monkeypatch.setattr(server, "_CONNECTIONS", 4)
    monkeypatch.setattr(forms, "_WITHIN", 0.5)
    monkeypatch.chdir(tmp_path)
    running, path = asyncio.create_task(server.run(home)), home / "door" / server.CONSOLE
    half = b"POST /console/login HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nkey="
    async with asyncio.timeout(60):
        while not path.exists():
            await asyncio.sleep(0.01)
        slow = [await send_bytes(path, half) for _ in range(3)]
        assert (await status(path))[0] == 503
        assert [(await reader.readline()).split()[1] for reader, _ in slow] == [b"408"] * 3
        for _, writer in slow:
            writer.close()
        while (found := await status(path))[0] == 503:
            await asyncio.sleep(0.01)
        assert found[0] == 200
        running.cancel()
        await asyncio.wait({running})


async def send_bytes(path: Path, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(path.name)  # it is in the folder of the console
    writer.write(data)
    return reader, writer


async def status(path: Path) -> tuple[int, bytes]:
    """The status and body of the sign-in page."""
    reader, writer = await send_bytes(path, b"GET /console/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


async def test_readers_of_logs_have_a_bound(tmp_path: Path) -> None:
    """Each holds a connection for as long as it likes."""
    home = tmp_path / "supervision" / "_gateway"
    (home / "door").mkdir(parents=True)
    (home / "door" / "gateway.json").write_text(to_json(FrontSetting(1, str(tmp_path / "keys.json"), 2)))
    (home.parent / "tiny").mkdir()
    console = Console(home)
    request = asking(name="tiny")
    assert (await console.log_lines(request, VIEWER)).status_code == 200
    console._followers["tiny"].readers = 200
    assert (await console.log_lines(request, VIEWER)).status_code == 503


async def test_a_look_that_fails_ends_no_feed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pages went on with "still here" for ever, and showed nothing new."""
    monkeypatch.setattr(feed, "_LOOK_EVERY", 0.0)
    board, looks = ReportBoard(tmp_path), iter([OSError("odd"), OSError("odd"), 0, 1])
    seen = asyncio.Event()

    def refresh() -> None:
        look = next(looks, 0)
        if isinstance(look, Exception):
            raise look
        board.version += look
        if look:
            seen.set()

    monkeypatch.setattr(board, "refresh", refresh)
    known = Keys()
    watched = feed.Feed(board, lambda: known)
    changed, running = watched._changed, asyncio.create_task(watched.run())
    async with asyncio.timeout(60):
        await changed.wait()
    running.cancel()
    assert seen.is_set() and capsys.readouterr().err.count("OSError: odd") == 1


def test_the_seventeenth_deployment_is_shown(tmp_path: Path) -> None:
    """Guards a head with many: none is left out without a word."""
    for number in range(20):
        (tmp_path / "supervision" / f"d{number:02}").mkdir(parents=True)
    board = ReportBoard(tmp_path)
    board.refresh()
    assert len(board.visible("")) == 20


def test_a_key_of_one_deployment_sees_its_own_reports(tmp_path: Path) -> None:
    """A comparison with another one's run is not its own either."""
    folder = tmp_path / "reports"
    folder.mkdir()

    def put(name: str, *models: str) -> None:
        found = [RunListing(f"{name}-{model}", 1.0, 2.0, "done", "chat@1", model, "http://x") for model in models]
        (folder / f"{name}.json").write_text(json.dumps([asdict(one) for one in found]))
        (folder / f"{name}.html").write_text(name)

    put("ours", "a")
    put("theirs", "b")
    put("both", "a", "b")
    assert [name for name, _ in runs.listed(tmp_path, {"a"})] == ["ours"]
    assert {name for name, _ in runs.listed(tmp_path)} == {"ours", "theirs", "both"}
    assert [runs.report(tmp_path, name, {"a"}) for name in ("ours", "theirs", "both")] == [b"ours", None, None]
    assert runs.report(tmp_path, "both") == b"both"


async def test_pages_of_runs_follow_the_key(tmp_path: Path) -> None:
    """Guards the pages themselves: a key of one deployment gets 404 for another one's report, a general key 200."""
    home, folder = tmp_path / "supervision" / "_gateway", tmp_path / "reports"
    (home / "door").mkdir(parents=True)
    (home / "door" / "gateway.json").write_text(to_json(FrontSetting(1, str(tmp_path / "keys.json"), 2)))
    folder.mkdir()
    found = RunListing("r-1", 1.0, 2.0, "done", "chat@1", "theirs", "http://x")
    (folder / "theirs.json").write_text(json.dumps([asdict(found)]))
    (folder / "theirs.html").write_text("theirs")
    console, own = Console(home), Visitor(Key("wall", "", deployment="ours", role=Role.VIEWER), "t")
    answers = [await console.run_report(asking(name="theirs"), one) for one in (own, VIEWER)]
    assert [one.status_code for one in answers] == [404, 200]
    lists = [bytes((await console.runs(asking(), one)).body) for one in (own, VIEWER)]
    assert [b"r-1" in one or b"theirs" in one for one in lists] == [False, True]
