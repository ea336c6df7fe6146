"""`sparkwright demo`: a supervised, simulated deployment on this machine that loses a rank and recovers."""

import shutil
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import yaml

from sparkwright.adapters.files import open_recipe
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.services import Services
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo_text, fold_line
from sparkwright.cli.demo_story import Stage, play_demo
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.homes import expand_home
from sparkwright.domain.recipe import GatewayTls, Recipe
from sparkwright.domain.values import asdict, replace
from sparkwright.engines.catalog import simulator
from sparkwright.simulator.nodes import lend_caddy, make_cluster
from sparkwright.wiring import keys_folder, places

RECIPE = "simulator"
WHAT = "SIMULATED: two embedded nodes, and an engine that speaks like vLLM 0.21.0 without a model"
NEXT = """On machines of your own: `sparkwright init spark-1 spark-2`, then `check`, `recipes list`, `up RECIPE`."""


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
@click.option("--keep", is_flag=True, help="Leave it running for a look; print how to end it.")
@shared.json_option
def demo(wanted: str, keep: bool, as_json: bool) -> None:
    """Start a simulated deployment, kill a rank, and show the 503, the recovery and the incident.

    It runs on this machine through the code that drives real nodes: supervisor, gateway and console included. It takes
    less than a minute. Nothing is installed, no port beyond loopback is opened, and nothing is left behind.

    \b
    Examples:
      sparkwright demo
      sparkwright demo --keep
      sparkwright demo --recipe simulator-deepseek
    """
    recipe = _for_a_demo(_simulated(wanted))
    began, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="sparkwright-demo-"))
    # A name of its own: keys are stored by it, and two demonstrations may run at once.
    cluster = replace(make_cluster(folder), name=folder.name.removeprefix("sparkwright-"))
    keys = keys_folder() / cluster.name
    with ExitStack() as ending:
        ending.callback(shutil.rmtree, folder, ignore_errors=True)
        ending.callback(shutil.rmtree, keys, ignore_errors=True)
        lend_caddy(folder)
        say = (lambda text: None) if as_json else echo_text
        say(f"{WHAT}\n")
        stage = Stage(
            recipe, folder, keep, lambda text: say(fold_line(f"{time.monotonic() - began:6.1f} s  {text}", 20))
        )

        async def played(services: Services) -> dict[str, Any]:
            return await play_demo(services, stage)

        result = shared.drive_on(cluster, ClusterOptions(), played, quiet=True)
        if keep:
            result |= _kept(folder, cluster, recipe)
            ending.pop_all()
    over = f"{time.monotonic() - began:6.1f} s  nothing is left of it\n\n{NEXT}"
    shared.answer(as_json, {"simulated": True, **result}, _farewell(result, keys) if keep else over)


def _simulated(wanted: str) -> Recipe:
    recipe = open_recipe(wanted, places())
    if not simulator(recipe):
        raise RecipeError(
            f"{wanted}: its engine is {recipe.engine.name}; the demo serves recipes of the simulator only",
            "sparkwright recipes list shows them as simulated; with nodes of your own: `sparkwright up`",
        )
    return recipe


def _for_a_demo(recipe: Recipe) -> Recipe:
    """The recipe with free ports and plain HTTP: browsers warn of a new CA, and the loopback needs no encryption."""
    port, master, door = _free_ports()
    gateway = replace(recipe.serving.gateway, port=door, tls=GatewayTls.OFF)
    return replace(recipe, serving=replace(recipe.serving, port=port, master_port=master, gateway=gateway))


def _free_ports() -> tuple[int, int, int]:
    """Free ports of the engine, its ranks and the gateway; the port after the gateway's is free, too."""
    with ExitStack() as probes:
        found: list[int] = []
        while len(found) < 2:
            found.append(probes.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1])
        while True:
            door = probes.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            try:
                probes.enter_context(socket.create_server(("127.0.0.1", door + 1)))
            except (OSError, OverflowError):
                continue
            return found[0], found[1], door


def _kept(folder: Path, cluster: Cluster, recipe: Recipe) -> dict[str, str]:
    """A cluster file next to the nodes, so that every other verb works on them."""
    path = folder / "cluster.yaml"
    path.write_text(cluster_yaml(cluster))
    return {"folder": str(folder), "cluster_file": str(path), "deployment": recipe.deployment}


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
        "paths": {name: expand_home(path, home) for name, path in asdict(node.paths).items()},
        "env": dict(node.env),
    }


def _farewell(kept: dict[str, Any], keys: Path) -> str:
    name = kept["deployment"]
    return (
        f"\nIt runs on. Look at it with the console above, or with:\n"
        f"  export SPARKWRIGHT_CLUSTER={kept['cluster_file']}\n"
        f"  sparkwright status; sparkwright top; sparkwright connect curl; sparkwright incidents show 1\n"
        f"  sparkwright down {name} && rm -r {kept['folder']} {keys}      # ends it"
    )
