"""Writes docs/rules/: what `sparkwright explain` prints, and an index. `--check`: fails when stale.

Checks have a page each, causes that logs show one page a family.

coverage.md and seeds.md are written by hand, and tests hold them.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path

from sparkwright.cli.explain_pages import Page, pages
from sparkwright.rules.compat.schema import Row
from sparkwright.rules.compat.table import ENGINES, read_table

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "rules"
BY_HAND = frozenset({"coverage.md", "seeds.md"})
NOTE = "<!-- Written by scripts/docs_rules.py from the rules' docstrings; do not edit. -->"
OF_LOGS = "<!-- Written by scripts/docs_rules.py from the files in src/sparkwright/causes; do not edit. -->"
HEAD = """# Findings and causes by code

`block` stops `up`; `override` stops it unless `--force REASON` is given, which is recorded; `warn` and `info` do not
stop it. A cause that a log shows is named by `diagnose`; what is `info` there is harmless and never blamed. Codes are
never reused. `sparkwright explain CODE` prints the same. [seeds.md](seeds.md) says which code covers which line
of the reports that this program began with, [compatibility.md](compatibility.md) has the table behind the COMPAT codes.
[coverage.md](coverage.md) goes through the known faults of GB10 nodes and says which code looks for each.

Where a page refers to the field guide (`gb10.md`, sections A to H) or to a seed by its number: these are the authors'
own notes on what owners of such nodes have published, and five of their reports in full. They are not part of this
project.
"""
TABLE = """# What is known to work

Engine x version x architecture x quantization on GB10 (sm_121), from src/sparkwright/rules/compat/data. A row holds
where a recipe meets all that its first column says. `plan` and `up` refuse what is blocked (COMPAT001) and warn of what
is degraded (COMPAT002); disputed rows only inform. `sparkwright recipes show NAME` has the rows of a recipe. The date
is the source's where it tells one, else the month in which it was read.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is not as it would be")
    wanted, check = texts(), parser.parse_args().check
    stale = sorted(name for name in {*wanted, *there()} if wanted.get(name) != there().get(name))
    if check and stale:
        print(f"docs/rules is stale: {', '.join(stale)}; run `python scripts/docs_rules.py`", file=sys.stderr)
    elif not check:
        write(wanted)
        print(f"docs/rules: {len(wanted)} pages, {len(stale)} changed")
    return 1 if check and stale else 0


def there() -> dict[str, str]:
    return {path.name: path.read_text() for path in TARGET.glob("*.md") if path.name not in BY_HAND}


def write(wanted: dict[str, str]) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in there():
        if name not in wanted:
            (TARGET / name).unlink()
    for name, text in wanted.items():
        (TARGET / name).write_text(text)


def texts() -> dict[str, str]:
    """File name -> text."""
    made = {"README.md": index(), "compatibility.md": "\n".join([NOTE, TABLE, *compatibility()])}
    return made | {
        name: family([*group]) if name.startswith("log-") else text(next(group))
        for name, group in groupby(pages().values(), key=file_of)
    }


def file_of(page: Page) -> str:
    """`HOST001.md`, `log-container-and-image.md`."""
    log, _, name = page.family.partition("log: ")
    return f"{page.code}.md" if log else f"log-{name.replace(' ', '-')}.md"


def family(found: Sequence[Page]) -> str:
    """The causes of one family."""
    head = f"# Causes that logs show: {found[0].family.removeprefix('log: ')}\n"
    return "\n".join([OF_LOGS, head, *map(section, found)])


def section(page: Page) -> str:
    parts = dict(page.parts)
    why, line, urls = (parts.pop(name, "") for name in ("Why", "Log line", "See"))
    body = [f"## {page.code}\n", f"**{page.title}** (`{page.cause}`, {page.severity}): {why}\n"]
    body += [f"A log line: `` {line} ``\n"] if line else []
    body += [f"{name}: {said}.\n" for name, said in parts.items()]
    body += ["```\n" + "\n".join(page.fix) + "\n```\n"] if page.fix else []
    return "\n".join([*body, *([f"See {', '.join(f'<{url}>' for url in urls.split())}\n"] if urls else [])])


def text(page: Page) -> str:
    """What `explain` says, with headings."""
    cause = f" Cause: `{page.cause}`." if page.cause else ""
    facts = (
        f"Severity: **{page.severity}**. Status: {page.status}. Family: {page.family}.{cause} {page.summary}".strip()
    )
    body = [f"## {name}\n\n{said}\n" for name, said in page.parts.items()]
    fix = ["## Fix\n\n```\n" + "\n".join(page.fix) + "\n```\n"] if page.fix else []
    return "\n".join([NOTE, f"# {page.code}: {page.title}\n", f"{facts}\n", *body, *fix])


def index() -> str:
    return "\n".join([NOTE, HEAD, *(line for line in families())])


def families() -> Iterator[str]:
    for family, group in groupby(pages().values(), key=lambda page: page.family):
        logs = family.startswith("log: ")
        yield f"## {family[:1].upper()}{family[1:]}\n"
        yield "| code | severity | finds |" + (" cause |\n|---|---|---|---|" if logs else "\n|---|---|---|")
        for page in group:
            cause = f" `{page.cause}` |" if logs else ""
            anchor = f"#{page.code.lower()}" if logs else ""
            yield f"| [{page.code}]({file_of(page)}{anchor}) | {page.severity} | {page.title} |{cause}"
        yield ""


def compatibility() -> Iterator[str]:
    for name in ENGINES:
        table = read_table(name)
        yield f"## {table.engine}\n\n| holds for | verdict | reason | instead | source, date |\n|---|---|---|---|---|"
        yield from (f"| {' | '.join(map(cell, cells(row)))} |" for row in table.rows)
        yield ""


def cells(row: Row) -> tuple[str, ...]:
    """What a row asks of a recipe, and what it says."""
    said = {"verdict", "reason", "alternative", "otherwise", "source", "date"}
    asks = {
        f.name: getattr(row, f.name) for f in fields(row) if f.name not in said and getattr(row, f.name) != f.default
    }
    asked = {name: value for name, value in asks.items() if value}
    other = f". Other side: {row.otherwise}" if row.otherwise else ""
    verdict = "disputed" if row.otherwise else row.verdict
    holds = "; ".join(f"{name} {condition(value)}" for name, value in asked.items())
    return holds, f"**{verdict}**", row.reason + other, row.alternative, f"{row.source}, {row.date}"


def condition(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {condition(one)}" for name, one in value.items())
    if isinstance(value, tuple):
        return " or ".join("(not given)" if one == "" else "(any)" if one == "*" else str(one) for one in value)
    return str(value)


def cell(words: str) -> str:
    return words.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
