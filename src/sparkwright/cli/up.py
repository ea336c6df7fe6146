"""`sparkwright up` and `down`."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from sparkwright.adapters.files import open_recipe, recipe_names
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.copy.stage import staging_text
from sparkwright.app.serve.launch import Options
from sparkwright.app.serve.launch import up as bring_up
from sparkwright.app.serve.prepare import Outcome
from sparkwright.app.serve.restart import restart as start_again
from sparkwright.app.serve.running import the_only_one
from sparkwright.app.serve.stop import Removed
from sparkwright.app.serve.stop import down as take_down
from sparkwright.app.services import LaunchRequest, Services, api_key
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo
from sparkwright.cli.plan_result import plan_json
from sparkwright.cli.prove import proof_json, proof_text, prove
from sparkwright.cli.up_text import outcome_text
from sparkwright.domain.errors import UsageError
from sparkwright.domain.plan import stopping
from sparkwright.domain.units import duration
from sparkwright.domain.values import replace
from sparkwright.wiring import places


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
@click.option("--no-rollback", is_flag=True, help="Do not roll back to the old deployment when the new one fails.")
@shared.drain_option
@click.option("--no-coherence", is_flag=True, help="Do not judge the first answers; for random weights.")
@click.option("--prove", is_flag=True, help="Then judge a short benchmark and the quick probes by gates.")
@click.option("--verbose", is_flag=True, help="Also print the engine's own figures.")
@shared.json_option
def up(recipe: str, profile: str, name: str, where: ClusterOptions, **rest: Any) -> None:
    """Start a recipe and wait until it has answered a real request.

    A supervisor on the head node restarts failed ranks from then on, also after a reboot and without this machine.
    Idempotent: a second run is a no-op. Ctrl-C before launch rolls back; after launch it only detaches, and running
    `up` again re-attaches.

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
    """
    if rest["prove"] and rest["detach"]:
        raise UsageError("--prove needs an endpoint that answers: it does not go with --detach")
    brought(recipe, profile, name, where, rest)


def brought(recipe: str, profile: str, name: str, where: ClusterOptions, rest: Mapping[str, Any]) -> None:
    """Runs `up` or `switch` with its options."""
    began = time.monotonic()
    opened = open_recipe(recipe, places(), profile)
    if rest["no_coherence"]:
        opened = replace(opened, serving=replace(opened.serving, coherence=False))
    named, supervise = name or opened.deployment, not rest["no_supervise"]
    replaces = "" if rest["replace"] == named else rest["replace"]
    given = (rest["dry_run"], rest["seize"], rest["detach"], supervise, rest["allow_reboot"], not rest["no_rollback"])

    async def start(services: Services) -> Outcome:
        key = api_key(services, opened)
        request = LaunchRequest(opened, named, rest["force"], key, supervised=supervise, replaces=replaces)
        outcome = await bring_up(services, request, Options(*given, rest["drain"]))
        if outcome.done != "planned":
            shared.remember(services.cluster, (named, *shared.remembered(services.cluster)))
        return outcome

    outcome = shared.drive(where, start, quiet=rest["as_json"])
    text = outcome_text(outcome, time.monotonic() - began, where.ssh_config, rest["verbose"])
    refused = outcome.done == "planned" and bool(stopping(outcome.plan, rest["force"]))
    if not rest["prove"] or outcome.done == "planned":
        shared.answer(rest["as_json"], outcome_json(outcome), text, int(refused or outcome.done == "garbled"))
        return
    if not rest["as_json"]:
        echo(f"{text}\n")
    proven = asyncio.run(prove(named, where, opened.gates, rest["as_json"]))
    document = {**outcome_json(outcome), "proof": proof_json(proven)}
    shared.answer(
        rest["as_json"], document, proof_text(named, proven), int(not proven.passed or outcome.done == "garbled")
    )


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

    Idempotent. [default: the only deployment]

    \b
    Example: sparkwright down deepseek-v4-flash
    """

    async def taken(services: Services) -> Removed:
        name = deployment or await the_only_one(services, "down")
        return await take_down(services, name, seize, recipe_names(places()))

    removed = shared.drive(where, taken, quiet=as_json)
    told = "nothing to remove, no node has anything of it"
    if removed.ranks:
        told = f"{len(removed.ranks)} rank(s) removed"
    elif removed.files:
        told = f"no rank ran; its files on {', '.join(removed.files)} are removed"
    document = {"deployment": removed.deployment, "ranks": [asdict(r) for r in removed.ranks]}
    shared.answer(as_json, document, f"{removed.deployment}: {told}")


@click.command()
@click.argument(
    "deployment", required=False, callback=shared.deployment_if_given, shell_complete=shared.complete.deployments
)
@shared.cluster_options
@shared.drain_option
@shared.json_option
def restart(deployment: str, where: ClusterOptions, drain: float, as_json: bool) -> None:
    """Restart a deployment; its gateway answers 503 meanwhile.

    Its supervisor stops and starts the ranks without counting a fault. Ctrl-C only detaches.
    [default: the only deployment]

    \b
    Example: sparkwright restart deepseek-v4-flash
    """

    async def restarted(services: Services) -> tuple[str, float]:
        name = deployment or await the_only_one(services, "restart")
        return name, await start_again(services, name, drain)

    name, seconds = shared.drive(where, restarted, quiet=as_json)
    document = {"deployment": name, "seconds": round(seconds, 3)}
    shared.answer(as_json, document, f"{name}: ready again after {duration(seconds)}")
