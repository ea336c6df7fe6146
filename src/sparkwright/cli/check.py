"""`sparkwright check` and `facts`."""

from dataclasses import asdict
from typing import Any

import click

from sparkwright.app.gather import gather
from sparkwright.app.survey import ranks_fact
from sparkwright.app.world import World
from sparkwright.cli import options as shared
from sparkwright.cli.text import findings_text
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.wiring import Where


@click.command()
@shared.where_options
@shared.json_option
def check(cluster: str, ssh_config: str, as_json: bool) -> None:
    """Look at all nodes in parallel: findings with evidence and remedy, worst first.

    Exit 0: nothing to mend; 1: findings; 3: a node could not be reached.
    """
    from sparkwright.app.check import check_nodes

    findings, lost, asked = shared.drive(Where(cluster, ssh_config), check_nodes, quiet=True)
    if as_json:
        shared.print_json({"findings": [asdict(f) for f in findings], "unreachable": {e.node: e.message for e in lost}})
    else:
        _say(findings, lost, asked)
    if lost:
        raise click.exceptions.Exit(3)
    if any(f.severity is not Severity.INFO for f in findings):
        raise click.exceptions.Exit(1)


def _say(findings: tuple[Finding, ...], lost: tuple[NodeError, ...], asked: int) -> None:
    if findings:
        click.echo(findings_text(findings))
    for error in lost:
        click.echo(f"error: {error.message}\ncure:  {error.cure}", err=True)
    click.echo(f"{asked - len(lost)} of {asked} nodes answered, {len(findings)} finding(s)")


@click.command()
@click.argument("node", required=False, default="")
@shared.where_options
@shared.json_option
def facts(node: str, cluster: str, ssh_config: str, as_json: bool) -> None:
    """What is known of each node; what could not be read says so."""

    async def ask(world: World) -> dict[str, NodeFacts | NodeError]:
        return await gather(world.hosts, world.cluster.nodes, world.clock, ranks_fact)

    found = shared.drive(Where(cluster, ssh_config), ask, quiet=True)
    shown = {name: value for name, value in found.items() if node in ("", name)}
    if as_json:
        shared.print_json({name: _json(value) for name, value in shown.items()})
    else:
        click.echo("\n".join(_text(name, value) for name, value in shown.items()))
    if any(isinstance(value, NodeError) for value in shown.values()):
        raise click.exceptions.Exit(3)


def _json(value: NodeFacts | NodeError) -> Any:
    return asdict(value) if isinstance(value, NodeFacts) else {"error": value.message}


def _text(name: str, value: NodeFacts | NodeError) -> str:
    if isinstance(value, NodeError):
        return f"{name}\n  error: {value.message}"
    rows = [f"  {key:<14} {entry}" for key, entry in asdict(value).items() if key not in ("node", "at")]
    return "\n".join([name, *rows])
