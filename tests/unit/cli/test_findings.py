"""Findings as a user reads them, wherever they are shown."""

from dataclasses import replace

import pytest
from click import unstyle

from sparkwright.cli import columns
from sparkwright.cli.columns import findings_text
from sparkwright.domain.finding import Finding, Severity
from unit.cli.test_check_text import ALIKE, NAMES, WARN, fixable


def finding_lines(*findings: Finding, nodes: tuple[str, ...] = NAMES) -> list[str]:
    return unstyle(findings_text(findings, nodes, fixes=True)).splitlines()


def test_what_all_nodes_share_is_reported_once() -> None:
    """Guards against four screens of one defect."""
    assert finding_lines(*ALIKE) == [
        "WARN     MEM013  all 3 nodes: programs were killed",
        "    evidence: oom_kill 1",
        "    cause:    no memory",
        "    remedy:   lower the fraction",
    ]
    assert finding_lines(*ALIKE[:2])[0] == "WARN     MEM013  a, b: programs were killed"


def test_what_differs_is_shown_with_its_node() -> None:
    """Guards the evidence: each node's own figure is there, and so is what --fix would do to each."""
    told = finding_lines(fixable("a", 1), fixable("b", 2), fixable("c", 1))
    assert told[1:3] == ["    evidence: a, c: vm.min_free_kbytes = 1", "              b: vm.min_free_kbytes = 2"]
    says = "vm.min_free_kbytes = 3145728 ({} before), now and at each boot"
    assert told[5:] == [f"    --fix:    a, c: {says.format(1)}", f"              b: {says.format(2)}"]


def test_titles_that_differ_are_lines_of_one_entry() -> None:
    """Guards a defect whose title names a file or an address: its cause and remedy are not repeated."""
    told = finding_lines(WARN, replace(WARN, subject="b", title="another program was killed"))
    assert told[:2] == [
        "WARN     MEM013  a: programs were killed",
        "                 b: another program was killed",
    ]
    assert len(told) == 5


def test_remedies_that_differ_only_in_the_node_are_one() -> None:
    """Guards `on NODE: command`: on several nodes it is one line."""
    told = finding_lines(*(replace(one, remedy=f"on {one.subject}: sudo reboot") for one in ALIKE))
    assert told[-1] == "    remedy:   on each: sudo reboot"
    assert finding_lines(replace(WARN, remedy="on a: sudo reboot"))[-1] == "    remedy:   on a: sudo reboot"


def test_what_only_some_report_names_them() -> None:
    """Guards evidence that only one node has: it is shown as that node's, not as everybody's."""
    assert finding_lines(WARN, replace(WARN, subject="b", evidence=""))[1] == "    evidence: a: oom_kill 1"


def test_findings_about_several_nodes_name_each_once() -> None:
    """Guards pairs of nodes: what all pairs share reads as all nodes, and not as a list of pairs."""
    pairs = [replace(WARN, subject=f"{one}, {other}", evidence=one) for one, other in ("ab", "ac", "bc")]
    assert finding_lines(*pairs)[:3] == [
        "WARN     MEM013  all 3 nodes: programs were killed",
        "    evidence: all 3 nodes: a",
        "              b, c: b",
    ]


def test_severities_are_not_mixed() -> None:
    """Guards that a block on one node is not hidden in a note on another."""
    told = finding_lines(replace(WARN, severity=Severity.BLOCK), replace(WARN, subject="b"))
    assert [line.split()[0] for line in told if "MEM013" in line] == ["BLOCK", "WARN"]


def test_lines_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards that no line, including the first, is wider than a terminal of 80 columns."""
    monkeypatch.setattr(columns.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    long = replace(WARN, title="a long title " * 8, evidence="much evidence " * 20)
    told = finding_lines(*(replace(long, subject=name) for name in NAMES[:2]))
    assert len(told) > 6
    assert max(map(len, told)) < 80


def test_only_check_reports_what_its_fix_would_do() -> None:
    """Guards `plan`, `up` and `diagnose`, which have no --fix and must not propose it."""
    assert "--fix" not in unstyle(findings_text((fixable("a", 1),)))
