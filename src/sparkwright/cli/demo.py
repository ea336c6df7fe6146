"""`sparkwright demo`: the whole loop on this machine, simulated, through the same code that drives real nodes."""

import shutil
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from sparkwright.adapters.files import open_recipe
from sparkwright.app.check import check_nodes
from sparkwright.app.launch import Options, Outcome, prepare, up
from sparkwright.app.queries import status
from sparkwright.app.stage import staging_text
from sparkwright.app.stop import down
from sparkwright.app.world import Wish, World
from sparkwright.cli import options as shared
from sparkwright.cli.text import answer_text, deployment_text, findings_text, plan_text
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.deployment import Deployment
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import duration
from sparkwright.twin.nodes import make_cluster
from sparkwright.wiring import Where, places

T = TypeVar("T")
RECIPE = "twin"
NEXT = """What to do next on real nodes:
  echo 'nodes: [spark-1, spark-2]' > cluster.yaml      the names are what you give to ssh
  sparkwright check                     are the nodes in order?
  sparkwright recipes list              what can be served
  sparkwright plan deepseek-v4-flash    does it fit, and the exact commands
  sparkwright up deepseek-v4-flash      serve it"""


@click.command()
@click.option("--recipe", "wanted", default=RECIPE, show_default=True, metavar="RECIPE", help="A recipe of the twin.")
@click.option("--keep", is_flag=True, help="Leave it running, and say how to look at it and end it.")
@shared.json_option
def demo(wanted: str, keep: bool, as_json: bool) -> None:
    """The whole loop on this machine, on an embedded simulated two-node cluster, in under two minutes.

    Nothing is installed, no port beyond loopback is opened, and nothing is left behind.
    """
    folder = Path(tempfile.mkdtemp(prefix="sparkwright-demo-"))
    try:
        cluster = make_cluster(folder)
        recipe = _with_free_ports(open_recipe(wanted, places()))
        result = shared.drive_on(cluster, Where(), lambda world: _loop(world, recipe, keep, as_json), quiet=as_json)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        shared.print_json(result)
    elif keep:
        click.echo(_kept(folder, cluster, recipe))
    else:
        click.echo(f"\n{NEXT}")


async def _loop(world: World, recipe: Recipe, keep: bool, quiet: bool) -> dict[str, Any]:
    """check, plan, up, status, down, each as the verb of that name does it."""
    say: Callable[[str], None] = (lambda text: None) if quiet else click.echo
    began, wish = time.monotonic(), Wish(recipe, recipe.deployment)
    say("SIMULATED: two embedded nodes on this machine, and an engine that speaks like vLLM 0.21.0 without a model.\n")
    findings, _, asked = await _titled(say, "check", check_nodes(world))
    say(findings_text(findings) or f"{asked} nodes, no findings")
    planned = await _titled(say, "plan", prepare(world, wish))
    say(plan_text(planned.plan, staging_text(planned.plan, planned.survey), why=False))
    try:
        outcome = await _titled(say, "up", up(world, wish, Options()))
        say(_told(outcome))
        found, _ = await _titled(say, "status", status(world))
        say("\n".join(deployment_text(d) for d in found))
    finally:
        if not keep:
            await _titled(say, "down", down(world, recipe.deployment))
    say(f"nothing is left of it; {duration(time.monotonic() - began)} in all")
    return _json(outcome, found)


async def _titled(say: Callable[[str], None], title: str, work: Awaitable[T]) -> T:
    say(f"\n--- sparkwright {title} " + "-" * (60 - len(title)))
    return await work


def _told(outcome: Outcome) -> str:
    times = "\n".join(f"  {name:<12} {duration(seconds)}" for name, seconds in outcome.steps)
    answer = answer_text(outcome.answer) if outcome.answer else "no answer"
    return f"{answer}\nwhere time went:\n{times}"


def _json(outcome: Outcome, found: tuple[Deployment, ...]) -> dict[str, Any]:
    return {
        "simulated": True,
        "answer": asdict(outcome.answer) if outcome.answer else None,
        "steps": [{"name": n, "seconds": round(s, 3)} for n, s in outcome.steps],
        "status": [asdict(d) for d in found],
    }


def _with_free_ports(recipe: Recipe) -> Recipe:
    """8000 may be taken on the user's machine; a demonstration should not fail for that."""
    with _free_port() as port, _free_port() as master:
        serving = replace(recipe.serving, port=port, master_port=master)
    return replace(recipe, serving=serving)


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield int(probe.getsockname()[1])


def _kept(folder: Path, cluster: Cluster, recipe: Recipe) -> str:
    """A cluster file beside the nodes, so that every other verb works on them."""
    lines = ["name: simulated", "simulated: true", f"head: {cluster.head}", "nodes:"]
    for node in cluster.nodes:
        lines += [f"  - name: {node.name}", "    ssh: local", "    env:"]
        lines += [f"      {name}: {value!r}" for name, value in node.env]
    path = folder / "cluster.yaml"
    path.write_text("\n".join(lines) + "\n")
    return (
        f"\nIt runs on: http://127.0.0.1:{recipe.serving.port}/v1 (model {recipe.model.served_name})\n"
        f"  sparkwright status --cluster {path}\n"
        f"  sparkwright down {recipe.deployment} --cluster {path} && rm -r {folder}"
    )
