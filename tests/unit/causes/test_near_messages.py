"""The messages that a line is most like, where nothing else names a cause."""

from types import SimpleNamespace

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.explanation import reason
from sparkwright.causes.near_messages import message_index
from sparkwright.causes.ranking import FoundCause
from sparkwright.logscan.sign import HINT


def nearest(line: str) -> FoundCause | None:
    return message_index().nearest(reason({"a.log": [(1, line.encode())]}, 2026, {}))


@pytest.mark.parametrize(
    ("line", "key", "shared"),
    [
        ("ResponseError: llama3.1-8B-Meta:latest does not support tools", "ollama-model-lacks-capability", "tool"),
        ("RuntimeError: Triton Error [HIP]:  Code: 1, Messsage: invalid argument", "kernel-launch-refused", "triton"),
    ],
)
def test_a_line_like_known_messages_gets_a_hint_of_their_cause(line: str, key: str, shared: str) -> None:
    """The cause that most of the nearest messages state is a hint, with the words that they share."""
    found = nearest(line)
    assert found
    assert (found.known.key, found.sure) == (key, HINT)
    assert shared in found.resembles


@pytest.mark.parametrize(
    "line",
    [
        "zorg.QuuxError: the flimflam of turnip 7 is not snorkelled",
        "turnipd: error: syntax error",  # like one message, but in two common words
        "ERROR: Task failed: non-zero return code",
    ],
)
def test_a_line_like_no_message_gets_no_hint(line: str) -> None:
    """Guards lines of other programs: no message is near, the near ones disagree, or they share two common words."""
    assert nearest(line) is None


def test_the_hint_is_named_where_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """`diagnose` shows it below the line that explains, if the log resembles no cause's description."""
    monkeypatch.setattr(
        "sparkwright.causes.diagnose.cause_index", lambda: SimpleNamespace(nearest=lambda because: None)
    )
    log = "".join(f"[{n}] load: layer {n} of 16\n" for n in range(16))
    log += "ResponseError: llama3.1-8B-Meta:latest does not support tools\n"
    found = examine([("a.log", [log.encode()])], 2026, {})
    assert [(cause.key, cause.confidence) for cause in found.causes] == [("ollama-model-lacks-capability", HINT)]
    assert found.explanation


def test_a_log_in_which_nothing_failed_gets_no_hint_of_likeness() -> None:
    """Guards healthy services: a refused request logged as information resembled a cause of another program."""
    log = (
        'logger=http.server t=2026-11-30T10:00:01Z level=info msg="HTTP Server Listen" address=[::]:3000\n'
        'logger=context t=2026-11-30T10:01:01Z level=info msg="Request Completed" path=/api/live/ws status=401 '
        'error="Unauthorized"\n'
    )
    found = examine([("a.log", [log.encode()])], 2026, {})
    assert not found.failure and not found.causes
