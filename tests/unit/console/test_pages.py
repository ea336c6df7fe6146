"""Plans of what operators do, reports, and what a chat takes."""

import asyncio
import json
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from sparkwright.console import actions, chat, logs, runs
from sparkwright.console.board import ReportBoard
from sparkwright.console.sessions import Visitor
from sparkwright.domain.codec import Unreadable, to_json
from sparkwright.domain.errors import UsageError
from sparkwright.domain.live import DeploymentState, Live
from sparkwright.domain.run import RunListing
from sparkwright.gateway.keys import Key, Role
from sparkwright.report.markup import Html
from unit.cli.test_text import BLOCK, OVERRIDE, PLAN
from unit.console.test_overview import GIB, LIVE, NODE, NOW

ME = Visitor(Key("me", "0" * 64, role=Role.OPERATOR), "token")


def board_of(state: Path, *lives: Live) -> ReportBoard:
    for live in lives:
        (home := state / "supervision" / live.deployment).mkdir(parents=True)
        (home / "live.json").write_text(to_json(live))
    board = ReportBoard(state, lambda: NOW)
    board.refresh()
    return board


def test_each_plan_shows_what_it_does(tmp_path: Path) -> None:
    """Guards what an operator reads before a stop, a start next to another deployment, and a switch."""
    rests = replace(LIVE, deployment="apple", phase=DeploymentState.HALTED, engine=None, nodes=(NODE,), usual=60.0)
    watches = board_of(tmp_path, LIVE, rests).visible("")
    apple, chat_ = watches
    stop = actions.plan(actions.Operation("stop", chat_, watches), ME)
    assert "rank 1 on spark-2" in stop and ">3; those" in stop and "sparkwright down chat" in stop and "token" in stop
    start = actions.plan(actions.Operation("start", apple, watches), ME, (("memory on spark-1", "takes 9 GiB"),))
    assert "<dt>memory on spark-1</dt><dd>takes 9 GiB</dd>" in start and "chat: both must fit" in start
    assert actions.choices(chat_, watches) == [apple] and actions.choices(apple, watches) == []
    undecided = actions.plan(actions.Operation("switch", chat_, watches), ME)
    assert "switch/chat?to=apple" in undecided and "<form" not in undecided
    switch = actions.plan(actions.Operation("switch", chat_, watches, apple), ME)
    assert "apple is stopped and chat started again" in switch and "about 60 s" in switch


def test_a_chat_takes_turns_of_text_only() -> None:
    """Guards the engine against whatever a form holds: roles, kinds and counts."""
    turns = [{"role": "user", "content": "a", "tool_calls": []}, {"role": "assistant", "content": "b"}]
    assert chat.messages_of({"messages": json.dumps(turns)})[0] == {"role": "user", "content": "a"}
    assert chat.messages_of({"prompt": " a "}) == [{"role": "user", "content": "a"}]
    system, number = {"role": "system", "content": "a"}, {"role": "user", "content": 1}
    for bad in ("", "[", "{}", "[]", json.dumps([system]), json.dumps([number]), json.dumps(turns * 101), "[" * 9999):
        with pytest.raises(Unreadable):
            chat.messages_of({"messages": bad})


def test_reports_are_listed_and_nothing_else_is_read(tmp_path: Path) -> None:
    """Guards names of reports: text on the page, never a path; a damaged record is left out."""
    (folder := tmp_path / "reports").mkdir()
    run = RunListing("r-1a", time.time(), 0.0, "done", "<b>quick", "acme", "", simulated=True)
    (folder / "r-1a.json").write_text(json.dumps([asdict(run)]))
    (folder / "r-2b.json").write_text("[")
    (folder / "r-1a.html").write_text("page")
    (tmp_path / "secret.html").write_text("secret")
    found = runs.listed(tmp_path)
    assert [name for name, _ in found] == ["r-1a"]
    page = runs.runs_page(found, NOW)
    assert "&lt;b&gt;quick" in page and "simulated" in page and "/console/runs/r-1a" in page
    assert runs.report(tmp_path, "r-1a") == b"page"
    assert [runs.report(tmp_path, name) for name in ("../secret", "r-9", "", "..")] == [None] * 4
    assert "script-src 'sha256-" in runs.POLICY and "unsafe" not in runs.POLICY


def test_a_page_of_logs_is_bounded() -> None:
    """Guards a slow line: the last lines, in order, and no more than a page of 150 kB holds with style and script."""
    lines = [logs.LogLine(number, Html("ö" * 500), "ö") for number in range(1, 1501)]
    shown = logs.fitting(lines)
    assert shown == tuple(lines[-100:]) and logs.fitting(lines[:3]) == tuple(lines[:3]) and logs.fitting([]) == ()


def test_what_a_start_takes_and_why_it_would_be_refused() -> None:
    """Guards an operator's plan: each node's memory, and the findings that the supervisor will refuse it for."""
    small = replace(PLAN.ledgers[0], pool=replace(PLAN.ledgers[0].pool, bytes=60 * GIB))
    found = dict(actions.outlook_rows(replace(PLAN, ledgers=(small, PLAN.ledgers[1]), findings=(BLOCK, OVERRIDE)), ""))
    assert found["memory on spark-1"].endswith("are missing") and found["memory on spark-2"].endswith("are left")
    assert found["would be refused now"] == "MEM001 spark-1: does not fit; RANK001 spark-2: twin runs here"
    forced = dict(actions.outlook_rows(replace(PLAN, findings=(OVERRIDE, BLOCK)), "a test"))
    assert "RANK001" not in forced["would be refused now"]
    assert "would be refused now" not in dict(actions.outlook_rows(PLAN, ""))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, "done in 0"),
        (UsageError("no such deployment", "see status"), "no such deployment; hint: see status."),
        (OSError("disk"), "failed: OSError('disk') (a bug in sparkwright"),
        (asyncio.CancelledError(), "the console ended meanwhile"),
    ],
)
async def test_a_note_of_an_operation_always_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException | None, said: str
) -> None:
    """Guards "under way" for ever after an error that is not ours, and after the console's end."""

    async def ends(*_: object) -> None:
        if error:
            raise error

    monkeypatch.setattr(actions, "_restart", ends)
    board = board_of(tmp_path, LIVE)
    (watch,) = board.visible("")
    operations = actions.Operations(board)
    assert operations.begin(actions.Operation("restart", watch, (watch,)), ME)
    assert not operations.begin(actions.Operation("restart", watch, (watch,)), ME), "one at a time"
    await asyncio.wait(set(operations._running))
    await asyncio.sleep(0)
    assert said in board.notes["chat"] and "under way" not in board.notes["chat"]
    assert operations.begin(actions.Operation("restart", watch, (watch,)), ME)
    await asyncio.wait(set(operations._running))
