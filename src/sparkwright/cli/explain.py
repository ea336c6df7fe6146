"""`sparkwright explain`: what a code means, why it matters, what proves it and what to do."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from itertools import groupby

import click

from sparkwright.cli import complete
from sparkwright.cli.columns import aligned, fold_line
from sparkwright.cli.explain_pages import FORMER, CodePage, code_pages
from sparkwright.cli.options import answer, json_option
from sparkwright.domain.errors import UsageError


@click.command(short_help="Explain a finding's code or a cause.")
@click.argument("code", metavar="[CODE|CAUSE]", required=False, shell_complete=complete.complete_codes)
@json_option
def explain(code: str | None, as_json: bool) -> None:
    """Explain a finding's code or a cause of `diagnose`: what it detects, why it matters, the evidence and the fix.

    Without a code, list all of them.

    \b
    Examples:
      sparkwright explain DRV001
      sparkwright explain gloo-wrong-interface-loopback
      sparkwright explain | grep -i memlock
    """
    found = tuple(code_pages().values()) if code is None else _found(code)
    text = _list(found) if code is None else "\n\n".join(page_text(page) for page in found)
    answer(as_json, {"codes": [asdict(page) for page in found]}, text)


def _list(listed: Sequence[CodePage]) -> str:
    families = groupby(listed, key=lambda page: page.family)
    tables = {family: aligned([(one.code, one.severity, one.title) for one in group]) for family, group in families}
    return "\n".join(f"{family}\n{table}\n" for family, table in tables.items())


def _found(asked: str) -> tuple[CodePage, ...]:
    """The page of a code, or those of a cause. Raises UsageError that names near ones."""
    known = code_pages()
    code = FORMER.get(asked.upper(), asked.upper())
    found = tuple(p for p in known.values() if asked and (code == p.code or asked.lower() == p.cause))
    if found:
        return found
    # The code with the number written out, then codes and causes that look alike.
    match = re.fullmatch(r"([A-Za-z]+)0*(\d{1,3})", asked)
    written = f"{match[1].upper()}{int(match[2]):03}" if match else ""
    causes = [page.cause for page in known.values() if page.cause]
    alike = get_close_matches(asked.upper(), known, 3) or get_close_matches(asked.lower(), causes, 3)
    near = list(dict.fromkeys([*([written] if written in known else []), *alike]))[:3]
    hint = f"near: {', '.join(near)}" if near else "`sparkwright explain` lists all of them"
    raise UsageError(f"no code or cause {asked!r}", hint=hint)


def page_text(page: CodePage) -> str:
    """Head, then a paragraph a heading; commands of the fix are never folded."""
    cause = f", cause {page.cause}" if page.cause else ""
    head = f"{click.style(page.code, bold=True)}: {page.title}\n{page.family}; {page.severity}, {page.status}{cause}"
    lines = [head, *(f"\n{name}\n{fold_line(f'  {text}', 2)}" for name, text in page.parts.items())]
    lines += ["\nFix", *(f"  {step}" for step in page.fix)] if page.fix else []
    return "\n".join(lines)
