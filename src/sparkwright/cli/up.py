"""`sparkwright up` and `down`."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from sparkwright.adapters.files import open_recipe, recipe_names
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.copy.stage import staging_text
from sparkwright.app.serve.launch import Options
from sparkwright.app.serve.launch import up as bring_up
from sparkwright.app.serve.prepare import Outcome
from sparkwright.app.serve.replica_groups import replicas_of
from sparkwright.app.serve.replicas import (
    ReplicasOutcome,
    down_replicas,
    restart_replicas,
    up_replicas,
    wants_replicas,
)
from sparkwright.app.serve.restart import restart as start_again
from sparkwright.app.serve.running import the_only_one
from sparkwright.app.serve.stop import Removed
from sparkwright.app.serve.stop import down as take_down
from sparkwright.app.services import LaunchRequest, Services, api_key
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo_text
from sparkwright.cli.plan_result import plan_json
from sparkwright.cli.prove import proof_json, proof_text, prove
from sparkwright.cli.up_text import outcome_text, replicas_text
from sparkwright.domain.errors import UsageError
from sparkwright.domain.plan import stopping
from sparkwright.domain.units import duration
from sparkwright.domain.values import dataclass, replace
from sparkwright.wiring import places


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The command line of `up`, and of `switch`, which leaves out the fields with a default.

    force: the reason. seize: of --break-lease. drain: seconds. replace: '' for none. replicas: None as in the recipe.
    """

    recipe: str
    profile: str
    name: str
    where: ClusterOptions
    force: str
    seize: bool
    dry_run: bool
    allow_reboot: bool
    replicas: int | None
    drain: float
    verbose: bool
    as_json: bool
    replace: str
    detach: bool = False
    no_supervise: bool = False
    no_rollback: bool = False
    no_coherence: bool = False
    prove: bool = False


@click.command()
@click.argument("recipe", metavar="RECIPE[@PROFILE]", shell_complete=shared.complete.recipes)
@shared.profile_option
@shared.name_option
@shared.cluster_options
@shared.force_option
@shared.lease_option
@click.option("--dry-run", is_flag=True, help="Print the plan and exit; change nothing.")
@click.option("--detach", is_flag=True, help="Return once the ranks run; do not wait for the first answer.")
@click.option("--no-supervise", is_flag=True, help="Start without supervisor and gateway.")
@click.option("--allow-reboot", is_flag=True, help="Allow the supervisor to reboot the nodes as a last resort.")
@click.option(
    "--replace",
    default="",
    callback=shared.deployment_if_any,
    shell_complete=shared.complete.deployments,
    metavar="DEPLOYMENT",
    help="Replace this deployment; roll back to it if the start fails.",
)
@shared.replicas_option
@click.option("--no-rollback", is_flag=True, help="Do not roll back to the old deployment when the new one fails.")
@shared.drain_option
@click.option("--no-coherence", is_flag=True, help="Do not judge the first answers; for random weights.")
@click.option("--prove", is_flag=True, help="Then judge a short benchmark and the quick probes by gates.")
@click.option("--verbose", is_flag=True, help="Also print the engine's own figures.")
@shared.json_option
def up(**given: Any) -> None:
    """Start a recipe and wait until it has answered a real request.

    A supervisor on the head node restarts failed ranks from then on, also after a reboot and without this machine.
    Idempotent: a second run is a no-op. Ctrl-C before launch rolls back; after launch it only detaches, and running
    `up` again re-attaches.

    --replicas N keeps N copies of the model behind one address, each on nodes of its own: it starts what is missing,
    and takes away what is too many while the others serve (docs/guides/replicas.md).

    A changed recipe replaces the deployment of the same name, --replace another one: weights and image are staged while
    the old one serves, its gateway answers 503 during the swap, and it is rolled back if the new one does not become
    ready or you press Ctrl-C.

    Three easy questions with known answers follow the first answer. If the answers are token soup, the deployment
    serves, is not called ready, and the exit status is 1.

    --prove measures half a minute (profile prove) and asks the quick probes, and judges both by the recipe's `gates:`
    [without: errors == 0, failed_probes == 0]. Exit status 1 when a gate fails; the deployment continues to serve.

    \b
    Examples:
      sparkwright up deepseek-v4-flash@256k
      sparkwright up deepseek-v4-flash@256k --prove
      sparkwright up ./my-recipe.yaml --dry-run
      sparkwright up tiny-llama-cpp --cluster demo.yaml --json
      sparkwright up qwen3-coder-next --replace gpt-oss-120b
      sparkwright up gpt-oss-20b --replicas 2
    """
    options = UpOptions(**given)
    if options.prove and options.detach:
        raise UsageError("--prove needs an endpoint that answers: it does not go with --detach")
    bring_up_recipe(options)


