"""`sparkwright plan`: what would run where, whether it fits, and the plan as files of other tools."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from sparkwright.adapters.files import open_recipe
from sparkwright.app.compare import planned
from sparkwright.app.gate import optimum
from sparkwright.app.launch import Outcome, prepare
from sparkwright.app.plan import api_key, stopping
from sparkwright.app.services import LaunchRequest, Services, resolved_paths
from sparkwright.app.stage import staging_text
from sparkwright.app.standing import standing
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo
from sparkwright.cli.failure import remedy_json
from sparkwright.cli.findings import findings_text
from sparkwright.cli.measured import from_log_option, from_logs, measured_json, measured_text, rank_option
from sparkwright.cli.plan_advice import advice_json
from sparkwright.cli.plan_compare import comparison_json, comparison_text
from sparkwright.cli.plan_optimize import goal_option, optimum_json, optimum_text
from sparkwright.cli.text import plan_text
from sparkwright.domain.errors import Refused, UsageError
from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding, Severity, prevented
from sparkwright.domain.plan import Plan
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.verdict import Goal
from sparkwright.emit.catalog import FORMS
from sparkwright.emit.source import Source, Written
from sparkwright.engines.catalog import engine
from sparkwright.wiring import ClusterOptions, places

emit_option = click.option(
    "--emit", "form", type=click.Choice(list(FORMS)), default=None,
    help="Print the plan as files for this tool; they contain no secrets.",
)  # fmt: skip
out_option = click.option(
    "--out", default="", metavar="DIR", help="Write the files of --emit to this folder. [default: stdout]"
)


def emitted(outcome: Outcome, form: str) -> tuple[Written, ...]:
    """The files of one form. Raises UsageError where the form cannot express the plan."""
    plan, facts = outcome.plan, outcome.cluster_state.facts
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


# A hub model of which no node has a snapshot yet; its folder will be called by the commit.
_UNNAMED = "/snapshots/main"
_SPELLED = {"goal": "optimize", "form": "emit", "logs": "from-log"}


@click.command()
@click.argument("recipes", metavar="RECIPE[@PROFILE]...", nargs=-1, required=True)
@shared.profile_option
@shared.name_option
@shared.cluster_options
@shared.force_option
@click.option("--why", is_flag=True, help="Print the arithmetic and the source of every figure.")
@goal_option
@from_log_option
@rank_option
@emit_option
@out_option
@shared.json_option
def plan(recipes: tuple[str, ...], profile: str, name: str, **rest: Any) -> None:
    """Print what would run where, with which exact commands, and whether it fits; change nothing.

    Several recipes or profiles are compared. Exit status: 1 if `up` would refuse it.

    \b
    Examples:
      sparkwright plan deepseek-v4-flash@1m --why
      sparkwright plan deepseek-v4-flash@1m deepseek-v4-flash@256k
      sparkwright plan deepseek-v4-flash@1m --optimize throughput
      sparkwright plan tiny-llama-cpp --json
      sparkwright plan deepseek-v4-flash@1m --from-log rank-0.log
      sparkwright plan deepseek-v4-flash --emit compose --out ./v4
    """
    _check_words(recipes, rest | {"name": name})
    opened = [open_recipe(recipe, places(), profile) for recipe in recipes]
    where = ClusterOptions(rest["cluster"], rest["ssh_config"])
    if len(opened) > 1:
        _compare(where, opened, rest["as_json"])
        return
    request = LaunchRequest(opened[0], name or opened[0].deployment, rest["force"], supervised=not rest["form"])
    request = replace(request, measured=from_logs(opened[0], rest["logs"], rest["rank"]))
    if rest["goal"]:
        _optimize(where, request, Goal(rest["goal"]), rest["as_json"])
        return
    outcome = shared.drive(where, lambda services: prepare(services, _keyed(services, request)), quiet=True)
    _tell(outcome, rest)
    if stopping(outcome.plan, request.force):
        raise click.exceptions.Exit(1)


def _check_words(recipes: Sequence[str], rest: Mapping[str, Any]) -> None:
    """Which options go together. Raises click.UsageError."""
    if rest["out"] and (rest["as_json"] or not rest["form"]):
        raise click.UsageError("--out goes with --emit, and not with --json")
    if rest["goal"] and rest["form"]:
        raise click.UsageError("--optimize goes without --emit: paste what it finds into the recipe first")
    alone = ("goal", "form", "logs", "name", "force", "why")
    given = [option for option in alone if rest[option]]
    if len(recipes) > 1 and given:
        raise click.UsageError(f"recipes are compared without --{_SPELLED.get(given[0], given[0])}: give one recipe")


def _compare(where: ClusterOptions, opened: Sequence[Recipe], as_json: bool) -> None:
    """Exit 1 when `up` would refuse every one of them."""
    found = shared.drive(where, lambda services: planned(services, opened), quiet=True)
    if as_json:
        shared.print_json(comparison_json(found, lambda made: plan_json(made, ())))
    else:
        echo(comparison_text(found))
    if not any(one.outcome and not stopping(one.outcome.plan, "") for one in found):
        raise click.exceptions.Exit(1)


def _optimize(where: ClusterOptions, request: LaunchRequest, goal: Goal, as_json: bool) -> None:
    found = shared.drive(where, lambda services: optimum(services, request, goal), quiet=True)
    if as_json:
        shared.print_json(optimum_json(found))
    else:
        echo(optimum_text(found))
    if not found.best.verdict.fits:
        raise click.exceptions.Exit(1)


def _keyed(services: Services, request: LaunchRequest) -> LaunchRequest:
    return replace(request, api_key=api_key(services, request.recipe))


def _tell(outcome: Outcome, rest: Mapping[str, Any]) -> None:
    staged, running = staging_text(outcome.plan, outcome.cluster_state), standing(outcome.plan, outcome.cluster_state)
    if rest["form"]:
        if stops := stopping(outcome.plan, rest["force"]):
            raise nothing_written(outcome.plan, stops)
        _emit(outcome, staged, rest["form"], rest["out"], rest["as_json"])
    elif rest["as_json"]:
        more = {"standing": running, "measured": measured_json(outcome.cluster_state.calibrations)}
        shared.print_json(plan_json(outcome.plan, staged) | more)
    else:
        known = measured_text(outcome.cluster_state.calibrations)
        told = (known, plan_text(outcome.plan, staged, rest["why"]), running)
        echo("\n\n".join(filter(None, told)))


def _emit(outcome: Outcome, staged: Sequence[str], form: str, out: str, as_json: bool) -> None:
    files = emitted(outcome, form)
    if as_json:
        shared.print_json({"files": [asdict(file) for file in files]})
    else:
        deliver(files, out)
    told = [finding for finding in outcome.plan.findings if finding.severity is not Severity.INFO]
    for line in (*([findings_text(told)] if told else []), *still_to_copy(outcome.plan, staged)):
        echo(line, err=True)


def still_to_copy(made: Plan, staged: Sequence[str]) -> list[str]:
    """What `up` would copy to the nodes; these files do not."""
    told = [f"to be copied there before the start: {line.partition(';')[0]}" for line in staged]
    if any(_UNNAMED in word for spec in made.specs for word in spec.argv):
        told.append(f"then write the files again: {_UNNAMED} is a folder whose name depends on the weights")
    return told


def nothing_written(made: Plan, stops: Sequence[Finding]) -> Refused:
    """Files of a plan that cannot work would be started by somebody: what stops `up` stops them, too."""
    blocks = any(finding.severity is Severity.BLOCK for finding in stops)
    hint = "" if blocks else "to write them all the same: --force REASON"
    return Refused(f"{made.deployment}: nothing was written: {prevented(stops)}", stops, hint)


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
        "memory": [
            asdict(entry) | {"left": entry.left, "fits": entry.lack is None, "kv_tokens": entry.kv_tokens}
            for entry in made.ledgers
        ],
        "verdict": asdict(made.verdict) if made.verdict else None,
        "speeds": [asdict(speed) for speed in made.speeds],
        "published": [asdict(figure) for figure in made.recipe.published],
        "splits": advice_json(made.advice) if made.advice else None,
        "staging": list(staged),
        "findings": [asdict(finding) for finding in made.findings],
        "remedies": [remedy_json(remedy) for remedy in made.remedies],
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
