"""Pages of codes: complete, from one place, for `explain` and for docs/rules alike."""

import re
from pathlib import Path

import docs_rules
import pytest

from sparkwright.causes.diagnose import known
from sparkwright.causes.load import families
from sparkwright.causes.whole_log.catalog import WHOLE_LOG
from sparkwright.checks.catalog import CHECKS
from sparkwright.cli.explain import page_text
from sparkwright.cli.explain_pages import pages
from sparkwright.cli.main import run
from sparkwright.compat.table import ENGINES, read_table

SOURCE = Path(__file__).resolve().parents[3] / "src/sparkwright"


@pytest.mark.full
def test_every_rule_has_a_page_with_all_its_parts() -> None:
    """Guards that nothing that is found or named lacks an explanation."""
    for check in CHECKS:
        page = pages()[check.code]
        assert {"Detects", "Why"} <= set(page.parts) and page.fix, check.code
        assert page.title == check.title and page.severity == check.severity
    for cause in (*known().values(), *(rule.CAUSE for rule in WHOLE_LOG)):
        page = pages()[cause.code]
        assert (page.title, page.severity, page.cause) == (cause.title, cause.severity, cause.key)
        assert page.parts["Why"] == cause.why and len(page.fix) == len(cause.fix)


@pytest.mark.parametrize(("prefix", "folder"), [("ENG", "engines"), ("FAB", "planner")])
def test_what_is_no_rule_file_has_a_page(prefix: str, folder: str) -> None:
    """Guards the codes of planner and engines: each one that the sources name, with words of its own."""
    text = "\n".join(path.read_text() for path in (SOURCE / folder).glob("*.py"))
    named = set(re.findall(rf"\"({prefix}\d{{3}})\"", text))
    assert named and named <= set(pages())
    assert all(re.search(r"[a-z]{3}", pages()[code].title) for code in named)
    assert not [code for code in named if pages()[code].title.startswith(("and ", "are ", "when "))]


def test_families_are_together_and_checks_come_first() -> None:
    """Guards the order of the list: a family is one block, causes of logs below all checks."""
    families = [page.family for page in pages().values()]
    blocks = [one for one, before in zip(families, ["", *families], strict=False) if one != before]
    assert len(blocks) == len(set(blocks))
    logs = [family.startswith("log: ") for family in blocks]
    assert logs == sorted(logs)


def test_a_fix_shows_what_the_case_fills_in() -> None:
    """Guards that no brace of a template reaches the reader."""
    page = pages()["LNIC001"]
    assert any("<iface>" in step for step in page.fix) and not any("{iface}" in step for step in page.fix)
    assert "\nFix\n" in page_text(page) and f"cause {page.cause}" in page_text(page)


def test_the_docs_are_the_same_pages() -> None:
    """Guards that docs/rules has a page for each family of checks and of causes, and lists each code."""
    texts = docs_rules.texts()
    logs = {f"log-{name}.md" for name in (*families(), "hangs-and-silences")}
    assert {"README.md", "compatibility.md", "check-host.md", *logs} <= set(texts)
    assert len(texts) < 50 and docs_rules.BY_HAND.isdisjoint(texts)
    for page in pages().values():
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
