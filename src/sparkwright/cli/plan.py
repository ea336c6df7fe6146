"""`sparkwright plan`: what would run where, whether it fits, and the plan as files of other tools."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from sparkwright import wiring
from sparkwright.adapters.files import open_recipe
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.serve.prepare import Outcome, prepare
from sparkwright.app.services import LaunchRequest, Services, api_key
from sparkwright.cli import options as shared
from sparkwright.cli.kinds import Whole, renamed_option
from sparkwright.cli.plan_estimate import (
    estimate_options,
    model_of,
    print_comparison,
    print_estimate,
)
from sparkwright.cli.plan_options import PlanOptions
from sparkwright.domain.plan import not_known, stopping
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.verdict import Goal
from sparkwright.emit import FORM_NAMES
from sparkwright.wiring import places

_SPELLED = {"goal": "optimize", "form": "emit", "logs": "from-log", "node_type": "node-type", "kv_dtype": "kv"}


@click.command()
@click.argument("recipes", metavar="[RECIPE[@PROFILE]...]", nargs=-1, shell_complete=shared.complete.recipes)
@shared.profile_option
@shared.name_option
@shared.cluster_options
@shared.force_option
@click.option("--why", is_flag=True, help="Print the arithmetic and the source of every figure.")
@click.option("--history", is_flag=True, help="Print earlier predictions next to what starts measured here.")
@click.option("--splits", is_flag=True, help="Print other ways to split the model over the nodes.")
@click.option("--commands", is_flag=True, help="Print the environment and command line of every rank.")
@click.option(
    "--optimize",
    "goal",
    type=click.Choice([str(goal) for goal in Goal]),
    default=None,
    help="Search context, sequences, batched tokens, memory fraction and KV type.",
)
@click.option(
    "--from-log",
    "logs",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Plan with the figures of this engine log; several files are ranks 0, 1, 2 in order.",
)
@click.option("--rank", type=Whole(min=0), default=None, help="Rank of the --from-log file. [default: 0]")
@click.option(
    "--emit",
    "form",
    type=click.Choice(FORM_NAMES),
    default=None,
    help="Print the plan as files for this tool; they contain no secrets.",
)
@shared.replicas_option
@estimate_options
@renamed_option(
    "--folder",
    "out",
    was="--out",
    default="",
    metavar="DIR",
    help="Write the files of --emit to this folder. [default: stdout]",
)
@shared.json_option
def plan(**given: Any) -> None:
    """Print what would run where, whether it fits and how fast; change nothing.

    Several recipes or profiles are compared. With --nodes, or a model in place of a recipe (a hub id, a folder or a
    .gguf file), no node is asked: stock ones are assumed; with several counts each is planned. --replicas, and more
    than 8 nodes, are answered with groups of nodes. Exit status: 1 if `up` would refuse it, or if nobody knows whether
    it fits.

    \b
    Examples:
      sparkwright plan deepseek-v4-flash@1m --why
      sparkwright plan deepseek-v4-flash@1m deepseek-v4-flash@256k
      sparkwright plan deepseek-v4-flash@1m --optimize throughput
      sparkwright plan deepseek-v4-flash@1m --nodes 2 --free 110GiB
      sparkwright plan gpt-oss-120b qwen3.6-35b-a3b Qwen/Qwen3-32B --nodes 1,2,4
      sparkwright plan Qwen/Qwen3-30B-A3B --context 128K --kv fp8
      sparkwright plan tiny-llama-cpp --json
      sparkwright plan gpt-oss-120b --replicas 2
      sparkwright plan gpt-oss-120b --nodes 16
      sparkwright plan --history
      sparkwright plan deepseek-v4-flash@1m --from-log rank-0.log
      sparkwright plan deepseek-v4-flash --emit compose --folder ./v4
      sparkwright plan gpt-oss-20b --replicas 2 --emit k8s
    """
    options = PlanOptions(**given)
    recipes, form = options.recipes, options.form
    if options.history:
        _history(recipes, options.as_json)
        return
    if not recipes:
        raise click.UsageError("Missing argument 'RECIPE[@PROFILE]...'.")
    _check_words(options)
    models = [model_of(name) for name in recipes]
    if any(models) or options.stock.given or (form and not wiring.has_cluster(options.where)):
        targets = [
            (m, None if m else _for_files(open_recipe(named, places(), options.profile), form))
            for named, m in zip(recipes, models, strict=True)
        ]
        if len(targets) > 1 or len(options.stock.nodes or ()) > 1:
            print_comparison(targets, options)
        elif code := print_estimate(*targets[0], options):
            raise click.exceptions.Exit(code)
        return
    opened = [_for_files(open_recipe(recipe, places(), options.profile), form) for recipe in recipes]
    if len(opened) > 1:
        _compare(options.where, opened, options.as_json)
    else:
        _on_nodes(opened[0], options)


def _for_files(recipe: Recipe, form: str | None) -> Recipe:
    """The recipe without what only sparkwright itself starts next to the ranks, where files are asked for."""
    if not (form and recipe.loading.weight_cache):
        return recipe
    click.echo("loading.weight_cache is left out: these files start no process that keeps weights", err=True)
    return replace(recipe, loading=replace(recipe.loading, weight_cache=False))


def _on_nodes(recipe: Recipe, options: PlanOptions) -> None:
    """Plan one recipe on the nodes of the cluster file."""
    where = options.where
    request = LaunchRequest(recipe, options.name or recipe.deployment, options.force, supervised=not options.form)
    if options.logs or options.rank is not None:
        from sparkwright.cli.measured import from_logs  # the planner, which nothing else needs before the nodes answer

        request = replace(request, measured=from_logs(recipe, options.logs, options.rank))
    if options.goal:
        _optimize(where, request, Goal(options.goal), options.as_json)
        return

    async def planned(services: Services) -> Outcome:
        return await prepare(services, replace(request, api_key=api_key(services, request.recipe)))

    if (options.replicas or recipe.serving.replicas) > 1:
        (_replica_files if options.form else _replicas)(request, options)
        return
    outcome = shared.with_services(where, planned, quiet=True)
    from sparkwright.cli.plan_result import print_plan, without_ports_in_use

    print_plan(outcome, options)
    stops = stopping(without_ports_in_use(outcome.plan) if options.form else outcome.plan, request.force)
    if stops or (not_known(outcome.plan) and not options.form):
        raise click.exceptions.Exit(1)


def _replicas(request: LaunchRequest, options: PlanOptions) -> None:
    """Print the verdict of each group of nodes; exit 1 if `up` would refuse one of them."""
    from sparkwright.app.serve.launch import Options  # staging and starting, which other plans do not need
    from sparkwright.app.serve.replicas import ReplicasOutcome, up_replicas
    from sparkwright.cli.up import replicas_json
    from sparkwright.cli.up_text import groups_text

    async def planned(services: Services) -> ReplicasOutcome:
        asked = replace(request, api_key=api_key(services, request.recipe))
        return await up_replicas(services, asked, Options(dry_run=True), options.replicas or 0)

    found = shared.with_services(options.where, planned, quiet=True)
    plans = [one.plan for one in found.outcomes]
    code = int(any(stopping(one, request.force) or not_known(one) for one in plans))
    shared.answer(options.as_json, replicas_json(found), groups_text(found), code)


def _replica_files(request: LaunchRequest, options: PlanOptions) -> None:
    """Write the files of every group of nodes. Raises Refused if `up` would refuse one of them."""
    from sparkwright.app.serve.replicas import plan_groups
    from sparkwright.cli.plan_result import print_groups

    async def planned(services: Services) -> Sequence[Outcome]:
        asked = replace(request, api_key=api_key(services, request.recipe))
        return await plan_groups(services, asked, options.replicas or 0)

    print_groups(request.deployment, shared.with_services(options.where, planned, quiet=True), options)


def _history(recipes: Sequence[str], as_json: bool) -> None:
    from sparkwright.adapters.plan_history import FilePlanHistory  # nothing else of a plan is loaded for it
    from sparkwright.cli.plan_history import history_json, history_text

    every = [one for one in FilePlanHistory(wiring.plan_history()).all() if one.measured]
    rows = [one for one in every if not recipes or one.recipe in recipes or one.recipe.partition("@")[0] in recipes]
    shared.answer(as_json, history_json(rows), history_text(rows), 0)


def _check_words(options: PlanOptions) -> None:
    """Checks that the options go together. Raises click.UsageError."""
    if options.out and (options.as_json or not options.form):
        raise click.UsageError("--folder goes with --emit, and not with --json")
    if options.goal and options.form:
        raise click.UsageError("--optimize goes without --emit: paste what it finds into the recipe first")
    if options.replicas and (said := _given(options, ("goal", "logs"))):
        raise click.UsageError(f"--replicas goes without --{_SPELLED[said[0]]}: plan one replica for that")
    alone = ("replicas", "goal", "form", "logs", "name", "force", "why", "splits", "commands")
    given = _given(options, alone)
    if options.stock.given and (said := _given(options, ("goal", "logs"))):
        raise click.UsageError(f"--{_SPELLED.get(said[0], said[0])} needs the nodes: leave out --nodes and its like")
    if (len(options.recipes) > 1 or len(options.stock.nodes or ()) > 1) and given:
        raise click.UsageError(f"recipes are compared without --{_SPELLED.get(given[0], given[0])}: give one recipe")


def _given(options: PlanOptions, names: Sequence[str]) -> list[str]:
    """The names of those that were given."""
    return [name for name in names if getattr(options, name)]


def _compare(where: ClusterOptions, opened: Sequence[Recipe], as_json: bool) -> None:
    """Exit 1 when `up` would refuse every one of them."""
    from sparkwright.app.serve.prepare import planned  # only where several are compared
    from sparkwright.cli.plan_optimize import comparison_json, comparison_text
    from sparkwright.cli.plan_result import plan_json

    found = shared.with_services(where, lambda services: planned(services, opened), quiet=True)
    plans = [one.outcome.plan for one in found if one.outcome]
    refused = all(stopping(one, "") or not_known(one) for one in plans)
    document = comparison_json(found, lambda made: plan_json(made, ()))
    shared.answer(as_json, document, comparison_text(found), int(refused))


def _optimize(where: ClusterOptions, request: LaunchRequest, goal: Goal, as_json: bool) -> None:
    from sparkwright.app.plan.gate import optimum  # the planner, for a search only
    from sparkwright.cli.plan_optimize import optimum_json, optimum_text

    found = shared.with_services(where, lambda services: optimum(services, request, goal), quiet=True)
    shared.answer(as_json, optimum_json(found), optimum_text(found), int(not found.best.verdict.fits))
