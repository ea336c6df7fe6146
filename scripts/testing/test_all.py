"""The parts of `make test` and `make test-full`: `test_all.py [--full | --rest] [--after FILE] [PART] [ARGUMENTS]`.

`make test` leaves out what is marked `full`: more rows of a table of which some rows are run, properties, the testbed's
own tests. `--rest` runs only that, so that `make test` and `make test-rest` are `make test-full`; `--after FILE` adds
the counts of an earlier run to the closing table. `--minutes N`: no file of parts that share files among workers begins
later than N minutes after the start, the earlier run included. A single part is run whole, but for `unit`. `--record`
runs nothing: it writes the last run's duration into docs/guides/testing.md.

Closes with `N passed, N failed, N skipped`: the sum over all pytest runs, where each tool (ruff, mypy, import-linter)
counts as one. What cannot run here is listed with the reason; under CI=true that is a failure, and so is every skipped
test but those whose reason begins with `hardware:`, `data:` (recordings that are not part of the project) or `time:`
(not reached). A test that fails fails the run: nothing is tried twice.

Functional and cluster tests wait for nodes and engines most of their time: each kind has a lane of its own, and lanes
run in parallel. Functional tests have three workers with namespaces of their own (tests/namespaces.py), cluster tests,
which take root, two (three in the long runs), each with its own testbed. Nodes are containers that share one kernel,
whose figure of memory pressure is that of all of them (cgroup v1 has none a container): what makes a node short of
memory runs when all lanes have ended.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import leftovers
import system
import test_results
from test_results import RESULTS, ROOT, PartOutcome, runs_in_ci

BIN = ROOT / ".venv" / "bin"
TESTS = ROOT / "tests"
HUNG = 4500.0  # a machine that is busy with other things is no reason to stop a good run; CI has 90 minutes
ENDING = 18.0  # seconds for an interrupted part to clean up, of which its workers take 12
CPUS = min(len(os.sched_getaffinity(0)), 8)
TESTBEDS = 2
REST_TESTBEDS = 3  # with four, and real vLLM and qemu next to them, two cores were at a load of 50: deadlines passed
FUNCTIONAL_WORKERS = 3
REPORT_EVERY = 30.0
MIN_FREE = 2 << 30  # bytes of the temporary folder; a whole run uses about half
MIN_TMP = 256 << 20  # of /tmp, where programs under test write whatever TMPDIR names
STOPPED = threading.Event()  # by the user: no further part begins
OURS: set[int] = set()  # the parts' own processes; all other children are orphans of what they started
RUNNING: dict[str, Path] = {}  # part -> where its pytest says how far it is
BIRTHS = threading.Lock()


@dataclass(frozen=True)
class SuitePart:
    """One line of the closing table. `seconds`: longer counts as hung. `system`: as root, install what it may call;
    what is in `needs` it cannot do without. `lane`: parts of one lane run one after the other, lanes run in parallel.
    `workers`: processes that share the test files (tests/workers.py). `marks`: for pytest's `-m`."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    seconds: float = 1200
    tests: bool = False
    network: bool = False
    system: bool = False
    needs: tuple[str, ...] = ()
    root: bool = False
    lane: str = "tools"
    workers: int = 1
    marks: str = ""


def pytest_part(name: str, paths: Sequence[str] = (), **more: object) -> SuitePart:
    command = ("python", "-m", "pytest", *(paths or (f"tests/{name}",)))
    return SuitePart(name, (command,), tests=True, **more)  # type: ignore[arg-type]


def cluster_part(name: str, paths: Sequence[str] = (), **more: object) -> SuitePart:
    needs = tuple(system.PACKAGES)
    return pytest_part(name, paths, seconds=HUNG, network=True, system=True, needs=needs, root=True, **more)


