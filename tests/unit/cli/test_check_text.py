"""The result of a check, as a user reads it."""

from dataclasses import replace

from pytest import MonkeyPatch

from sparkwright.app.check.checking import CheckReport
from sparkwright.cli.check_fix import least_severe, quiet_lines, summary
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.finding import Finding, Severity
from sparkwright.remote import repair
from unit.checks.samples import healthy

NAMES = ("a", "b", "c")
WARN = Finding("MEM013", Severity.WARN, "a", "programs were killed", "oom_kill 1", "no memory", "lower the fraction")
ALIKE = tuple(replace(WARN, subject=name) for name in NAMES)


def fixable(node: str, before: int) -> Finding:
    evidence = f"vm.min_free_kbytes = {before}"
    fix = repair.sysctl_fix(node, "vm.min_free_kbytes", 3145728, before)
    return Finding("MEM009", Severity.INFO, node, "too little is kept free", evidence, "the default", "raise it", fix)


def checked(*findings: Finding, **changes: object) -> CheckReport:
    made = CheckReport(findings, (), 3, dict.fromkeys(NAMES, healthy("spark-1")), {}, 1.234)
    return replace(made, **changes)  # type: ignore[arg-type]


def test_least_severity() -> None:
    """Guards --severity: what weighs as much is still shown."""
    both = (replace(WARN, severity=Severity.BLOCK), WARN, fixable("a", 1))
    assert [one.severity for one in least_severe(both, Severity.WARN)] == [Severity.BLOCK, Severity.WARN]
    assert least_severe(both, Severity.INFO) == list(both)


def test_last_line() -> None:
    """Guards the sum: nodes, time, counts by severity, what is hidden, what --fix fixes."""
    assert summary(checked()) == "all 3 nodes answered in 1.2 s: no findings"
    found = checked(*ALIKE, fixable("a", 1))
    told = "all 3 nodes answered in 1.2 s: 4 findings (3 warn, 1 info)"
    assert summary(found) == f"{told}; `sparkwright check --fix` fixes 1 (1 as root)"
    assert "; 1 not shown (--severity info); " in summary(found, Severity.WARN)
    lost = checked(WARN, lost=(Unreachable("c", "no route"),))
    assert summary(lost) == "2 of 3 nodes answered in 1.2 s: 1 finding (1 warn)"


def test_no_answer_is_no_good_news() -> None:
    """Guards the last line when no node could be reached: `no findings` would be read as good."""
    nobody = checked(lost=(Unreachable("a", "x"), Unreachable("b", "x"), Unreachable("c", "x")))
    assert summary(nobody) == "none of 3 nodes answered: nothing was checked"


def test_what_is_ignored_or_old_is_a_line(monkeypatch: MonkeyPatch) -> None:
    """Guards that nothing disappears without a word."""
    monkeypatch.setenv("TZ", "UTC")
    found = checked(ignored=ALIKE[:2], old=((WARN, 0.0),))
    first, second = quiet_lines(found)
    assert first.startswith("seen before  MEM013  a: oom_kill 1 (first seen 19")
    assert second == "2 ignored: MEM013"
