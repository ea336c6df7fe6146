"""Results of a test run: counts from pytest's reports, the closing table, `build/tests/summary.json`, and the one line
of the documentation that says how long it takes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "tests"
SUMMARY = RESULTS / "summary.json"
DURATIONS = RESULTS / "durations.json"  # seconds per test file, for tests/workers.py
PAGE = ROOT / "docs" / "guides" / "testing.md"
NO_TESTS = 5  # pytest's exit code
ALLOWED_SKIPS = ("hardware:", "data:", "time:")
SLOWEST = 10


@dataclass
class PartOutcome:
    """One part. seconds: by the clock. cpu: seconds of the part's processes on all cores, without what runs on behind
    them (the testbed's nodes)."""

    part: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SuiteRun:
    """All parts of `make test`, say. seconds: from the first part's start to the last one's end."""

    command: str
    outcomes: list[PartOutcome]
    seconds: float
    cores: int
    slowest: list[tuple[float, str, str]]  # seconds, part, test

    @property
    def failed(self) -> int:
        return sum(outcome.failed for outcome in self.outcomes)


def runs_in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def report_of(name: str) -> Path:
    return RESULTS / f"{name}.xml"


def read_tests(name: str, exit_code: int, may_be_empty: bool) -> PartOutcome:
    """Count what pytest's report of a part holds. A part that broke without a failed test has failed."""
    outcome = PartOutcome(name)
    for case in cases_of(name):
        skip = case.find("skipped")
        if is_failed(case):
            outcome.failed += 1
        elif skip is None:
            outcome.passed += 1
        else:
            count_skipped(skip.get("message", ""), outcome)
    if exit_code == NO_TESTS and may_be_empty:
        return outcome
    if exit_code == NO_TESTS:
        outcome.left_out.append("no test found")
        outcome.failed += int(runs_in_ci())
    elif exit_code and not outcome.failed:
        outcome.failed += 1
        outcome.notes.append(f"pytest ended with exit code {exit_code}")
    return outcome


def cases_of(name: str) -> Iterator[ElementTree.Element]:
    try:
        yield from ElementTree.parse(report_of(name)).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return


def is_failed(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def count_skipped(reason: str, outcome: PartOutcome) -> None:
    forbidden = runs_in_ci() and not reason.startswith(ALLOWED_SKIPS)
    outcome.failed += int(forbidden)
    outcome.skipped += int(not forbidden)
    outcome.left_out.append(reason)


def finish(command: str, outcomes: Sequence[PartOutcome], seconds: float, before: SuiteRun | None) -> int:
    """Print and store the result, together with that of the run before; return the exit code."""
    timed = [
        (float(case.get("time", 0)), outcome.part, f"{case.get('classname', '')}::{case.get('name', '')}")
        for outcome in outcomes
        for case in cases_of(outcome.part)
    ]
    cores = len(os.sched_getaffinity(0))
    run = SuiteRun(command, list(outcomes), seconds, cores, sorted(timed, reverse=True)[:SLOWEST])
    store_durations(timed)
    if before:
        slowest = sorted([*before.slowest, *run.slowest], reverse=True)[:SLOWEST]
        whole = f"{before.command} + {command}"
        run = SuiteRun(whole, [*before.outcomes, *outcomes], before.seconds + seconds, cores, slowest)
    SUMMARY.write_text(json.dumps(asdict(run), indent=1) + "\n")
    print_results(run)
    return int(run.failed > 0)


def store_durations(timed: Sequence[tuple[float, str, str]]) -> None:
    """Files that this run did not measure keep their figure."""
    found: dict[str, float] = {}
    for seconds, _, name in timed:
        file = f"{name.partition('::')[0].replace('.', '/')}.py"
        found[file] = round(found.get(file, 0.0) + seconds, 2)
    try:
        known = json.loads(DURATIONS.read_text())
    except (OSError, ValueError):
        known = {}
    DURATIONS.write_text(json.dumps(known | found, indent=0) + "\n")


def load(path: Path) -> SuiteRun | None:
    """None if there is no such run."""
    try:
        stored = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    slowest = [(float(seconds), str(part), str(name)) for seconds, part, name in stored["slowest"]]
    outcomes = [PartOutcome(**outcome) for outcome in stored["outcomes"]]
    return SuiteRun(stored["command"], outcomes, stored["seconds"], stored["cores"], slowest)


def print_results(run: SuiteRun) -> None:
    outcomes = run.outcomes
    cpu = sum(outcome.cpu for outcome in outcomes)
    print(f"\n{'part':<16} {'passed':>6} {'failed':>6} {'skipped':>7} {'time':>9} {'CPU':>9}  share of CPU")
    for outcome in outcomes:
        counts = f"{outcome.passed:>6} {outcome.failed:>6} {outcome.skipped:>7}"
        share = f"{100 * outcome.cpu / cpu:.0f} %" if cpu else ""
        print(f"{outcome.part:<16} {counts} {outcome.seconds:>7.1f} s {outcome.cpu:>7.1f} s  {share:>5}")
    for outcome in outcomes:
        for note in outcome.notes:
            print(f"{outcome.part}: {note}")
    list_left_out(outcomes)
    if run.slowest:
        print("\nslowest tests")
    for seconds, part, name in run.slowest:
        print(f"  {seconds:>6.1f} s  {part}: {name[:150]}")
    passed, skipped = (sum(getattr(outcome, what) for outcome in outcomes) for what in ("passed", "skipped"))
    took = f"{run.command}: {minutes(run.seconds)} on {run.cores} cores, {cpu:.0f} s of CPU"
    print(f"\n{took}\n{passed} passed, {run.failed} failed, {skipped} skipped", flush=True)


def list_left_out(outcomes: Sequence[PartOutcome]) -> None:
    reasons = [(outcome.part, reason) for outcome in outcomes for reason in outcome.left_out]
    if not reasons:
        return
    print("\nleft out" + (" (a failure here: CI is set)" if runs_in_ci() else ""))
    for part, reason in dict.fromkeys(reasons):
        times = reasons.count((part, reason))
        print(f"  {part}: {reason}" + (f" ({times} tests)" if times > 1 else ""))


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} minutes" if seconds >= 60 else f"{seconds:.0f} s"


def record(page: Path = PAGE, summary: Path = SUMMARY) -> int:
    """Write how long the last run took into the page's line about that command."""
    run = load(summary)
    label = f"- `{run.command}`: " if run else ""
    lines = page.read_text().splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if label and line.startswith(label)]
    if run is None or run.failed or not places:
        reason = "there is no run" if run is None else f"{run.command}: {run.failed} failed; only a whole run counts"
        print(f"test: nothing recorded: {reason}", file=sys.stderr)
        return 1
    cpu = sum(outcome.cpu for outcome in run.outcomes)
    lines[places[0]] = f"{label}{minutes(run.seconds)} on {run.cores} cores, {cpu:.0f} s of CPU\n"
    page.write_text("".join(lines))
    return 0
