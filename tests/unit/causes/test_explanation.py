"""Logs without a known cause: the line that explains, its title, how far the engine got."""

import re
from pathlib import Path
from string import Formatter

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.candidates import line_pattern, mechanisms
from sparkwright.causes.explanation import reason
from sparkwright.causes.load import families
from sparkwright.domain.diagnosis import Explanation
from sparkwright.logscan.logline import FIRST, LAST, Excerpt
from unit.for_each import for_each

DATA = Path(__file__).parents[2] / "data"
SHARED = Path(__file__).parents[4] / "shared" / "captures"


def explain_logs(*logs: str) -> Explanation | None:
    sources = {f"{n}.log": enumerate(log.encode().split(b"\n"), 1) for n, log in enumerate(logs)}
    return reason(sources, 2026, {}).why


CHAINED = """\
INFO 11-20 10:00:00 [core.py:88] Initializing a V1 LLM engine
Traceback (most recent call last):
  File "/opt/venv/lib/quant/loader.py", line 41, in load
    table = tables[name]
KeyError: 'blk.3.scale'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/opt/venv/lib/quant/start.py", line 12, in run
    raise StartFailed("engine failed to start") from None
RuntimeError: engine failed to start
"""
FRAME = 'Traceback (most recent call last):\n  File "a.py", line 3, in go\n    x()\n'
PYDANTIC = "ValidationError: 1 validation error for Settings\ndepth\n  Input should be at least 2 [input_value=1]\n"
SYSLOG = "Nov 20 10:00:00 n1 dockerd[71]: listening\nNov 20 10:00:01 n1 app[9]: bind: address already in use :9000\n"
LIBRARY = "E: libfoo.so.3: cannot open shared object file\nworker 3 exited with code 1, see above\n"
MEMORY = "torch.OutOfMemoryError: Tried to allocate 3.00 GiB but only 1.25 GiB is available\n"
CASES = {
    "an exception, not its traceback": (f"{FRAME}OSError: [Errno 28] No space left on device: '/v'\n", 4, "disk-full"),
    "the innermost of a chain": (CHAINED, 5, ""),
    "a message below its exception": (PYDANTIC, 3, "configuration-value"),
    "an assertion without words": (
        '  File "k.py", line 7, in pad\n    assert width % 64 == 0\nAssertionError\n',
        3,
        "",
    ),
    "the reason before what follows from it": (LIBRARY, 1, "missing-library"),
    "an error in a system log": (SYSLOG, 2, "address-in-use"),
    "an argument parser": ("usage: serve [-h]\nserve: error: unrecognized arguments: --turbo 9\n", 2, "unknown-option"),
    "memory that was asked for": (MEMORY, 1, "cuda-out-of-memory"),
    "a refused connection": ("dial tcp 10.0.0.2:6379: connect: connection refused\n", 1, "connection-refused"),
    "a crash without an exception": ("loading\nFatal Python error: Bus error\n", 2, "crash"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_line_that_explains_is_found(name: str) -> None:
    """Guards each kind of line, in a wording that no rule was written from."""
    log, number, mechanism = CASES[name]
    found = explain_logs(log)
    assert found and (found.line.number, found.mechanism) == (number, mechanism), found


def test_slots_fill_the_title_and_the_steps() -> None:
    found = explain_logs("OSError: [Errno 98] Address already in use: ('0.0.0.0', 8123)")
    assert found and found.title == "port 8123 is taken"
    assert found.next[0].startswith("ss -ltnp | grep 8123")


def test_a_step_whose_slot_is_empty_is_left_out() -> None:
    found = explain_logs("OSError: [Errno 98] Address already in use")
    assert found and found.title == "port is taken"
    assert all("grep" not in step for step in found.next)


def test_what_a_log_names_cannot_run_when_a_step_is_pasted() -> None:
    """A path from a log is quoted in the command that inspects it."""
    found = explain_logs("PermissionError: [Errno 13] Permission denied: '/tmp/$(reboot);x'")
    assert found and found.next[0].startswith("ls -ld '/tmp/$(reboot);x'; id")


def test_the_phase_and_the_place_are_named() -> None:
    """The engine's own lines show how far it got; the frame above the exception where."""
    log = (DATA / "captures_logs" / "d-disk-full.log").read_text()
    found = explain_logs(log)
    assert found and found.phase == "compile" and "codecache.py" in found.place


def test_what_was_wrong_before_the_engine_served_does_not_count() -> None:
    ready = "(APIServer pid=1) INFO:     Application startup complete."
    assert explain_logs(f"RuntimeError: kernel cache is cold\n{ready}") is None
    found = explain_logs(f"RuntimeError: kernel cache is cold\n{ready}\nRuntimeError: ring is torn")
    assert found and found.line.number == 3


def test_printed_settings_and_a_clients_text_are_no_symptoms() -> None:
    settings = ", ".join(f"disable_{n}=False" for n in range(9))
    assert explain_logs(f"server_args=ServerArgs(error='fatal', {settings})") is None
    assert explain_logs('INFO:     127.0.0.1:5 - "GET /fatal-error HTTP/1.1" 404 Not Found') is None


def test_the_same_line_on_other_ranks_is_named() -> None:
    line = "RuntimeError: the ring has 3 members instead of 4"
    found = explain_logs(line, line)
    assert found and found.same == ("1.log",)


@pytest.mark.parametrize("folder", [DATA / "healthy", SHARED])
def test_engines_that_serve_have_nothing_to_explain(folder: Path) -> None:
    """Start-up lines with words of failure are no failures."""
    serving = [
        p for p in sorted(folder.rglob("*.log")) if folder.name == "healthy" or re.match(r"(sg-)?b-|v4-", p.name)
    ]
    if not serving:
        pytest.skip("data: recordings that are not part of the project")
    assert {p.name: found.line.text for p in serving if (found := explain_logs(p.read_text("utf-8", "replace")))} == {}


def test_the_file_of_mechanisms_is_whole() -> None:
    """Keys are unique, families known, and titles and steps ask for slots that a pattern has."""
    keys = [one.key for one in mechanisms()]
    assert len(set(keys)) == len(keys)
    for one in mechanisms():
        slots = {name for pattern in one.patterns for name in re.compile(pattern).groupindex}
        asked = {field for text in (one.title, *one.next) for _, field, _, _ in Formatter().parse(text) if field}
        assert set(one.families) <= set(families()), one.key
        assert asked <= slots, one.key
    assert all(line_pattern(kind) for kind in ("prefix", "frame", "goes_on"))


def test_a_long_log_keeps_its_beginning_and_its_end() -> None:
    kept = Excerpt()
    kept.add((number, b"x" * 5000) for number in range(1, FIRST + 2 * LAST))
    numbers = [number for number, _ in kept]
    assert len(numbers) == FIRST + LAST
    assert numbers[0] == 1 and numbers[-1] == FIRST + 2 * LAST - 1
    assert all(len(line) <= 1200 for _, line in kept)


@for_each(
    "text, status",
    (
        # the last try of a counted number: nothing comes after it
        ("spark-2:1:2 [0] NCCL INFO socketPollConnect: connect returned No route to host, retrying (34/34)", True),
        ("spark-2:1:2 [0] NCCL INFO socketPollConnect: connect returned No route to host, retrying (3/34)", False),
        # the daemon nests the reason behind the hook's exit status
        (
            "docker: Error response from daemon: error running hook: exit status 1, stdout: , stderr: frobnicator: "
            "requirement error: unsatisfied condition: flux >= 3",
            True,
        ),
        ("/build/ggml/src/ggml.c:1554: GGML_ASSERT(view_src == NULL || data_size == 0) failed", True),
        # a wrapper that logs its child's output as information
        (
            "[16:10:33] stdout/INFO  triton.runtime.errors.OutOfResources: out of resource: shared memory",
            True,
        ),
    ),
)
def test_a_line_that_ends_a_program_is_a_failure_whatever_its_level(text: str, status: bool) -> None:
    """Guards the exit status of a log that is only such a line."""
    assert examine([("log", [text.encode()])], 2026, {}).failure is status


def test_a_hint_of_a_line_that_only_follows_stays_behind_an_exception() -> None:
    """Guards failed starts of vLLM: its empty list of processes is no sign of a time-out beside an exception."""
    follows = b"(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. "
    follows += b"Failed core proc(s): {}\n"
    raised = b"(EngineCore pid=9) ERROR 11-02 10:11:12 [core.py:888] OddError: no frobnicator for this zeppelin\n"
    alone, both = (examine([("log", [log])], 2026, {}) for log in (follows, raised + follows))
    key = "engine-ready-timeout-too-short"
    assert [key in [cause.key for cause in found.causes] for found in (alone, both)] == [True, False]


def test_what_compose_and_buildkit_put_before_a_line_is_no_part_of_it() -> None:
    """Guards an exception behind the name of its container, and an error behind the seconds of a build."""
    raised = "Exception: Unable to find Prisma binaries. Please run 'prisma generate' first."
    log = f'litellm-1  |   File "/opt/x.py", line 3, in f\nlitellm-1  |     raise Exception(\nlitellm-1  | {raised}\n'
    found = examine([("log", [log.encode()])], 2026, {})
    assert found.failure and found.explanation and raised in found.explanation.line.text
    build = (
        "3249.2 2026-02-13 01:14:56,125 - ERROR - cubin_loader.py:126 - flashinfer.jit: Max retries reached.\n"
        "3249.3 2026-02-13 01:14:57,125 - WARNING - cubin_loader.py:117 - flashinfer.jit: attempt 3 failed: 403\n"
    )
    shown = examine([("log", [build.encode()])], 2026, {}).explanation
    assert shown and "Max retries reached" in shown.line.text