def bring_up_recipe(options: UpOptions) -> None:
    """Runs `up` or `switch`."""
    began = time.monotonic()
    opened = open_recipe(options.recipe, places(), options.profile)
    if options.no_coherence:
        opened = replace(opened, serving=replace(opened.serving, coherence=False))
    named, supervise = options.name or opened.deployment, not options.no_supervise
    replaces = "" if options.replace == named else options.replace
    how = Options(
        options.dry_run,
        options.seize,
        options.detach,
        supervise,
        options.allow_reboot,
        not options.no_rollback,
        options.drain,
    )

    async def start(services: Services) -> Outcome | ReplicasOutcome:
        key = api_key(services, opened)
        request = LaunchRequest(opened, named, options.force, key, supervised=supervise, replaces=replaces)
        asked = options.replicas or 0
        if services.program and await wants_replicas(services, request, asked):
            every = await up_replicas(services, request, how, asked)
            _remember(services, [named, *(one.plan.deployment for one in every.outcomes)], options.dry_run)
            return every
        outcome = await bring_up(services, request, how)
        _remember(services, [named], outcome.done == "planned")
        return outcome

    outcome = shared.with_services(options.where, start, quiet=options.as_json)
    if isinstance(outcome, ReplicasOutcome):
        _print_replicas(outcome, time.monotonic() - began, options, opened.gates)
        return
    text = outcome_text(outcome, time.monotonic() - began, options.where.ssh_config, options.verbose)
    refused = outcome.done == "planned" and bool(stopping(outcome.plan, options.force))
    if not options.prove or outcome.done == "planned":
        shared.answer(options.as_json, outcome_json(outcome), text, int(refused or outcome.done == "garbled"))
        return
    if not options.as_json:
        echo_text(f"{text}\n")
    proven = asyncio.run(prove(named, options.where, opened.gates, options.as_json))
    document = {**outcome_json(outcome), "proof": proof_json(proven)}
    shared.answer(
        options.as_json, document, proof_text(named, proven), int(not proven.passed or outcome.done == "garbled")
    )


def _remember(services: Services, names: Sequence[str], planned: bool) -> None:
    """Keeps the names for completion in a shell; those of a dry run exist nowhere."""
    if not planned:
        shared.remember(services.cluster, (*names, *shared.remembered(services.cluster)))


def _print_replicas(found: ReplicasOutcome, seconds: float, options: UpOptions, gates: Sequence[str]) -> None:
    """Print one answer for all replicas, and with --prove what their gateway's answers are worth."""
    planned = all(one.done == "planned" for one in found.outcomes)
    refused = planned and any(stopping(one.plan, options.force) for one in found.outcomes)
    unreached = not planned and any(one.armed is None or not one.armed.node for one in found.outcomes)
    code = int(refused or unreached or any(one.done == "garbled" for one in found.outcomes))
    document, text = replicas_json(found), replicas_text(found, seconds, options.where.ssh_config)
    if not options.prove or planned:
        shared.answer(options.as_json, document, text, code)
        return
    if not options.as_json:
        echo_text(f"{text}\n")
    proven = asyncio.run(prove(found.name, options.where, tuple(gates), options.as_json))
    document |= {"proof": proof_json(proven)}
    shared.answer(options.as_json, document, proof_text(found.name, proven), int(not proven.passed or bool(code)))


