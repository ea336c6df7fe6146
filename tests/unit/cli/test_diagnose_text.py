"""A diagnosis on the screen and as JSON: what is certain first, commands in one piece, every key documented."""

import json
import os
import re
from dataclasses import fields, replace
from pathlib import Path

import click
import pytest

from sparkwright.app.diagnose.examine import Examined
from sparkwright.cli.columns import fold_command
from sparkwright.cli.diagnose import _document
from sparkwright.cli.diagnose_text import causes_text, examined_text
from sparkwright.cli.failure import failure_json
from sparkwright.domain.diagnosis import Cause, Diagnosis, Difference, Explanation, LogSource, Proof, StatedFact
from sparkwright.domain.errors import NotReady
from sparkwright.domain.finding import Severity

DOC = Path(__file__).resolve().parents[3] / "docs" / "reference" / "diagnosing.md"
FIRST = Cause(
    "disk-full",
    "LFIL002",
    "disk is full",
    Severity.BLOCK,
    0.95,
    "it grew",
    ("df -h",),
    (Proof("a.log", 7, "Errno 28"),),
)
SECOND = replace(FIRST, key="shm", code="LIMG003", title="shm is small", confidence=0.75)
THIRD = replace(FIRST, key="other", code="LXXX001", title="something else", confidence=0.3)


def test_what_is_much_less_likely_gets_one_line() -> None:
    """Guards the eye: a guess next to a certain cause does not look like one."""
    text = click.unstyle(causes_text([FIRST, SECOND, THIRD]))
    assert "something else" not in text
    assert text.startswith("1. disk is full\n   [LFIL002 disk-full, high 0.95]\n   a.log:7  Errno 28")
    assert "\n2. shm is small\n" in text
    text = click.unstyle(causes_text([SECOND, THIRD]))
    assert text.endswith("   less likely: something else (sparkwright explain LXXX001)")


def test_a_guess_is_called_one() -> None:
    """Guards against a low cause that is read as the answer."""
    assert click.unstyle(causes_text([THIRD])).startswith("nothing here is certain; the likeliest:\n1. something else")


@pytest.mark.parametrize(("seen", "told"), [(1, ""), (17, "such lines came 17 times"), (101, "more than 100 times")])
def test_how_often_lines_came(seen: int, told: str) -> None:
    """Guards the count: none for the lines that are shown, no false figure where counting stopped."""
    text = causes_text([replace(FIRST, seen=seen)])
    assert told in text and ("such lines" in text) == bool(told)


def test_harmless_lines_name_their_file_only_where_there_are_several() -> None:
    """Guards short lines; the file is reported at the end of the screen anyway."""
    one, two = (LogSource(name, 9, 90) for name in ("a.log", "b.log"))
    assert "disk is full (line 7, LFIL002)" in examined_text(Examined(Diagnosis((), (FIRST,), (one,))))
    assert "disk is full (a.log:7, LFIL002)" in examined_text(Examined(Diagnosis((), (FIRST,), (one, two))))


def test_commands_stay_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards what is copied from a narrow terminal: a remark and a sentence are folded, a command never is."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback=(80, 24): os.terminal_size((60, 24)))
    command = "docker run --network host --ipc host -v ~/.cache:/root/.cache IMAGE"
    assert fold_command("   fix    ", command) == f"   fix    {command}"
    assert fold_command("  ", f"{command}   # on every node") == f"  {command}\n    # on every node"
    assert "\n" in fold_command("  ", "the licence was not accepted with that account, or there is no token")


def test_the_json_is_as_documented() -> None:
    """Guards scripts that read it: every key is in docs/reference/diagnosing.md, and no other one does."""
    rows = re.findall(r"^\| (top|`diagnosis`|each of [^|]+) \| (.+) \|$", DOC.read_text(), re.M)
    said = {where: set(re.findall(r"`(\w+)`", keys)) for where, keys in rows}
    told = _document(Examined(Diagnosis((FIRST,), (), (LogSource("a.log", 9, 90),))))
    assert said["top"] == set(told)
    assert said["`diagnosis`"] == set(told["diagnosis"])
    assert said["each of `causes` and `harmless`"] == set(told["diagnosis"]["causes"][0])
    assert said["each of `proof`"] == {field.name for field in fields(Proof)}
    assert "`mechanism`" in DOC.read_text() and "explanation" in told["diagnosis"]
    assert said["each of `stated`"] == {field.name for field in fields(StatedFact)} | {"proof"}
    assert said["each of `differs`"] == {field.name for field in fields(Difference)}
    assert said["each of `sources`"] == {field.name for field in fields(LogSource)}


def test_what_commands_show_and_ranks_differ_in_is_on_the_screen() -> None:
    """Guards the evidence under the answer: each with the place of its line, or with the rank that has it."""
    full = StatedFact("df: /srv is 100 % full", Proof("a.log", 3, "/dev/sda1 ... 100% /srv"))
    unequal = Difference("max_model_len", (("a.log", "131072"), ("b.log", "65536")))
    text = examined_text(Examined(Diagnosis((FIRST,), (), (), stated=(full,), differs=(unequal,))))
    assert "commands in the logs show\n  df: /srv is 100 % full   (a.log:3)" in text
    assert "what differs\n  max_model_len: 131072 (a.log), 65536 (b.log)" in text


WHY = Explanation(
    Proof("a.log", 7, "x.FrobError: wants 3 rings"), "", "", (), "frob.py:3 go", "load", ("ls",), ("b.log",)
)


def test_an_error_without_a_known_cause_shows_its_line() -> None:
    """The line, phase and place, the other rank that reports it, the next step; not for a deployment that serves."""
    found = Diagnosis((), (), (), explanation=WHY)
    text = click.unstyle(examined_text(Examined(found)))
    assert "a.log:7  x.FrobError: wants 3 rings" in text
    assert "where  during load, in frob.py:3 go" in text and "also   the same in b.log" in text and "next   ls" in text
    assert "FrobError" not in examined_text(Examined(found, serves=True))


def test_a_failed_start_reports_its_line_in_json() -> None:
    """Scripts get the same explanation as the screen."""
    error = NotReady("rank 0 exited")
    error.explanation = WHY
    (told,) = json.loads(failure_json(error, [error], 5))["errors"]
    assert told["explanation"]["line"]["number"] == 7 and told["causes"] == []
