"""`sparkwright check` and `facts`."""

from dataclasses import asdict
from typing import Any

import click

from sparkwright.app.gather import Gathered, gather
from sparkwright.app.survey import ranks_fact
from sparkwright.app.world import World
from sparkwright.cli import options as shared
from sparkwright.cli.facts_text import facts_text
from sparkwright.cli.text import findings_text, mark
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.errors import NodeError, UsageError
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.wiring import Where, cluster_of


@click.command()
@shared.where_options
@shared.json_option
def check(cluster: str, ssh_config: str, as_json: bool) -> None:
    """Look at all nodes in parallel: findings with evidence and remedy, worst first.

    Exit 0: nothing to mend; 1: findings; 3: a node could not be reached.

    \b
    Examples:
      sparkwright check
      sparkwright check --cluster lab.yaml --json
    """
    from sparkwright.app.check import check_nodes

    where = Where(cluster, ssh_config)
    opened = cluster_of(where)
    findings, lost, asked = shared.drive_on(opened, where, check_nodes, quiet=True)
    if as_json:
        shared.print_json(_check_json(opened, findings, lost))
    else:
        _say(opened, (findings, lost, asked))
    if lost:
        raise click.exceptions.Exit(3)
    if any(f.severity is not Severity.INFO for f in findings):
        raise click.exceptions.Exit(1)


def _check_json(cluster: Cluster, findings: tuple[Finding, ...], lost: tuple[NodeError, ...]) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        "simulated": cluster.simulated,
        "findings": [asdict(finding) for finding in findings],
        "unreachable": {error.node: error.message for error in lost},
    }


def _say(cluster: Cluster, checked: tuple[tuple[Finding, ...], tuple[NodeError, ...], int]) -> None:
    findings, lost, asked = checked
    if findings:
        click.echo(findings_text(findings))
    for error in lost:
        click.secho(f"error: {error.message}", err=True, fg="red")
        click.echo(f"cure:  {error.cure}", err=True)
    click.echo(mark(cluster.simulated) + checked_text(findings, asked - len(lost), asked))


def checked_text(findings: tuple[Finding, ...], answered: int, asked: int) -> str:
    """The last line of a check: how many nodes answered, and with how many findings."""
    nodes = f"{answered} of {asked} nodes answered" if answered < asked else f"all {asked} nodes answered"
    return f"{nodes}, {len(findings) or 'no'} finding{'' if len(findings) == 1 else 's'}"


@click.command()
@click.argument("node", required=False, default="")
@shared.where_options
@shared.json_option
def facts(node: str, cluster: str, ssh_config: str, as_json: bool) -> None:
    """What is known of each node, or of one; what could not be read says so.

    \b
    Examples:
      sparkwright facts
      sparkwright facts spark-2 --json
    """
    where = Where(cluster, ssh_config)
    opened = cluster_of(where)
    found = shared.drive_on(opened, where, lambda world: _ask(world, node), quiet=True)
    if as_json:
        nodes = {name: _json(value) for name, value in found.items()}
        shared.print_json({"cluster": opened.name, "simulated": opened.simulated, "nodes": nodes})
    else:
        click.echo("\n\n".join(_text(mark(opened.simulated) + name, value) for name, value in found.items()))
    if any(isinstance(value, NodeError) for value in found.values()):
        raise click.exceptions.Exit(3)


async def _ask(world: World, node: str) -> Gathered:
    """Facts of one node, '' for all. Raises UsageError for a node that the cluster does not have."""
    known = world.cluster.names
    if node and node not in known:
        raise UsageError(f"cluster {world.cluster.name} has no node {node!r}", f"its nodes: {', '.join(known)}")
    nodes = [one for one in world.cluster.nodes if node in ("", one.name)]
    return await gather(world.hosts, nodes, world.clock, ranks_fact)


def _json(value: NodeFacts | NodeError) -> Any:
    return asdict(value) if isinstance(value, NodeFacts) else {"error": value.message}


def _text(title: str, value: NodeFacts | NodeError) -> str:
    if isinstance(value, NodeError):
        return f"{title}\n  error       {value.message}\n  cure        {value.cure}"
    return facts_text(value, title)
