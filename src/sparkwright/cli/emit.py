"""`plan --emit`: what we would do, written out for those who do it without us."""

from pathlib import Path

import click

from sparkwright.app.launch import Outcome
from sparkwright.app.world import resolved_paths
from sparkwright.domain.errors import UsageError
from sparkwright.domain.facts import Unknown
from sparkwright.emit.catalog import FORMS
from sparkwright.emit.source import Source, Written
from sparkwright.engines.catalog import engine

emit_option = click.option(
    "--emit", "form", type=click.Choice(list(FORMS)), default=None,
    help="Print the plan as files for this tool; they contain no secrets.",
)  # fmt: skip
out_option = click.option(
    "--out", default="", metavar="DIR", help="Write the files of --emit to this folder. [default: stdout]"
)


def emitted(outcome: Outcome, form: str) -> tuple[Written, ...]:
    """The files of one form. Raises UsageError where the form cannot express the plan."""
    plan, facts = outcome.plan, outcome.survey.facts
    stop = engine(plan.recipe.engine.name).stop
    states = {name: resolved_paths(plan.cluster.node(name), facts[name]).state for name in plan.placement.nodes}
    users = {name: who.user for name in plan.placement.nodes if not isinstance(who := facts[name].identity, Unknown)}
    return FORMS[form](Source(plan, stop.signal, stop.grace, states, users))


def deliver(files: tuple[Written, ...], out: str) -> None:
    """Into the folder `out`, or all on stdout, each under its name; a single file alone, ready for a pipe."""
    if out:
        _write(files, Path(out))
    elif len(files) == 1:
        click.echo(files[0].text, nl=False)
    else:
        for file in files:
            click.echo(f"# ==> {file.path}\n{file.text}")


def _write(files: tuple[Written, ...], folder: Path) -> None:
    for file in files:
        path = folder / file.path
        # A filled-in secrets.env is the user's work: an emit for a new plan must not empty it.
        if file.mode == 0o600 and path.exists():
            click.echo(f"{path} (kept)")
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=file.mode)
            path.write_text(file.text, encoding="utf-8")
            path.chmod(file.mode)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}", hint="give another --out") from None
        click.echo(str(path))
