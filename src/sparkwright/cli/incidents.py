"""`sparkwright incidents`."""

from dataclasses import asdict
from typing import Any

import click

from sparkwright.app import incidents as use
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo
from sparkwright.cli.incidents_text import list_text, shown_text
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.incident import Incident
from sparkwright.wiring import ClusterOptions

SCHEMA = 1


@click.group()
def incidents() -> None:
    """List and show incidents: what happened, what the supervisor did, and the saved evidence.

    Read from the head node, also after its supervisor is gone.

    \b
    Examples:
      sparkwright incidents list
      sparkwright incidents show 3
    """


def _deployment(_: click.Context, __: click.Parameter, value: str) -> str:
    name = value.partition("@")[0]
    if name and not is_deployment_name(name):
        raise click.BadParameter(f"{value!r} is no deployment's name")
    return name


@incidents.command("list")
@click.argument("deployment", required=False, default="", callback=_deployment)
@shared.cluster_options
@shared.json_option
def list_(deployment: str, cluster: str, ssh_config: str, as_json: bool) -> None:
    """List incidents, and restarts of its own programs, newest first.

    Exit status: 0 also when there is none, 3 a node could not be reached.

    \b
    Examples:
      sparkwright incidents list
      sparkwright incidents list deepseek-v4-flash --json
    """
    found = shared.drive(
        ClusterOptions(cluster, ssh_config), lambda services: use.remembered(services, deployment), quiet=True
    )
    if as_json:
        rows = [{**_json(incident), "on": node} for node, incident in found.incidents]
        restarts = [{"deployment": name, **asdict(event), "on": node} for node, name, event in found.restarts]
        told = {"schema": SCHEMA, "incidents": rows, "restarts": restarts, "trouble": list(found.trouble)}
        shared.print_json(told)
    else:
        for line in found.trouble:
            echo(line, err=True)
        echo(list_text(found) or "no incidents")
    if found.lost:
        raise click.exceptions.Exit(3)


@incidents.command("show", short_help="Show one incident with its evidence, cause and fix.")
@click.argument("number", type=click.IntRange(min=1))
@shared.cluster_options
@shared.json_option
def show(number: int, cluster: str, ssh_config: str, as_json: bool) -> None:
    """Show one incident: what it was, evidence, cause and fix, the actions with their times, and its end.

    \b
    Examples:
      sparkwright incidents show 3
      sparkwright incidents show 3 --json
    """
    shown = shared.drive(
        ClusterOptions(cluster, ssh_config), lambda services: use.incident(services, number), quiet=True
    )
    if not as_json:
        echo(shown_text(shown))
        return
    files = [{"name": name, "bytes": size} for name, size in shown.files]
    told = {**_json(shown.incident), "on": shown.node, "files": files, "diagnosis": shown.diagnosis}
    shared.print_json({"schema": SCHEMA, "incident": told})


def _json(incident: Incident) -> dict[str, Any]:
    return {**asdict(incident), "open": incident.is_open, "away": incident.away}
