"""The parts of `make test` and `make test-full`: `test_all.py [--full] [PART] [arguments for pytest]`.

`make test` leaves out what is marked `full`: more rows of a table of which some rows are run, properties, the testbed's
own tests. A single part is run whole, but for `unit`.

Closes with `N passed, N failed, N skipped`: the sum over all pytest runs, where each tool (ruff, mypy, import-linter)
counts as one. What cannot run here is listed with the reason; under CI=true that is a failure, and so is every skipped
test but those whose reason begins with `hardware:` or with `data:` (recordings that are not part of the project).

Functional and cluster tests wait for nodes and engines most of their time: each kind has a lane of its own. Cluster
tests have two testbeds, each with a worker that takes the next file when it has ended one (tests/workers.py);
functional tests share processes and CPUs of this machine, and run one after the other. Lanes run in parallel, and the
output of each part is shown when it has ended. The slowest tests are listed at the end. Nodes are containers that share
one kernel, whose figure of memory pressure is that of all of them (cgroup v1 has none a container): what makes a node
short of memory runs when all lanes have ended.

Up to three failed tests of a functional or cluster part run a second time, alone, when their lane has ended. What
passes then counts as passed and is listed by name in the closing report; the output of the first failure stays.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

import leftovers
import system

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
RESULTS = ROOT / "build" / "tests"
NO_TESTS = 5  # pytest's exit code
HUNG = 4500.0  # a machine that is busy with other things is no reason to stop a good run; CI has 90 minutes
ALLOWED_SKIPS = ("hardware:", "data:")
CPUS = min(len(os.sched_getaffinity(0)), 8)
TESTBEDS = 2
SLOWEST = 10
MOST_AGAIN = 3  # of more failed tests in a part none is run a second time
SOME_FAILED = 1  # pytest's exit code
STOPPED = threading.Event()  # by the user: no further part begins
OURS: set[int] = set()  # the parts' own processes; all other children are orphans of what they started
BIRTHS = threading.Lock()


@dataclass(frozen=True)
class Part:
    """One line of the closing table. `seconds`: longer counts as hung. `system`: as root, install what it may call;
    what is in `needs` it cannot do without. `lane`: parts of one lane run one after the other, lanes run in parallel.
    `workers`: processes that share the test files (tests/workers.py). `marks`: for pytest's `-m`. `again`: what failed
    runs a second time."""

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
    again: bool = False


@dataclass
class Outcome:
    """`ended`: exit code of the first command. `again`: tests that passed at the second try."""

    part: str
    ended: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)


def pytest_part(name: str, paths: Sequence[str] = (), **more: object) -> Part:
    options = (f"--junitxml={RESULTS / name}.xml", "-o", f"cache_dir={RESULTS / name}-cache")
    command = ("python", "-m", "pytest", *(paths or (f"tests/{name}",)), *options)
    return Part(name, (command,), tests=True, **more)  # type: ignore[arg-type]


def cluster_part(name: str, paths: Sequence[str] = (), **more: object) -> Part:
    needs = tuple(system.PACKAGES)
    return pytest_part(name, paths, seconds=HUNG, network=True, system=True, needs=needs, root=True, again=True, **more)


PARTS = (
    Part("lint", (("ruff", "check", "."), ("ruff", "format", "--check", "."))),
    Part("types", (("mypy",), ("mypy", "--strict", "scripts"))),
    Part("layers", (("lint-imports", "--no-cache"),)),
    pytest_part("unit", ("tests/unit", "-m", "not full"), workers=CPUS),
    pytest_part("house", ("tests/unit/test_house.py",)),
    pytest_part("unit-full", ("tests/unit",), workers=CPUS),
    pytest_part("functional", seconds=HUNG, system=True, again=True, lane="functional"),
    pytest_part("registry", network=True),
    cluster_part("cluster"),
)
LAST = "last"  # the lane that runs alone
ALONE = ("tests/cluster/test_load_guard.py",)
ALL = (
    *(part for part in PARTS if part.name not in ("unit", "house", "cluster")),
    cluster_part(
        "cluster", ("tests/cluster", *(f"--ignore={path}" for path in ALONE)), lane="cluster", workers=TESTBEDS
    ),
    cluster_part("cluster-last", ALONE, lane=LAST),
)
QUICK = (
    *(part for part in PARTS if part.name in ("unit", "house")),
    *(replace(part, marks="not full") if part.tests else part for part in ALL if part.name != "unit-full"),
)


def main(arguments: Sequence[str]) -> int:
    whole, arguments = "--full" in arguments[:1], arguments[int("--full" in arguments[:1]) :]
    parts = ALL if whole else QUICK
    chosen = [part for part in PARTS if part.name == arguments[0]] if arguments else list(parts)
    if not chosen:
        print(f"test: no part {arguments[0]!r}; parts: {', '.join(part.name for part in PARTS)}", file=sys.stderr)
        return 2
    prepare_environment()
    before = leftovers.Traces() if any(part.system for part in chosen) else None
    trouble = system.install_missing(RESULTS / "apt.log") if is_root() and any(part.system for part in chosen) else None
    began = time.monotonic()
    outcomes: list[Outcome] = []
    try:
        run_parts(chosen, arguments[1:], trouble, outcomes)
    except KeyboardInterrupt:
        outcomes.append(Outcome("run", failed=1, notes=["stopped by the user"]))
    outcomes.append(check_leftovers(before, excused=any(outcome.again for outcome in outcomes)))
    return report(outcomes, time.monotonic() - began)


def is_root() -> bool:
    return os.geteuid() == 0


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def prepare_environment() -> None:
    """Tools of .venv first; a hub call that no test meant goes to a closed port and fails at once."""
    system.extend_path()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile the same modules again
    os.environ["PATH"] = f"{BIN}:{BIN.parent}/.bootstrap/uv/bin:{os.environ['PATH']}"
    os.environ.setdefault("HF_ENDPOINT", "http://127.0.0.1:9")
    os.chdir(ROOT)
    RESULTS.mkdir(parents=True, exist_ok=True)
    leftovers.adopt_descendants()


def run_parts(chosen: Sequence[Part], arguments: Sequence[str], trouble: str | None, outcomes: list[Outcome]) -> None:
    """A single lane shows what it does as it does it."""
    without_network()  # asks now: what it starts is not one of OURS
    lanes: dict[str, list[Part]] = {}
    for part in chosen:
        lanes.setdefault(part.lane, []).append(part)
    last = lanes.pop(LAST, [])

    def go(lane: Sequence[Part]) -> None:
        ran: list[tuple[Part, Outcome]] = []
        for part in lane:
            if not STOPPED.is_set():
                ran.append((part, run_part(part, arguments, trouble, apart=len(lanes) > 1)))
        outcomes.extend(outcome for _, outcome in ran)
        for part, outcome in ran:
            if part.again and not STOPPED.is_set():
                try_again(part, outcome, arguments, apart=len(lanes) > 1)

    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            for together in (list(lanes.values()), [last]):
                for running in [pool.submit(go, lane) for lane in together]:
                    running.result()
        except KeyboardInterrupt:
            STOPPED.set()
            raise
    outcomes.sort(key=lambda one: [part.name for part in (*QUICK, *ALL, *PARTS)].index(one.part))


def run_part(part: Part, arguments: Sequence[str], trouble: str | None, apart: bool = False) -> Outcome:
    if reason := cannot_run(part, trouble):
        print(f"\n== {part.name}: left out: {reason}", flush=True)
        return Outcome(part.name, failed=int(in_ci()), skipped=int(not in_ci()), left_out=[reason])
    start = time.monotonic()
    outcome = run_whole(part, arguments, apart)
    outcome.seconds = time.monotonic() - start
    return outcome


def run_whole(part: Part, arguments: Sequence[str], apart: bool) -> Outcome:
    report_of(part).unlink(missing_ok=True)
    marks = ["-m", part.marks] if part.marks else []
    words = [*workers(part), *marks, *arguments]
    with output_of(part, apart) as output:
        ended = [run_command(part, [*command, *words], output) for command in part.commands]
    outcome = read_tests(part, ended[0]) if part.tests else Outcome(part.name, failed=int(any(ended)))
    outcome.passed += int(not part.tests and not any(ended))
    return outcome


def try_again(part: Part, outcome: Outcome, arguments: Sequence[str], apart: bool) -> None:
    """Only the tests that failed; none when pytest itself was stopped or broke, or too many failed."""
    failed, _ = verdicts(part)
    if outcome.ended != SOME_FAILED or not 0 < len(failed) <= MOST_AGAIN:
        return
    start, name = time.monotonic(), f"{part.name}-again"
    more = ("--last-failed", "--last-failed-no-failures=none", f"--junitxml={RESULTS / name}.xml")
    again = replace(part, name=name, workers=1, commands=tuple((*command, *more) for command in part.commands))
    run_whole(again, arguments, apart)
    failed_again, passed = verdicts(again)
    outcome.again = sorted(failed & passed - failed_again)
    outcome.passed += len(outcome.again)
    outcome.failed -= len(outcome.again)
    outcome.seconds += time.monotonic() - start


def verdicts(part: Part) -> tuple[set[str], set[str]]:
    """Names of the tests that failed, and of those that passed."""
    if not report_of(part).exists():
        return set(), set()
    cases = list(ElementTree.parse(report_of(part)).getroot().iter("testcase"))
    failed = {name_of(case) for case in cases if is_failed(case)}
    return failed, {name_of(case) for case in cases if case.find("skipped") is None} - failed


def name_of(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '')}::{case.get('name', '')}"


def is_failed(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def workers(part: Part) -> list[str]:
    """Those of functional tests have a network and leases each; where that cannot be, there is only one."""
    if part.workers == 1 or (part.system and not part.root and not without_network()):
        return []
    return [f"--workers={part.workers}", *(["--apart"] if part.system and not part.root else [])]


def cannot_run(part: Part, trouble: str | None) -> str | None:
    if part.root and not is_root():
        return "needs root (network namespaces, dockerd, sshd as a system service)"
    if absent := system.missing(part.needs):
        return trouble or f"not installed: {' '.join(absent)}"
    return None


@contextlib.contextmanager
def output_of(part: Part, apart: bool) -> Iterator[IO[str] | None]:
    """None: our own. Apart: a file, which is shown as a whole at the end, so that two parts do not mix their lines."""
    if not apart:
        print(f"\n== {part.name}", flush=True)
        yield None
        return
    path = RESULTS / f"{part.name}.log"
    sys.stdout.write(f"== {part.name}: runs; its output follows at its end ({path.relative_to(ROOT)})\n")
    sys.stdout.flush()
    with path.open("w") as file:
        yield file
    sys.stdout.write(f"\n== {part.name}\n{path.read_text(errors='replace')}")
    sys.stdout.flush()


def run_command(part: Part, command: Sequence[str], output: IO[str] | None = None) -> int:
    """Interrupted or out of time, it gets SIGINT and a minute to clean up; only then is it killed."""
    wrapped = command if part.network or not part.tests else [*without_network(), *command]
    with BIRTHS:
        process = subprocess.Popen(wrapped, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        OURS.add(process.pid)
    end = time.monotonic() + part.seconds
    while time.monotonic() < end and not STOPPED.is_set():
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(1)
        with BIRTHS:
            leftovers.reap_orphans(OURS)
    if not STOPPED.is_set():  # a terminal's Ctrl-C has reached it, too
        print(f"test: {part.name} ran longer than {part.seconds:.0f} s and is stopped", file=sys.stderr)
        process.send_signal(signal.SIGINT)
    end_politely(process)
    return 124


def end_politely(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@functools.cache
def without_network() -> list[str]:
    """As root: a network namespace that has a loopback and nothing else, so that a test cannot lean on the network, and
    leases of its own, so that two parts can use this machine as a node at the same time."""
    script = 'ip link set lo up && mkdir -p /run/lock && mount -t tmpfs none /run/lock && exec "$@"'
    wrapper = ["unshare", "--net", "--mount", "sh", "-c", script, "sh"]
    usable = is_root() and not system.missing(["unshare", "ip"])
    return wrapper if usable and subprocess.run([*wrapper, "true"], capture_output=True).returncode == 0 else []


def report_of(part: Part) -> Path:
    return RESULTS / f"{part.name}.xml"


def read_tests(part: Part, ended: int) -> Outcome:
    outcome = Outcome(part.name, ended)
    if ended == NO_TESTS:
        outcome.left_out.append(f"no test found in tests/{part.name}")
    elif report_of(part).exists():
        count(ElementTree.parse(report_of(part)).getroot(), outcome)
    outcome.failed += int(bool(ended) and not outcome.failed and (ended != NO_TESTS or in_ci()))
    return outcome


def count(root: ElementTree.Element, outcome: Outcome) -> None:
    for case in root.iter("testcase"):
        skip = case.find("skipped")
        if is_failed(case):
            outcome.failed += 1
        elif skip is None:
            outcome.passed += 1
        else:
            count_skipped(skip.get("message", ""), outcome)


def count_skipped(reason: str, outcome: Outcome) -> None:
    forbidden = in_ci() and not reason.startswith(ALLOWED_SKIPS)
    outcome.failed += int(forbidden)
    outcome.skipped += int(not forbidden)
    outcome.left_out.append(reason)


def check_leftovers(before: leftovers.Traces | None, excused: bool) -> Outcome:
    """before: None when no part makes namespaces or containers: what appeared is then that of another run. The testbeds
    that a cluster run started are ours to stop; one that was up before is nobody's leftover. excused: a test has failed
    first and passed then: what is found is listed, and ended, and is no failure."""
    if leftovers.wait_for_end():
        for number in range(TESTBEDS):
            down = [str(BIN / "python"), "-m", "testbed", "down"]
            environment = {**os.environ, "TEST_WORKER": str(number)}
            subprocess.run(down, cwd=ROOT / "tests", env=environment, capture_output=True)
    alive = [f"process {pid}: {command}" for pid, command in leftovers.wait_for_end().items()]
    leftovers.stop_descendants()
    found = [*alive, *(leftovers.Traces().since(before) if before else ())]
    failed = int(bool(found) and not excused)
    return Outcome("leftovers", failed=failed, notes=[f"left behind: {what}" for what in found])


def report(outcomes: Sequence[Outcome], seconds: float) -> int:
    print(f"\n{'part':<12} {'passed':>7} {'failed':>7} {'skipped':>8} {'time':>9}")
    for one in outcomes:
        print(f"{one.part:<12} {one.passed:>7} {one.failed:>7} {one.skipped:>8} {one.seconds:>7.1f} s")
    for one in outcomes:
        for note in one.notes:
            print(f"{one.part}: {note}")
    list_left_out(outcomes)
    list_again(outcomes)
    list_slowest(outcomes)
    failed = sum(one.failed for one in outcomes)
    passed, skipped = sum(one.passed for one in outcomes), sum(one.skipped for one in outcomes)
    print(f"\nall of it took {seconds / 60:.1f} min\n{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return int(failed > 0)


def list_left_out(outcomes: Sequence[Outcome]) -> None:
    reasons = [(one.part, reason) for one in outcomes for reason in one.left_out]
    if not reasons:
        return
    print("\nleft out" + (" (a failure here: CI is set)" if in_ci() else ""))
    for part, reason in dict.fromkeys(reasons):
        times = reasons.count((part, reason))
        print(f"  {part}: {reason}" + (f" ({times} tests)" if times > 1 else ""))


def list_again(outcomes: Sequence[Outcome]) -> None:
    names = [f"  {one.part}: {name}" for one in outcomes for name in one.again]
    if names:
        print("\npassed at the second try (each is a defect of the test or of the product)", *names, sep="\n")


def list_slowest(outcomes: Sequence[Outcome]) -> None:
    reports = [path for one in outcomes if (path := RESULTS / f"{one.part}.xml").exists()]
    cases = [case for path in reports for case in ElementTree.parse(path).getroot().iter("testcase")]
    if cases:
        print("\nslowest tests")
    for case in sorted(cases, key=lambda case: -float(case.get("time", 0)))[:SLOWEST]:
        print(f"  {float(case.get('time', 0)):>6.1f} s  {name_of(case)[:160]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
