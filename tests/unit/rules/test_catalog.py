"""The catalog as a whole: every rule is complete, listed, documented and never raises."""

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkwright.domain.facts import NOT_ASKED, Docker, Driver, Gpu, GpuProcess, Listener, NodeFacts, Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.host_facts import KernelLog
from sparkwright.domain.ledger import LedgerLine, MemoryLedger, Origin
from sparkwright.facts.kernel import WORTH
from sparkwright.planner.ledger import ledger
from sparkwright.rules import compat, preflight
from sparkwright.rules.catalog import RULES, check_all, worst_first
from unit.rules import door_cases, fabric_cases, host_cases, host_values, link_values, recipe_cases, samples, test_rules
from unit.rules.samples import ABSENT, BY_PATH, NODES, ODD, PLAYED, READY, RECIPE, WHOLE, context, healthy
from unit.rules.test_rules import PARTIAL

HEADINGS = ["Detects", "Why", "Evidence", "Remedy", "References"]
# One table of cases for each family of rules.
TABLES: tuple[Any, ...] = (test_rules, host_cases, fabric_cases, recipe_cases, door_cases)
FOLDERS = [Path(package.__path__[0]) for package in (preflight, compat)]
FILES = sorted(p.stem for f in FOLDERS for p in f.glob("*.py") if re.match(r"[a-z]+[0-9]{3}_", p.stem))


def name(rule: object) -> str:
    assert isinstance(rule, ModuleType)
    return rule.__name__.rpartition(".")[2]


def lacking(rule: Any) -> list[str]:
    there = {
        "headings": re.findall(r"^([A-Z][a-z]+):", rule.__doc__, re.MULTILINE) == HEADINGS,
        "code": re.fullmatch(r"[A-Z]+[0-9]{3}", rule.CODE) and name(rule).startswith(rule.CODE.lower() + "_"),
        "status": rule.STATUS in ("stable", "preview"),
        "severity": isinstance(rule.SEVERITY, Severity),
        "title": rule.TITLE and not rule.TITLE.endswith("."),
    }
    return [what for what, good in there.items() if not good]


def test_every_rule_is_complete() -> None:
    """Guards that a rule has what the documentation and the gate need."""
    assert {name(rule): lacks for rule in RULES if (lacks := lacking(rule))} == {}


def test_every_file_is_in_the_catalog_once() -> None:
    """Guards that no rule is written and forgotten, and that no code names two defects."""
    assert sorted(name(rule) for rule in RULES) == FILES
    assert len({rule.CODE for rule in RULES}) == len(RULES)


def test_every_rule_has_cases_of_both_kinds() -> None:
    """Guards that each rule is shown to fire and to be silent."""
    firing = [code for table in TABLES for code in table.FIRING]
    assert {rule.CODE for rule in RULES} == set(firing) == {code for table in TABLES for code, _, _ in table.SILENT}
    assert len(firing) == len(set(firing))


KERNEL_LINES = sorted(
    {
        note.text
        for table in TABLES
        for where in table.FIRING.values()
        for facts in where.facts.values()
        if isinstance(facts.kernel_log, KernelLog)
        for note in facts.kernel_log.notes
    }
)


@pytest.mark.parametrize("line", KERNEL_LINES)
def test_lines_that_rules_look_for_leave_the_node(line: str) -> None:
    """Guards that the node's own filter of its kernel log lets pass what a rule would find there."""
    assert re.search("|".join(WORTH), line)


def test_worst_comes_first_and_equals_stay_in_order() -> None:
    """Guards the order that the user reads, and that what two rules say alike is said once."""
    order = [Severity.INFO, Severity.WARN, Severity.BLOCK, Severity.OVERRIDE, Severity.WARN]
    findings = [Finding(f"X00{i}", severity, "node", "title") for i, severity in enumerate(order)]
    assert [f.code for f in worst_first([*findings, findings[1]])] == ["X002", "X003", "X001", "X004", "X000"]


ANY = st.sampled_from([ODD, NOT_ASKED])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **host_values.VALUES,
    **link_values.VALUES,
    "memory": st.builds(samples.memory, st.floats(0, 200), st.floats(0, 200)),
    "gpus": st.sampled_from([(), (Gpu("NVIDIA GB10", "x", ODD, ODD),)]),
    "gpu_processes": st.sampled_from([(), (GpuProcess(1, "", ODD),), (GpuProcess(2, "a/", 9**12),)]),
    "driver": st.builds(Driver, st.sampled_from([ODD, "", "590", "590.1", "57.0"]), st.sampled_from([ODD, "580.1"])),
    "docker": st.builds(replace, st.just(READY), can_raise_memlock=st.sampled_from([ODD, False]), root=st.text())
    | st.just(Docker(""))
    | link_values.DOCKER,
    "listeners": st.sampled_from([(), (Listener("", 8000),), (Listener("::", 25000, "x"),)]) | link_values.LISTENERS,
    "ranks": st.sampled_from([(), (samples.rank(""),), (samples.rank("big"), samples.rank("b", number=1))]),
}


@st.composite
def some_facts(draw: st.DrawFn, node: str) -> NodeFacts:
    names = [field.name for field in fields(NodeFacts) if field.name not in ("node", "at")]
    changed = {key: draw(ANY | VALUES[key] if key in VALUES else ANY) for key in names if draw(st.booleans())}
    return healthy(node, **changed)


CHECKPOINTS = st.dictionaries(st.sampled_from([*NODES, "else"]), st.sampled_from([ODD, ABSENT, WHOLE, PARTIAL]))
EMPTY = MemoryLedger("spark-1", LedgerLine("pool", 0, Origin.ASSUMED), ())


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    first=some_facts("spark-1"),
    second=some_facts("spark-2"),
    recipe=st.sampled_from([None, RECIPE, BY_PATH, PLAYED]),
    checkpoints=CHECKPOINTS,
    planned=st.booleans(),
)
def test_no_context_makes_a_rule_raise(
    first: NodeFacts, second: NodeFacts, recipe: Any, checkpoints: Any, planned: bool
) -> None:
    """Guards that facts that lack anything give findings or silence, and never an exception."""
    facts = {"spark-1": first, "spark-2": second}
    where = replace(context(recipe=recipe), facts=facts, checkpoints=checkpoints)
    if recipe and planned:
        where = replace(where, ledgers=(EMPTY, *(ledger(recipe, f, WHOLE, 2) for f in facts.values())))
    else:
        where = replace(where, specs=(), ledgers=(), images={})
    assert all(isinstance(finding, Finding) for finding in check_all(where))


def unknown_everywhere() -> Iterator[NodeFacts]:
    for node in NODES:
        yield NodeFacts(node, 0.0)


@pytest.mark.parametrize("recipe", [None, RECIPE, BY_PATH, PLAYED])
def test_nothing_known_is_nothing_found(recipe: Any) -> None:
    """Guards that what is not known is never held against a node."""
    facts = {entry.node: entry for entry in unknown_everywhere()}
    bare = replace(context(recipe=recipe), facts=facts, checkpoints={}, images={}, ledgers=())
    assert check_all(bare) == ()
    odd: dict[str, Any] = {key: Unknown("", "x") for key in ("memory", "docker", "listeners", "ranks", "identity")}
    assert check_all(replace(bare, facts={n: replace(f, **odd) for n, f in facts.items()})) == ()
