"""Pages of codes: complete, from one place, for `explain` and for the site alike."""

import re
from pathlib import Path
from typing import Any

import docs_rules
import pytest
from click.testing import CliRunner

from sparkwright.causes.diagnose import line_causes
from sparkwright.causes.load import families, whole_log
from sparkwright.checks import supervision
from sparkwright.checks.catalog import CHECKS
from sparkwright.checks.compat.table import ENGINES, read_table
from sparkwright.cli.explain import page_text
from sparkwright.cli.explain_pages import code_pages
from sparkwright.cli.main import main, run
from sparkwright.engines import findings as engines
from sparkwright.planner import fabric_findings

SOURCE = Path(__file__).resolve().parents[3] / "src/sparkwright"


@pytest.mark.full
def test_every_rule_has_a_page_with_all_its_parts() -> None:
    """Guards that nothing that is found or named lacks an explanation."""
    for check in CHECKS:
        page = code_pages()[check.code]
        assert {"Detects", "Why"} <= set(page.parts) and page.fix, check.code
        assert page.title == check.title and page.severity == check.severity
    for cause in (*line_causes().values(), *whole_log().values()):
        page = code_pages()[cause.code]
        assert (page.title, page.severity, page.cause) == (cause.title, cause.severity, cause.key)
        assert page.parts["Why"] == cause.why and len(page.fix) == len(cause.fix)


@pytest.mark.parametrize(
    ("table", "files"),
    [(engines, "engines/**/*.py"), (fabric_findings, "planner/**/*.py"), (supervision, "checks/supervision.py")],
)
def test_what_no_check_function_finds_has_a_row(table: Any, files: str) -> None:
    """Guards the codes of engines, planner and supervision: each one that the sources name has its row, once."""
    text = "\n".join(path.read_text() for path in SOURCE.glob(files))
    codes = [check.code for check in table.CHECKS]
    assert set(re.findall(r"\b((?:ENG|FAB|SUP)\d{3})\b", text)) == set(codes)
    assert len(codes) == len(set(codes))
    for check in table.CHECKS:
        assert check.title and check.texts.detects and code_pages()[check.code]


def test_a_code_that_is_gone_shows_the_one_that_covers_its_defect() -> None:
    """Guards who has an old code in a note: `explain` knows it."""
    shown = CliRunner().invoke(main, ["explain", "FILE002"]).stdout
    assert shown.startswith("MODEL005: ") and "Formerly\n  FILE002" in shown


def test_families_are_together_and_checks_come_first() -> None:
    """Guards the order of the list: a family is one block, causes of logs below all checks."""
    families = [page.family for page in code_pages().values()]
    blocks = [one for one, before in zip(families, ["", *families], strict=False) if one != before]
    assert len(blocks) == len(set(blocks))
    logs = [family.startswith("log: ") for family in blocks]
    assert logs == sorted(logs)


def test_a_fix_shows_what_the_case_fills_in() -> None:
    """Guards that no brace of a template reaches the reader."""
    page = code_pages()["LNIC001"]
    assert any("<iface>" in step for step in page.fix) and not any("{iface}" in step for step in page.fix)
    assert "\nFix\n" in page_text(page) and f"cause {page.cause}" in page_text(page)


def test_the_docs_are_the_same_pages() -> None:
    """The site has a page for each family of checks and of causes, and lists each code."""
    texts = docs_rules.rule_texts()
    logs = {f"log-{name}.md" for name in (*families(), "hangs-and-silences")}
    assert {"README.md", "compatibility.md", "check-host.md", *logs} <= set(texts)
    assert len(texts) < 50
    for page in code_pages().values():
        name = docs_rules.file_of(page)
        assert f"| [{page.code}]({name}#{page.code.lower()}) | {page.severity} | {page.title} |" in texts["README.md"]
        assert f"\n## {page.code}\n" in texts[name]
        for text in (*page.parts.values(), *page.fix):
            assert all(word in texts[name] for word in text.rstrip(".").split()), (page.code, text)
    rows = [line for line in texts["compatibility.md"].splitlines() if line.startswith("| ") and "**" in line]
    assert len(rows) == sum(len(read_table(name).rows) for name in ENGINES)


@pytest.mark.parametrize("code", ["", "NOPE999"])
def test_a_code_that_nobody_knows_is_an_error(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Guards a shell variable that was not set: it must not list everything with exit code 0."""
    assert run(["explain", code]) == 2
    assert "hint:" in capsys.readouterr().err
