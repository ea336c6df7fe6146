"""Tests of shell scripts as bash decides them, and those that only a machine can decide."""

import shutil
import subprocess

import pytest

from sparkwright.recipes.importers.branches import decide
from sparkwright.recipes.importers.shell import Script
from unit.for_each import for_each

TESTS = (
    '[ -n "" ]', '[ -n "a" ]', '[ -z "" ]', '[ "a" = "a" ]', '[ a != a ]', '[ ! a = b ]', '[ 3 -ge 3 ]', '[ 2 -gt 10 ]',
    '[ 2 -lt 10 ]', '[ 1 -ne 1 ]', '[ "" ]', 'test -z a', '[[ org/a == org/* ]]', '[[ a != b* ]]', '[[ a == "a" ]]',
    '[[ Qwen3 =~ (qwen3|Qwen3) ]]', '[[ 12a =~ ^[0-9]+$ ]]', '[[ 12 =~ ^[0-9]+$ ]]', '[[ -n "" ]]', '! [ a = a ]',
    'true', 'false', '[ a = b ] || [ c = c ]', '[ a = a ] && [ c = d ]', '[ a = b ] && [ c = c ] || true',
)  # fmt: skip


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is asked for the right answer")
@for_each("test", TESTS)
def test_conditions_are_decided_as_bash_does(test: str) -> None:
    """An `if`, a `while` and an assignment behind `&&`: the variable has the value that bash prints."""
    for text in (f"A=0\nif {test}; then A=1; else A=2; fi\n", f"A=0\nif false; then A=9; elif {test}; then A=1; fi\n"):
        said = subprocess.run(["bash", "-c", f"{text}echo $A"], capture_output=True, text=True, check=True)
        assert Script(text, "x.sh").variables["A"] == said.stdout.strip(), text


@for_each("test", ["[ -f /etc/passwd ]", "command -v docker", '[ "$HOSTNAME" = a ]', "[[ $(id -u) == 0 ]]"])
def test_what_a_machine_decides_is_left_open(test: str) -> None:
    """Neither branch is taken for granted: the variable has no value after it."""
    assert "A" not in Script(f"A=0\nif {test}; then A=1; else A=2; fi\n", "x.sh").variables


def test_files_and_odd_words_are_not_decided() -> None:
    """Patterns with several repetitions are left to a shell: their cost is not bounded."""
    assert decide(["[", "-e", "/x", "]"]) is None and decide([]) is None and decide(["["]) is None
    assert decide(["[[", "a" * 50, "=~", "(a+)+$", "]]"]) is None
