"""Lines that come wrapped in JSON."""

import json
import textwrap

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.logscan.envelope import Unwrap, rejoined
from unit.for_each import for_each

JOURNAL = [
    {"__REALTIME_TIMESTAMP": "1795234440000000", "SYSLOG_IDENTIFIER": "kernel", "MESSAGE": "NVRM: Xid 119"},
    {"__REALTIME_TIMESTAMP": "1795234441000000", "MESSAGE": [27, 91, 49, 109, 69, 82, 82, 27, 91, 48, 109]},
    {"__REALTIME_TIMESTAMP": "1795234442000000", "MESSAGE": "two\nlines"},
    {"__REALTIME_TIMESTAMP": "1795234443000000", "MESSAGE": None},
]
JOURNAL_LINE = b'{"MESSAGE": "begins"}\n'
DOCKER = [{"log": "(EngineCore pid=1) ERROR it broke\n", "stream": "stderr", "time": "2026-11-21T04:14:00.1Z"}]


def unwrap(rows: list[object], step: int = 10**6) -> list[str]:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    wrapper = Unwrap()
    parts = [wrapper.feed(data[n : n + step]) for n in range(0, len(data), step)]
    return (b"".join(parts) + wrapper.close()).decode().split("\n")[:-1]


def test_journald_lines_get_their_time_and_their_text() -> None:
    """Guards messages that journald gives as numbers because of their colours, and one line out for one line in."""
    assert unwrap(JOURNAL) == [
        "2026-11-21T04:14:00.000000Z kernel: NVRM: Xid 119",
        "2026-11-21T04:14:01.000000Z \x1b[1mERR\x1b[0m",
        "2026-11-21T04:14:02.000000Z two\rlines",
        "2026-11-21T04:14:03.000000Z",
    ]


def test_docker_files_too_in_any_chunks() -> None:
    """Guards lines that are cut between two reads."""
    wanted = ["2026-11-21T04:14:00.1Z (EngineCore pid=1) ERROR it broke"]
    assert unwrap(DOCKER) == unwrap(DOCKER, step=7) == wanted


def test_a_message_that_its_writer_split_is_one_line_again() -> None:
    """Guards lines over Docker's 16 KiB and journald's LineMax, also with another stream's line in between."""
    time = "2026-11-21T04:14:00.1Z"
    rows = [("RuntimeError: shape (", "stderr"), ("INFO ready\n", "stdout"), ("1, 2)", "stderr"), (" fits\n", "stderr")]
    docker = [{"log": log, "stream": stream, "time": time} for log, stream in rows]
    assert unwrap(docker) == ["", f"{time} INFO ready", "", f"{time} RuntimeError: shape (1, 2) fits"]
    split = [{"MESSAGE": "Runtime", "_STREAM_ID": "a", "_LINE_BREAK": "line-max"}, {"MESSAGE": "x", "_STREAM_ID": "b"}]
    assert unwrap([*split, {"MESSAGE": "Error", "_STREAM_ID": "a"}]) == ["", "x", "RuntimeError"]


def test_a_log_that_ends_within_a_split_message_keeps_it() -> None:
    """Guards the last line of a container that was killed."""
    wrapper = Unwrap()
    wrapper.feed(json.dumps({"log": "Out of mem", "stream": "stderr"}).encode() + b"\n")
    assert b"Out of mem" in wrapper.close()


def test_other_logs_pass_as_they_are() -> None:
    """Guards JSON that is no envelope (a request's body, a metrics line), and plain text."""
    for text in (b'{"model": "m", "messages": []}\nERROR\n', b"plain\n{}\n", b"\n\nlate\n"):
        wrapper = Unwrap()
        assert wrapper.feed(text) + wrapper.close() == text


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.binary(max_size=120) | st.text(max_size=80).map(lambda t: json.dumps({"MESSAGE": t, "time": t}).encode()))
def test_nothing_raises(line: bytes) -> None:
    """Guards truncated and strange records."""
    wrapper = Unwrap()
    assert isinstance(wrapper.feed(JOURNAL_LINE + line + b"\n") + wrapper.close(), bytes)


ARCH = (
    "RuntimeError: The kernel needs one of ['sm_120a', 'sm_100a'] and this process runs on a device that reports "
    "sm_121a, see /usr/local/lib/python3.12/dist-packages/cutlass/cute/nvgpu/warp/mma.py for the list\n"
)
FRAME = "(EngineCore pid=87)   raise OpError(\n"


def test_a_message_that_a_terminal_wrapped_is_one_line_again() -> None:
    """Guards signatures that need both halves of a message, and the numbers of the lines after it."""
    lines = rejoined(f"{FRAME}{textwrap.fill(ARCH, 80)}\n{FRAME}".encode()).split(b"\n")
    assert lines[:2] == [FRAME.strip().encode(), ARCH.strip().encode()]
    assert lines[2:] == [b"", b"", FRAME.strip().encode(), b""]


@for_each(
    "text",
    [
        "$ ssh -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/srv/known spark-2 hostname\nssh: no route to host",
        "vllm.service:4: Neither a valid executable name nor an absolute path: a b c d.\nService refused",
        "-" * 70 + "\nmpirun has detected an attempt to run as root",
        "x" * 90 + "\n2026-11-21 04:14:00 INFO a record of its own",
        "0.00.034.405 I srv    load_model: loading model '/srv/models/new-model-of-26B-parameters/new-model.gguf'\n"
        "/src/llama.cpp/src/llama-model-of-this-kind.cpp:1227: GGML_ASSERT(parameters.layers < parameters.all) failed",
        "/src/llama.cpp/src/llama-model-of-this-kind.cpp:1227: GGML_ASSERT(parameters.layers < parameters.all) failed\n"
        "0.00.034.405 I srv    load_model: loading model '/srv/models/new-model-of-26B-parameters/new-model.gguf'",
        "a" * 200 + "\nlong lines are not wrapped",
        "short\nlines",
        "",
    ],
)
def test_records_of_their_own_stay_apart(text: str) -> None:
    """Guards logs whose lines only happen to be long: two messages must never read as one."""
    assert rejoined(text.encode()) == text.encode()


def test_a_log_that_begins_with_many_empty_lines_is_passed_on() -> None:
    """Guards the memory: empty lines are not kept until a first line comes, and its JSON is still found."""
    wrapper, empty = Unwrap(), b"\n" * 100_000
    passed = [wrapper.feed(empty) for _ in range(3)]
    assert passed == [empty] * 3
    assert wrapper.feed(b'{"MESSAGE": "begins"}\n') + wrapper.close() == b"begins\n"
