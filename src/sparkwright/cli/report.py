"""`sparkwright report`."""

import asyncio
from pathlib import Path

import click

from sparkwright import __version__
from sparkwright.app import report as use
from sparkwright.app.report import Form
from sparkwright.domain.errors import UsageError
from sparkwright.wiring import run_store

_ENDINGS = {".html": Form.HTML, ".htm": Form.HTML, ".md": Form.MARKDOWN, ".markdown": Form.MARKDOWN, ".json": Form.JSON}
_STDOUT = "-"
_FORMS = click.Choice([form.value for form in Form])


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--format", "form", type=_FORMS, default=None, help="Format. [default: by the name of FILE, or html]")
@click.option(
    "-o", "--out", default="", metavar="FILE", help="Output file, - for stdout. [default: RUN.html; else stdout]"
)
def report(runs: tuple[str, ...], form: str | None, out: str) -> None:
    """Write plots, tables and conditions of one run, or of several compared with the first.

    RUN: an id or its beginning, a tag, or `last`. [default: the newest] HTML is one file that needs no network; md is
    for a forum post.

    \b
    Examples:
      sparkwright report                                   the newest run
      sparkwright report r-20261122-7f3a -o report.html
      sparkwright report r-20261122-7f3a r-20261122-9c01   side by side
      sparkwright report r-20261122-7f3a --format md
    """
    wanted = Form(form) if form else _ENDINGS.get(Path(out).suffix.lower(), Form.HTML)
    names, text = asyncio.run(_made(runs, wanted))
    target = out or (f"{names[0]}.html" if wanted is Form.HTML else _STDOUT)
    if target == _STDOUT:
        click.echo(text, nl=False)
        return
    path = Path(target).expanduser()
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}", "name another file with -o") from None
    click.echo(f"wrote {path} ({len(text.encode()) / 1000:.0f} kB)")


async def _made(wanted: tuple[str, ...], form: Form) -> tuple[tuple[str, ...], str]:
    store = run_store()
    try:
        names = await use.named(store, wanted)
        return names, await use.report(store, names, form, f"sparkwright {__version__}")
    finally:
        await store.aclose()
