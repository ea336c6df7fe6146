"""`sparkwright plan`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from sparkwright.app.launch import Outcome, prepare
from sparkwright.app.plan import api_key, stopping
from sparkwright.app.stage import staging_text
from sparkwright.app.world import Wish, World
from sparkwright.cli import options as shared
from sparkwright.cli.emit import deliver, emit_option, emitted, out_option
from sparkwright.cli.plan_advice import advice_json
from sparkwright.cli.text import findings_text, plan_text
from sparkwright.domain.errors import Refused
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.plan import Plan
from sparkwright.domain.recipe import Recipe
from sparkwright.wiring import Where, places

# A hub model of which no node has a snapshot yet; its folder will be called by the commit.
_UNNAMED = "/snapshots/main"


@click.command()
@click.argument("recipe", metavar="RECIPE[@PROFILE]")
@shared.profile_option
@shared.name_option
@shared.where_options
@shared.force_option
@click.option("--why", is_flag=True, help="With the arithmetic: where every figure comes from.")
@emit_option
@out_option
@shared.json_option
def plan(recipe: str, profile: str, name: str, **rest: Any) -> None:
    """What would run where, with which exact commands, and does it fit. Changes nothing; exit 1 when `up` would refuse.

    \b
    Examples:
      sparkwright plan deepseek-v4-flash@1m --why
      sparkwright plan twin --json
      sparkwright plan deepseek-v4-flash --emit compose --out ./v4
    """
    from sparkwright.adapters.files import open_recipe

    if rest["out"] and (rest["as_json"] or not rest["form"]):
        raise click.UsageError("--out goes with --emit, and not with --json")
    opened = open_recipe(recipe, places(), profile)
    where = Where(rest["cluster"], rest["ssh_config"])
    outcome = shared.drive(where, lambda world: _plan(world, opened, name, rest["force"]), quiet=True)
    staged = staging_text(outcome.plan, outcome.survey)
    stops = stopping(outcome.plan, rest["force"])
    if rest["form"]:
        if stops:
            raise nothing_written(outcome.plan, stops)
        _emit(outcome, staged, rest["form"], rest["out"], rest["as_json"])
    elif rest["as_json"]:
        shared.print_json(plan_json(outcome.plan, staged))
    else:
        click.echo(plan_text(outcome.plan, staged, rest["why"]))
    if stops:
        raise click.exceptions.Exit(1)


def _emit(outcome: Outcome, staged: Sequence[str], form: str, out: str, as_json: bool) -> None:
    files = emitted(outcome, form)
    if as_json:
        shared.print_json({"files": [asdict(file) for file in files]})
    else:
        deliver(files, out)
    told = [finding for finding in outcome.plan.findings if finding.severity is not Severity.INFO]
    for line in (*([findings_text(told)] if told else []), *still_to_bring(outcome.plan, staged)):
        click.echo(line, err=True)


def still_to_bring(made: Plan, staged: Sequence[str]) -> list[str]:
    """What `up` would bring to the nodes and nobody brings for these files."""
    told = [f"to be brought there before the start: {line.partition(';')[0]}" for line in staged]
    if any(_UNNAMED in word for spec in made.specs for word in spec.argv):
        told.append(f"then write the files again: {_UNNAMED} stands for a folder that gets its name with the weights")
    return told


def nothing_written(made: Plan, stops: Sequence[Finding]) -> Refused:
    """Files of a plan that cannot work would be started by somebody: what stops `up` stops them, too."""
    blocks = any(finding.severity is Severity.BLOCK for finding in stops)
    cure = "" if blocks else "to write them all the same: --force REASON"
    return Refused(f"{made.deployment}: nothing was written, {len(stops)} finding(s) forbid it", stops, cure)


async def _plan(world: World, recipe: Recipe, name: str, force: str) -> Outcome:
    return await prepare(world, Wish(recipe, name or recipe.deployment, force, api_key(world, recipe)))


def plan_json(made: Plan, staged: Sequence[str]) -> dict[str, Any]:
    """The plan without recipe prose: deployment, ranks with argv and environment, ledgers (bytes), findings."""
    return {
        "deployment": made.deployment,
        "recipe": made.recipe.name,
        "profile": made.recipe.profile,
        "recipe_hash": made.recipe.hash,
        "simulated": made.recipe.model.simulated or made.cluster.simulated,
        "cluster": made.cluster.name,
        "bind": made.bind,
        "port": made.port,
        "served_name": made.served_name,
        "fabric": {node: asdict(choice) for node, choice in made.placement.fabric.items()},
        "ranks": [_rank(spec) for spec in made.specs],
        "memory": [asdict(entry) | {"left": entry.left, "fits": entry.fits} for entry in made.ledgers],
        "splits": advice_json(made.advice) if made.advice else None,
        "staging": list(staged),
        "findings": [asdict(finding) for finding in made.findings],
    }


def _rank(spec: Any) -> dict[str, Any]:
    return {
        "rank": spec.rank,
        "node": spec.node,
        "runtime": spec.runtime,
        "image": spec.image,
        "argv": [*(spec.entrypoint or ()), *spec.argv],
        "env": dict(spec.env),
        "secrets": sorted(spec.secrets),
        "files": [{"name": file.name, "secret": file.secret is not None, "text": file.text} for file in spec.files],
        "listens": spec.listens,
    }