TOOLS = (
    SuitePart(
        "lint", (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("python", "scripts/check/readability.py"))
    ),
    SuitePart("types", (("mypy",),)),
    SuitePart("layers", (("lint-imports", "--no-cache"),)),
)
UNIT = pytest_part("unit", ("tests/unit",), workers=CPUS, marks="not full")
UNIT_FULL = pytest_part("unit-full", ("tests/unit",), workers=CPUS)
HOUSE = pytest_part("house", ("tests/unit/test_house.py",))
FUNCTIONAL = pytest_part("functional", seconds=HUNG, system=True, lane="functional", workers=FUNCTIONAL_WORKERS)
REGISTRY = pytest_part("registry", seconds=HUNG, network=True)
# `make registry` alone runs these: they can fail by what others published that day, and keep both cores busy for long
OF_TODAY = tuple(f"--ignore=tests/registry/{name}.py" for name in ("test_newest_vllm", "test_arm64"))
SHORT_REGISTRY = pytest_part("registry", (*OF_TODAY, "tests/registry"), seconds=HUNG, network=True)
LAST = "last"  # the lane that runs alone
ALONE = ("tests/cluster/test_load_guard.py",)
OTHERS = ("tests/cluster", *(f"--ignore={path}" for path in ALONE))
CLUSTER = (
    cluster_part("cluster", OTHERS, lane="cluster", workers=TESTBEDS),
    cluster_part("cluster-last", ALONE, lane=LAST),
)
MANY_NODES = replace(CLUSTER[0], workers=REST_TESTBEDS)
QUICK = (*TOOLS, HOUSE, UNIT, *(replace(part, marks="not full") for part in (FUNCTIONAL, CLUSTER[0])))
ALL = (*TOOLS, UNIT_FULL, FUNCTIONAL, SHORT_REGISTRY, MANY_NODES, CLUSTER[1])
REST = (
    replace(UNIT, name="unit-rest", marks="full and not house", seconds=HUNG),
    replace(FUNCTIONAL, name="functional-rest", marks="full"),
    replace(SHORT_REGISTRY, lane=FUNCTIONAL.lane),
    *(replace(part, name=f"{part.name}-rest", marks="full") for part in (MANY_NODES, CLUSTER[1])),
)
SINGLE = (*TOOLS, UNIT, HOUSE, UNIT_FULL, FUNCTIONAL, REGISTRY, cluster_part("cluster"))
RUNS = {"": ("make test", QUICK), "--full": ("make test-full", ALL), "--rest": ("make test-rest", REST)}


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    if options.record:
        return test_results.record()
    parts = {"test": QUICK, "test-full": ALL, "test-rest": REST}[options.which]
    chosen = [part for part in SINGLE if part.name == options.part] if options.part else list(parts)
    if not chosen:
        print(f"test: no part {options.part!r}; parts: {', '.join(part.name for part in SINGLE)}", file=sys.stderr)
        return 2
    before = test_results.load(options.after) if options.after else None
    if options.minutes:
        left = 60 * options.minutes - (before.seconds if before else 0)
        os.environ["TEST_UNTIL"] = str(time.time() + left)  # tests/workers.py
    code = run_and_report(f"make {options.part or options.which}", chosen, options.arguments, before)
    if options.after and before is None:
        print(f"test: no result of an earlier run in {options.after}", file=sys.stderr)
        return 1
    return code


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="test_all.py", allow_abbrev=False)
    which = made.add_mutually_exclusive_group()
    which.add_argument("--full", dest="which", action="store_const", const="test-full", default="test")
    which.add_argument("--rest", dest="which", action="store_const", const="test-rest")
    made.add_argument("--after", type=Path, metavar="FILE", help="summary.json of an earlier run, to add up both")
    made.add_argument("--minutes", type=float, metavar="N", help="begin no test file later, the earlier run included")
    made.add_argument("--record", action="store_true", help="write the last run's duration into the documentation")
    made.add_argument("part", nargs="?", help="one part only")
    made.add_argument("arguments", nargs=argparse.REMAINDER, help="for pytest")
    return made


def run_and_report(
    command: str, chosen: Sequence[SuitePart], arguments: Sequence[str], before: test_results.SuiteRun | None
) -> int:
    prepare_environment()
    if any(part.tests for part in chosen) and (obstacle := no_space()):
        print(f"test: {obstacle}", file=sys.stderr)
        return test_results.finish(command, [PartOutcome("run", failed=1, notes=[obstacle])], 0.0, before)
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started all in the background
    traces = leftovers.Traces() if any(part.system for part in chosen) else None
    began = time.monotonic()
    outcomes: list[PartOutcome] = []
    try:
        wants_programs = is_root() and any(part.system for part in chosen)
        trouble = system.install_missing(RESULTS / "apt.log") if wants_programs else None
        run_parts(chosen, arguments, trouble, outcomes)
    except KeyboardInterrupt:
        outcomes.append(PartOutcome("run", failed=1, notes=["interrupted"]))
    ignore_signals()
    outcomes.append(check_leftovers(traces))
    return test_results.finish(command, outcomes, time.monotonic() - began, before)


def interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def ignore_signals() -> None:
    """Cleaning up takes seconds, and must not be cut."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def is_root() -> bool:
    return os.geteuid() == 0


def prepare_environment() -> None:
    """Tools of .venv first; a hub call that no test meant goes to a closed port and fails at once."""
    system.extend_path()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile the same modules again
    os.environ["PATH"] = f"{BIN}:{BIN.parent}/.bootstrap/uv/bin:{os.environ['PATH']}"
    os.environ.setdefault("HF_ENDPOINT", "http://127.0.0.1:9")
    os.chdir(ROOT)
    RESULTS.mkdir(parents=True, exist_ok=True)
    leftovers.adopt_descendants()


def no_space() -> str:
    """The reason why tests cannot write their files; empty if they can.

    Python takes another folder for a full /tmp; ssh, browsers and shells that tests start do not.
    """
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:
        return f"no temporary folder: {error.strerror}"
    for place, least in ((folder, MIN_FREE), ("/tmp", MIN_TMP)):
        free = shutil.disk_usage(place).free
        if free < least:
            move = "" if place == "/tmp" and place != folder else "; set TMPDIR to a folder with more"
            return f"{place} has {free >> 20} MiB free, tests need {least >> 20} MiB{move}"
    return ""


def run_parts(
    chosen: Sequence[SuitePart], arguments: Sequence[str], trouble: str | None, outcomes: list[PartOutcome]
) -> None:
    """A single lane shows what it does as it does it."""
    without_network(), has_namespaces()  # ask now: what they start is not one of OURS
    lanes: dict[str, list[SuitePart]] = {}
    for part in chosen:
        lanes.setdefault(part.lane, []).append(part)
    last = lanes.pop(LAST, [])
    apart = len(lanes) > 1

    def go(lane: Sequence[SuitePart]) -> None:
        for part in lane:
            if not STOPPED.is_set():
                outcomes.append(run_part(part, arguments, trouble, apart))

    finished = threading.Event()
    with ThreadPoolExecutor(len(lanes) + 2) as pool:
        try:
            if apart:
                pool.submit(tell_progress, finished)
            for together in (list(lanes.values()), [last]):
                for running in [pool.submit(go, lane) for lane in together]:
                    running.result()
        except KeyboardInterrupt:
            STOPPED.set()
            ignore_signals()
            raise
        finally:
            finished.set()
    outcomes.sort(key=lambda outcome: [part.name for part in chosen].index(outcome.part))


def tell_progress(finished: threading.Event) -> None:
    """One line each half minute: what runs, and how far it is."""
    began = time.monotonic()
    while not finished.wait(REPORT_EVERY):
        passed = int(time.monotonic() - began)
        shown = " | ".join(f"{name}{progress_of(path)}" for name, path in sorted(RUNNING.items()))
        print(f"   {passed // 60}:{passed % 60:02}  {shown}", flush=True)


def progress_of(path: Path) -> str:
    try:
        done, total, files, failed = json.loads(path.read_text())
    except (OSError, ValueError):
        return ""
    names = ", ".join(Path(file).stem.removeprefix("test_") for file in files)
    lost = f", {failed} failed: see {path.with_suffix('.failed').relative_to(ROOT)}" if failed else ""
    return f" {done} of {total}{lost}" + (f" ({names})" if names else "")


def run_part(part: SuitePart, arguments: Sequence[str], trouble: str | None, apart: bool = False) -> PartOutcome:
    if reason := cannot_run(part, trouble):
        print(f"== {part.name}: left out: {reason}", flush=True)
        return PartOutcome(part.name, failed=int(runs_in_ci()), skipped=int(not runs_in_ci()), left_out=[reason])
    start = time.monotonic()
    log = RESULTS / f"{part.name}.log" if apart else None
    print(f"== {part.name}" + (f": runs (output: {log.relative_to(ROOT)})" if log else ""), flush=True)
    with open_output(log) as output:
        outcome = run_commands(part, arguments, output)
    outcome.seconds = time.monotonic() - start
    if log and outcome.failed:
        print(f"\n{log.read_text(errors='replace')}")
    if apart:
        counts = f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped"
        print(f"== {part.name}: {counts} in {test_results.minutes(outcome.seconds)}", flush=True)
    return outcome


def run_commands(part: SuitePart, arguments: Sequence[str], output: IO[str] | None) -> PartOutcome:
    test_results.report_of(part.name).unlink(missing_ok=True)
    words = pytest_words(part, arguments) if part.tests else []
    ended = [run_command(part, [*command, *words], output) for command in part.commands]
    codes = [code for code, _ in ended]
    if part.tests:
        outcome = test_results.read_tests(part.name, codes[0], may_be_empty=part.marks.startswith("full"))
    else:
        outcome = PartOutcome(part.name, passed=int(not any(codes)), failed=int(any(codes)))
    outcome.cpu = sum(cpu for _, cpu in ended)
    return outcome


def pytest_words(part: SuitePart, arguments: Sequence[str]) -> list[str]:
    """Functional tests share their files only where each worker can have namespaces of its own."""
    results = [f"--junitxml={test_results.report_of(part.name)}", "-o", f"cache_dir={RESULTS / part.name}-cache"]
    marks = ["-m", part.marks] if part.marks else []
    apart = part.system and not part.root
    if part.workers == 1 or (apart and not has_namespaces()):
        return [*results, *marks, *arguments]
    return [*results, f"--workers={part.workers}", *(["--apart"] if apart else []), *marks, *arguments]


def cannot_run(part: SuitePart, trouble: str | None) -> str | None:
    if part.root and not is_root():
        return "needs root (network namespaces, dockerd, sshd as a system service)"
    if absent := system.missing(part.needs):
        return trouble or f"not installed: {' '.join(absent)}"
    return None


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[IO[str] | None]:
    """A part that runs next to others writes into a file, so that they do not mix their lines."""
    if path is None:
        yield None
        return
    with path.open("w") as file:
        yield file


def run_command(part: SuitePart, command: Sequence[str], output: IO[str] | None = None) -> tuple[int, float]:
    """Return exit code and CPU seconds. Interrupted or out of time, it gets SIGINT and time to clean up; only then is
    it killed. The terminal's Ctrl-C does not reach it, since it has a session of its own. Cluster and functional tests
    have deadlines, so lint, types and unit tests leave them the CPU."""
    wrapped = command if part.network or not part.tests else [*without_network(), *command]
    if part.lane == "tools":
        wrapped = ["nice", "-n", "5", *wrapped]
    progress = RESULTS / f"{part.name}.progress"
    progress.unlink(missing_ok=True)
    progress.with_suffix(".failed").unlink(missing_ok=True)
    environment = {**os.environ, "TEST_PROGRESS": str(progress)}
    with BIRTHS:
        process = subprocess.Popen(
            wrapped,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
        OURS.add(process.pid)
    RUNNING[part.name] = progress
    try:
        return wait_for(process, part)
    finally:
        RUNNING.pop(part.name, None)


def wait_for(process: subprocess.Popen[bytes], part: SuitePart) -> tuple[int, float]:
    end = time.monotonic() + part.seconds
    while time.monotonic() < end and not STOPPED.is_set():
        if ended := reap_process(process):
            return ended
        with BIRTHS:
            leftovers.reap_orphans(OURS)
        STOPPED.wait(0.2)
    if not STOPPED.is_set():
        print(f"test: {part.name} ran longer than {part.seconds:.0f} s and is stopped", file=sys.stderr)
    process.send_signal(signal.SIGINT)
    killed_at = time.monotonic() + ENDING
    while not (ended := reap_process(process)):
        if time.monotonic() > killed_at:
            process.kill()
        time.sleep(0.05)
    return 124, ended[1]


def reap_process(process: subprocess.Popen[bytes]) -> tuple[int, float] | None:
    """Exit code and CPU seconds of a process that has ended, with those of all that it waited for."""
    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    if not pid:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


@functools.cache
def without_network() -> list[str]:
    """The wrapper, as root, for a network namespace with only a loopback, so that a test cannot lean on the network,
    and leases of its own, so that two parts can use this machine as a node at the same time."""
    script = 'ip link set lo up && mkdir -p /run/lock && mount -t tmpfs none /run/lock && exec "$@"'
    wrapper = ["unshare", "--net", "--mount", "sh", "-c", script, "sh"]
    usable = is_root() and not system.missing(["unshare", "ip"])
    return wrapper if usable and subprocess.run([*wrapper, "true"], capture_output=True).returncode == 0 else []


@functools.cache
def has_namespaces() -> bool:
    """Not every container gives them, and without root not every kernel."""
    program = [str(BIN / "python"), "-c", "import namespaces; namespaces.enter_namespaces()"]
    return subprocess.run(program, cwd=TESTS, capture_output=True).returncode == 0


def check_leftovers(before: leftovers.Traces | None) -> PartOutcome:
    """Checks for leftovers. before: None if no part makes namespaces or containers: new ones are then another run's.
    The testbeds that a cluster run started are ours to stop; one that was up before is nobody's leftover."""
    start = time.monotonic()
    if leftovers.wait_for_end() and before is not None:
        with ThreadPoolExecutor(REST_TESTBEDS) as pool:
            list(pool.map(stop_testbed, range(REST_TESTBEDS)))
    alive = [f"process {pid}: {command}" for pid, command in leftovers.wait_for_end().items()]
    leftovers.stop_descendants()
    found = [*alive, *(leftovers.Traces().since(before) if before else ())]
    notes = [f"left behind: {what}" for what in found]
    return PartOutcome("leftovers", failed=int(bool(found)), seconds=time.monotonic() - start, notes=notes)


def stop_testbed(number: int) -> None:
    down = [str(BIN / "python"), "-m", "testbed", "down"]
    environment = {**os.environ, "TEST_WORKER": str(number)}
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(down, cwd=ROOT / "tools", env=environment, capture_output=True, timeout=120)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
