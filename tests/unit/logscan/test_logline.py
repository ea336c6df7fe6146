"""The writer of a line, and its time."""

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.logscan.logline import decoded, is_settings, line_time, process_name
from unit.for_each import for_each


@for_each(
    "line, name",
    [
        ("(EngineCore pid=412) INFO 11-02 10:11:12 [core.py:109] x", "EngineCore pid=412"),
        ("(Worker_TP1 pid=4385) ERROR 11-21 04:10:41 [a.py:1] x", "Worker_TP1 pid=4385"),
        ("(RayWorkerWrapper pid=77, ip=10.0.0.2) INFO x", "RayWorkerWrapper pid=77"),
        ("[rank1]:[W1102 10:11:14.120 a.cpp:5] Warning: x", "rank1"),
        ("[2026-02-24 14:09:34 TP14] Scheduler hit an exception", "TP14"),
        ("spark-1:4523:4750 [0] misc/socket.cc:72 NCCL WARN x", "spark-1:4523:4750 [0]"),
        ("Traceback (most recent call last):", ""),
    ],
)
def test_the_process_is_named_by_the_line_itself(line: str, name: str) -> None:
    """Guards that the proof reports which rank spoke."""
    assert process_name(line) == name


def utc_timestamp(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]


@for_each(
    "line, moment",
    [
        ("INFO 11-21 04:13:35 [utils.py:306] x", utc_timestamp(2026, 11, 21, 4, 13, 35)),
        ("[W1121 04:14:00.500000000 socket.cpp:207] x", utc_timestamp(2026, 11, 21, 4, 14) + 0.5),
        ("2026-11-21T04:13:35.250Z kernel: x", utc_timestamp(2026, 11, 21, 4, 13, 35) + 0.25),
        ("2026-11-21T06:13:35+02:00 x", utc_timestamp(2026, 11, 21, 4, 13, 35)),
        ("[2026-11-21 04:13:35 TP0] Load weight begin", utc_timestamp(2026, 11, 21, 4, 13, 35)),
        ("Nov  2 08:00:01 spark-1 kernel: x", utc_timestamp(2026, 11, 2, 8, 0, 1)),
        ("INFO 13-41 04:13:35 nonsense", None),
        ("no time at all", None),
    ],
)
def test_the_time_is_taken_from_the_line_itself(line: str, moment: float | None) -> None:
    """Guards the order of events over several ranks."""
    assert line_time(line, 2026) == moment


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    """Guards odd lines."""
    assert isinstance(process_name(text), str)
    assert line_time(text, 2026) is None or line_time(text, 2026)


@for_each("letter", ["\x1b", "\x07", "\x08", "\x9b", "\x90", "\u202e", "\u2066", "\u200f"])
def test_nothing_of_a_line_speaks_to_the_terminal(letter: str) -> None:
    """Guards what `diagnose` shows of a log: no escape sequence in one character, no text turned round."""
    assert decoded(f"one{letter}31mtwo 内".encode()) == "one 31mtwo 内"


def test_settings_as_sglang_prints_them_since_0_5_23_are_settings() -> None:
    """A mapping, not the arguments of a call: what it names is no event."""
    names = [f"enable_{name}" for name in "abcdefghijklmnopqrstuvwxyz"]
    assert is_settings("server_args={" + ", ".join(f"'{name}': None" for name in names) + "}")


def test_a_message_that_shows_its_arguments_is_no_settings_line() -> None:
    """vLLM shows what it was given after the message of a refused value."""
    given = ", ".join(f"'{name}': 1" for name in "abcdefghijklmnopqrstuvwxyz")
    told = "Value error, User-specified max_model_len is too large [type=value_error, input_value=ArgsKwargs((), {"
    assert not is_settings(told + given)
