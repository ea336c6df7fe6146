"""The catalog as a whole: every rule is complete, listed, documented and never raises."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkwright import checks
from sparkwright.checks import catalog
from sparkwright.checks.catalog import CHECKS, RISING, STOPPING, check_all, worst_first
from sparkwright.domain.check import Check, texts_of
from sparkwright.domain.facts import NOT_ASKED, Docker, Driver, Gpu, GpuProcess, Listener, NodeFacts, Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.host_facts import KernelLog
from sparkwright.domain.ledger import LedgerLine, MemoryLedger, Origin
from sparkwright.facts.kernel import WORTH
from sparkwright.planner.ledger import ledger
from unit.checks import (
    fabric_cases,
    gateway_cases,
    host_cases,
    host_values,
    link_values,
    recipe_cases,
    samples,
    test_rules,
)
from unit.checks.samples import ABSENT, BY_PATH, NODES, ODD, PLAYED, READY, RECIPE, WHOLE, context, healthy
from unit.checks.test_rules import PARTIAL
from unit.for_each import for_each

# One table of cases for each family of rules.
TABLES: tuple[Any, ...] = (test_rules, host_cases, fabric_cases, recipe_cases, gateway_cases)


def lacking(check: Check) -> list[str]:
    there = {
        "code": re.fullmatch(r"[A-Z]+[0-9]{3}", check.code),
        "status": check.texts.status in ("stable", "preview"),
        "title": check.title and not check.title.endswith("."),
        "detects": check.texts.detects,
        "why": check.texts.why,
        "fix": check.texts.fix,
        "see": all(url.startswith("https://") for url in check.texts.see),
    }
    return [what for what, good in there.items() if not good]


def test_every_check_is_complete() -> None:
    """Guards that a check has what the documentation and the gate need."""
    assert {check.code: lacks for check in CHECKS if (lacks := lacking(check))} == {}


def test_a_familys_texts_are_those_of_its_checks() -> None:
    """Guards that no text is left of a check that is gone, and that none is written under a wrong code."""
    tables = {check.source: [one.code for one in CHECKS if one.source == check.source] for check in CHECKS}
    assert {source.name: list(texts_of(source)) for source in tables} == {s.name: codes for s, codes in tables.items()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[A001]\ndetects = "x"\n\n[A002]\ndetects = "x"\nwy = "y"\n', "x.toml:6: A002: 'wy' is unknown"),
        ('[A001]\ndetects = "x"\nsee = "https://x"\n', "x.toml:3: A001: 'see' is unknown or of another type"),
        ('[A001]\nwhy = "x"\n', "x.toml:1: A001 has no detects"),
        ('[A001]\nwhy = "x\n', "x.toml:2: "),
    ],
)
def test_a_mistake_in_a_familys_texts_is_named_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    """Guards that who writes a check finds the mistake in its texts at once."""
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(ValueError, match=re.escape(said)):
        texts_of(tmp_path / "x.toml")


def test_every_family_is_in_the_catalog() -> None:
    """Guards that no family is written and forgotten, and that no code names two defects. The findings of `up` about
    its supervisor have no function."""
    folder = Path(checks.__path__[0])
    written = {path.stem for path in folder.glob("*.py") if "\nCHECKS" in path.read_text()} - {"catalog", "supervision"}
    assert written == {name for name in vars(catalog) if hasattr(getattr(catalog, name), "CHECKS")} - {"compat"}
    assert len({check.code for check in CHECKS}) == len(CHECKS)


def test_every_rule_has_cases_of_both_kinds() -> None:
    """Guards that each rule is shown to fire and to be silent."""
    firing = [code for table in TABLES for code in table.FIRING]
    assert {check.code for check in CHECKS} == set(firing) == {code for table in TABLES for code, _, _ in table.SILENT}
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


@for_each("line", KERNEL_LINES)
def test_lines_that_rules_look_for_leave_the_node(line: str) -> None:
    """Guards that the node's own filter of its kernel log lets pass what a rule would find there."""
    assert re.search("|".join(WORTH), line)


def test_worst_comes_first_and_equals_stay_in_order() -> None:
    """Guards the order that the user reads, and that what two rules report alike is reported once."""
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
    "ranks": st.sampled_from(
        [(), (samples.rank_status(""),), (samples.rank_status("big"), samples.rank_status("b", number=1))]
    ),
}


@st.composite
def some_facts(draw: st.DrawFn, node: str) -> NodeFacts:
    names = [field.name for field in fields(NodeFacts) if field.name not in ("node", "at", "keepers")]
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
    """Guards that what is not known is never compared with a node."""
    facts = {entry.node: entry for entry in unknown_everywhere()}
    bare = replace(context(recipe=recipe), facts=facts, checkpoints={}, images={}, ledgers=())
    assert check_all(bare) == ()
    odd: dict[str, Any] = {key: Unknown("", "x") for key in ("memory", "docker", "listeners", "ranks", "identity")}
    assert check_all(replace(bare, facts={n: replace(f, **odd) for n, f in facts.items()})) == ()


STOPS = {"OVERRIDE", "BLOCK", "weigh_severity"}


def _names(node: ast.AST) -> set[str]:
    """All names and attributes that a piece of code mentions."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def _reached(start: set[str], known: dict[str, ast.AST]) -> set[str]:
    """The names that code mentions, with those that the family's own functions and tables mention in turn."""
    seen: set[str] = set()
    todo = set(start)
    while todo:
        name = todo.pop()
        seen.add(name)
        todo |= _names(known[name]) - seen if name in known else set()
    return seen


def _rising(family: Path) -> set[str]:
    """Codes of checks that are declared as a warning or a note, and whose function may give what stops a start."""
    tree = ast.parse(family.read_text())
    known: dict[str, ast.AST] = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    assigned = (one for one in tree.body if isinstance(one, ast.Assign))
    known |= {to.id: one for one in assigned for to in one.targets if isinstance(to, ast.Name) and to.id != "CHECKS"}
    rows = (one for one in ast.walk(tree) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name))
    codes = set()
    for row in (one for one in rows if isinstance(one.func, ast.Name) and one.func.id == "Check" and len(one.args) > 3):
        mild = not _names(row.args[1]) & STOPS
        code = row.args[0]
        if mild and isinstance(code, ast.Constant) and _reached(_names(row.args[3]), known) & STOPS:
            codes.add(str(code.value))
    return codes


def test_what_a_search_for_remedies_asks_is_all_that_can_stop_a_start() -> None:
    """A check that was left out there would let `plan` propose what the next `plan` refuses."""
    families = {check.source.with_suffix(".py") for check in CHECKS}
    assert set().union(*map(_rising, families)) == RISING
    assert {check.code for check in CHECKS if check.severity.stops} | RISING == {check.code for check in STOPPING}
    assert len(STOPPING) < len(CHECKS) / 3