def replicas_json(found: ReplicasOutcome) -> dict[str, Any]:
    """deployment, replicas [as of `up`], removed."""
    names = {"deployment": found.name, "removed": list(found.removed)}
    return {**names, "replicas": [outcome_json(one) for one in found.outcomes]}


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """done, answer, steps [{name, seconds}], engine facts and the plan."""
    return {
        "done": outcome.done,
        "simulated": outcome.plan.recipe.model.simulated or outcome.plan.cluster.simulated,
        "answer": asdict(outcome.answer) if outcome.answer else None,
        "steps": [{"name": n, "seconds": round(s, 3)} for n, s in outcome.steps],
        "engine": outcome.facts,
        "supervision": asdict(outcome.armed) if outcome.armed else None,
        "plan": plan_json(outcome.plan, staging_text(outcome.plan, outcome.cluster_state)),
    }


@click.command()
@click.argument(
    "deployment", required=False, callback=shared.deployment_if_given, shell_complete=shared.complete.deployments
)
@shared.cluster_options
@shared.lease_option
@shared.json_option
def down(deployment: str, where: ClusterOptions, seize: bool, as_json: bool) -> None:
    """Stop a deployment and remove its containers, processes, files and leases.

    The name of a model takes all of its replicas, NAME-r2 only that one. Idempotent. [default: the only deployment]

    \b
    Example: sparkwright down deepseek-v4-flash
    """

    async def taken(services: Services) -> tuple[str, tuple[Removed, ...]]:
        name, recipes = deployment or await the_only_one(services, "down"), recipe_names(places())
        if members := await replicas_of(services, name):
            return name, await down_replicas(services, members, seize, recipes)
        return name, (await take_down(services, name, seize, recipes),)

    name, gone = shared.with_services(where, taken, quiet=as_json)
    ranks = [asdict(rank) for one in gone for rank in one.ranks]
    document = {"deployment": name, "ranks": ranks}
    document |= {"replicas": [one.deployment for one in gone]} if gone[0].deployment != name else {}
    shared.answer(as_json, document, "\n".join(map(_removed_text, gone)))


def _removed_text(removed: Removed) -> str:
    told = "nothing to remove, no node has anything of it"
    if removed.ranks:
        told = f"{len(removed.ranks)} rank(s) removed"
    elif removed.files:
        told = f"no rank ran; its files on {', '.join(removed.files)} are removed"
    return f"{removed.deployment}: {told}"


@click.command()
@click.argument(
    "deployment", required=False, callback=shared.deployment_if_given, shell_complete=shared.complete.deployments
)
@shared.cluster_options
@shared.drain_option
@click.option("--rolling", is_flag=True, help="One replica after the other, so that the others serve meanwhile.")
@shared.json_option
def restart(deployment: str, where: ClusterOptions, drain: float, rolling: bool, as_json: bool) -> None:
    """Restart a deployment; its gateway answers 503 meanwhile.

    Its supervisor stops and starts the ranks without counting a fault. Ctrl-C only detaches. The name of a model
    restarts all of its replicas, with --rolling one after the other: no request fails, and it stops at the first
    replica that does not serve again. [default: the only deployment]

    \b
    Examples:
      sparkwright restart deepseek-v4-flash
      sparkwright restart gpt-oss-20b --rolling
    """

    async def restarted(services: Services) -> tuple[str, float, dict[str, float]]:
        name, began = deployment or await the_only_one(services, "restart"), services.clock.monotonic()
        members = await replicas_of(services, name)
        if rolling and not members:
            raise UsageError(f"{name} has no replicas: nothing would serve meanwhile", f"`sparkwright restart {name}`")
        if not members:
            return name, await start_again(services, name, drain), {}
        took = await restart_replicas(services, name, members, drain, rolling)
        return name, services.clock.monotonic() - began, took

    name, seconds, took = shared.with_services(where, restarted, quiet=as_json)
    document: dict[str, Any] = {"deployment": name, "seconds": round(seconds, 3)}
    document |= {"replicas": {one: round(each, 3) for one, each in took.items()}} if took else {}
    text = [f"{one}: ready again after {duration(each)}" for one, each in (took or {name: seconds}).items()]
    shared.answer(as_json, document, "\n".join(text))
