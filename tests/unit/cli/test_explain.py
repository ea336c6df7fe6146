"""Pages of codes: complete, from one place, for `explain` and for docs/rules alike."""

import re
from pathlib import Path

import docs_rules
import pytest

from sparkwright.causes.diagnose import known
from sparkwright.causes.load import families
from sparkwright.causes.whole_log.catalog import WHOLE_LOG
from sparkwright.cli.explain import page_text
from sparkwright.cli.explain_pages import pages
from sparkwright.rules.catalog import RULES
from sparkwright.rules.compat.table import ENGINES, read_table

SOURCE = Path(__file__).resolve().parents[3] / "src/sparkwright"


def test_every_rule_has_a_page_with_all_its_parts() -> None:
    """Guards that nothing that is found or named lacks an explanation."""
    for rule in RULES:
        page = pages()[rule.CODE]
        assert list(page.parts) == ["Detects", "Why", "Evidence", "Remedy", "References"], rule.CODE
        assert page.title == rule.TITLE and page.summary and page.severity == rule.SEVERITY
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
    """Guards that docs/rules has a page for each check and each family of causes, and lists each code."""
    texts = docs_rules.texts()
    checks = {f"{code}.md" for code, page in pages().items() if not page.cause}
    logs = {f"log-{name}.md" for name in (*families(), "hangs-and-silences")}
    assert set(texts) == {"README.md", "compatibility.md", *checks, *logs}
    page, name = pages()["LNIC001"], "log-network-interface-selection.md"
    assert f"| [LNIC001]({name}#lnic001) | {page.severity} | {page.title} | `{page.cause}` |" in texts["README.md"]
    for said in (page.parts["Why"], page.parts["Log line"], *page.parts["See"].split(), *page.fix):
        assert said in texts[name]
    assert "\n## LNIC001\n" in texts[name]
    assert docs_rules.BY_HAND.isdisjoint(texts)
    rows = [line for line in texts["compatibility.md"].splitlines() if line.startswith("| ") and "**" in line]
    assert len(rows) == sum(len(read_table(name).rows) for name in ENGINES)
