"""`sparkwright demo`: the whole loop on this machine, simulated, through the same code that drives real nodes."""

import shutil
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from sparkwright.adapters.files import open_recipe
from sparkwright.app.check import check_nodes
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.launch import Options, up
from sparkwright.app.prepare import prepare
from sparkwright.app.queries import status
from sparkwright.app.services import LaunchRequest, Services, expand
from sparkwright.app.stage import staging_text
from sparkwright.app.stop import down
from sparkwright.cli import options as shared
from sparkwright.cli.check_fix import summary
from sparkwright.cli.columns import echo, findings_text
from sparkwright.cli.text import answer_text, deployment_text, plan_text
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import duration
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.engines.catalog import simulator
from sparkwright.engines.simulator import Simulator
from sparkwright.simulator.nodes import make_cluster
from sparkwright.wiring import places

T = TypeVar("T")
RECIPE = Simulator.name
WIDTH = 76
WHAT = "two embedded nodes on this machine, and an engine that speaks like vLLM 0.21.0 without a model."
NEXT = """What to do next on real nodes:
  echo 'nodes: [spark-1, spark-2]' > cluster.yaml      the names are what you give to ssh
  sparkwright check                     are the nodes in order?
  sparkwright recipes list              what can be served
  sparkwright plan deepseek-v4-flash    does it fit, and the exact commands
  sparkwright up deepseek-v4-flash      serve it"""


@dataclass(frozen=True, slots=True)
class Show:
    """What is shown, and whether it is kept running. quiet: with --json only the result is printed."""

    recipe: Recipe
    keep: bool
    quiet: bool

    def echo(self, text: str) -> None:
        if not self.quiet:
            echo(text)


@click.command()
@click.option(
    "--recipe",
    "wanted",
    default=RECIPE,
    show_default=True,
    metavar="RECIPE",
    shell_complete=shared.complete.recipes,
    help="A recipe of the simulator.",
)
@click.option("--keep", is_flag=True, help="Leave it running and print the commands to inspect and end it.")
@shared.json_option
def demo(wanted: str, keep: bool, as_json: bool) -> None:
    """Run the whole loop on this machine, on a simulated two-node cluster, in under two minutes.

    Nothing is installed, no port beyond loopback is opened, and nothing is left behind.

    \b
    Examples:
      sparkwright demo
      sparkwright demo --keep
      sparkwright demo --recipe twin-deepseek
    """
    recipe = _with_free_ports(_simulated(wanted))
    show = Show(recipe, keep, as_json)
    folder = Path(tempfile.mkdtemp(prefix="sparkwright-demo-"))
    done = False
    try:
        cluster = make_cluster(folder)
        result = _loop(cluster, show)
        done = True
    finally:
        if not (keep and done):
            shutil.rmtree(folder, ignore_errors=True)
    kept = _kept(folder, cluster, recipe) if keep else {}
    shared.answer(as_json, result | kept, _farewell(kept, recipe))


def _simulated(wanted: str) -> Recipe:
    recipe = open_recipe(wanted, places())
    if not simulator(recipe):
        raise RecipeError(
            f"{wanted}: its engine is {recipe.engine.name}; the demo serves recipes of the simulator only",
            "sparkwright recipes list shows them as simulated; with nodes of your own: `sparkwright up`",
        )
    return recipe


def _loop(cluster: Cluster, show: Show) -> dict[str, Any]:
    """check, plan, up, status, down, each as the verb of that name does it. What fails is taken down all the same."""
    echo, recipe, done = show.echo, show.recipe, False
    began, request = time.monotonic(), LaunchRequest(recipe, recipe.deployment)
    verb = _Verb(cluster, show)
    echo(f"SIMULATED: {WHAT}")
    checked = verb("check", check_nodes)
    told = findings_text(checked.findings, checked.facts, fixes=True)
    echo("\n".join(filter(None, (told, summary(checked)))))
    planned = verb("plan", lambda services: prepare(services, request))
    echo(plan_text(planned.plan, staging_text(planned.plan, planned.cluster_state), why=False))
    try:
        outcome = verb("up", lambda services: up(services, request, Options(ends=True)))
        times = "\n".join(f"  {name:<12} {duration(seconds):>8}" for name, seconds in outcome.steps)
        echo(f"{answer_text(outcome.answer) if outcome.answer else 'no answer'}\nwhere time went\n{times}")
        found, _ = verb("status", status)
        echo("\n".join(deployment_text(d) for d in found))
        done = True
    finally:
        if not (show.keep and done):
            verb("down", lambda services: down(services, recipe.deployment, seize=True))
    echo(f"\n{duration(time.monotonic() - began)} in all{'' if show.keep else '; nothing is left of it'}")
    return {
        "simulated": True,
        "answer": asdict(outcome.answer) if outcome.answer else None,
        "steps": [{"name": n, "seconds": round(s, 3)} for n, s in outcome.steps],
        "status": [asdict(d) for d in found],
    }


@dataclass(frozen=True, slots=True)
class _Verb:
    """Runs one verb's use case under its title, with its progress."""

    cluster: Cluster
    show: Show

    def __call__(self, title: str, use: Callable[[Services], Awaitable[T]]) -> T:
        self.show.echo(click.style(f"\n--- sparkwright {title} ".ljust(WIDTH, "-"), bold=True))
        return shared.drive_on(self.cluster, ClusterOptions(), use, quiet=self.show.quiet or title == "plan")


def _with_free_ports(recipe: Recipe) -> Recipe:
    """8000 may be taken on the user's machine; a demonstration should not fail for that."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [probe.getsockname()[1] for probe in (one, other)]
    return replace(recipe, serving=replace(recipe.serving, port=ports[0], master_port=ports[1]))


def _kept(folder: Path, cluster: Cluster, recipe: Recipe) -> dict[str, str]:
    """A cluster file next to the nodes, so that every other verb works on them."""
    path = folder / "cluster.yaml"
    path.write_text(cluster_yaml(cluster))
    return {
        "folder": str(folder),
        "cluster_file": str(path),
        "endpoint": f"http://127.0.0.1:{recipe.serving.port}/v1",
        "deployment": recipe.deployment,
    }


def cluster_yaml(cluster: Cluster) -> str:
    """The file of a cluster of embedded nodes."""
    nodes = [_node(node) for node in cluster.nodes]
    content = {"name": cluster.name, "simulated": cluster.simulated, "head": cluster.head, "nodes": nodes}
    return yaml.safe_dump(content, sort_keys=False, width=200)


def _node(node: Node) -> dict[str, Any]:
    home, fabric = dict(node.env).get("HOME", "~"), asdict(node.fabric).items()
    return {
        "name": node.name,
        "ssh": node.ssh,
        "fabric": {name: list(value) if isinstance(value, tuple) else value for name, value in fabric if value},
        # Written out: the nodes share a machine, and are told apart by where they keep their state.
        "paths": {name: expand(path, home) for name, path in asdict(node.paths).items()},
        "env": dict(node.env),
    }


def _farewell(kept: dict[str, str], recipe: Recipe) -> str:
    if not kept:
        return f"\n{NEXT}"
    path = kept["cluster_file"]
    return (
        f"\nIt runs (SIMULATED) on {kept['endpoint']}, model {recipe.model.served_name}\n"
        f"  export SPARKWRIGHT_CLUSTER={path}\n"
        "  sparkwright status\n"
        f"  sparkwright logs {recipe.deployment}\n"
        f"  sparkwright down {recipe.deployment} && rm -r {kept['folder']}      ends it"
    )
