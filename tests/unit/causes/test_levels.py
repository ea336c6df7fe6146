"""Lines that engines log as information or a warning are no failures, also where they are printed without a level."""

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.engines.messages import SLOT, listed

_EACH = 8  # of the messages that a program logs so, in the order of its list
_FORMS = {
    "vllm": "(EngineCore pid=412) {level} 11-30 10:00:01 [core.py:109] {message}",
    "sglang": "[2026-11-30 10:00:01 TP0] {message}",
    "lmdeploy": "2026-11-30 10:00:01,109 - lmdeploy - {level} - api_server.py:109 - {message}",
    "llama-cpp": "{message}",
}
_LEVELS = {"I": "INFO", "W": "WARNING"}


def blamed(program: str) -> tuple[list[str], int]:
    """The lines that end with status 1 when each is all that there is; how many there are."""
    rows = (row.split("\t") for row in listed(program) if not row.startswith("# "))
    logged = sorted({(template, _LEVELS[level]) for _, template, level, *_ in rows if level in _LEVELS})[::_EACH]
    lines = [_FORMS[program].format(level=level, message=template.replace(SLOT, "7")) for template, level in logged]
    return [line for line in lines if examine([("log", [line.encode() + b"\n"])], 2026, {}).failure], len(lines)


@pytest.mark.full
@pytest.mark.parametrize("program", _FORMS)
def test_a_line_that_is_logged_as_fine_is_no_failure(program: str) -> None:
    """Guards healthy servers: SGLang and llama.cpp print no levels, so the level is looked up among their messages."""
    wrong, lines = blamed(program)
    assert lines > 20 and len(wrong) <= 0.01 * lines, wrong
