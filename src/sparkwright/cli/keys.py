"""`sparkwright keys`: who may use the gateway."""

import time
from dataclasses import asdict
from typing import Any

import click

from sparkwright.app import keys as use
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned
from sparkwright.domain.units import duration
from sparkwright.gateway.keys import Key, Role


@click.group()
def keys() -> None:
    """Add, list and revoke the gateway's API keys. The head node stores hashes only.

    Keys outlive deployments. The cluster's first `up` adds a key named `default`.

    \b
    Example: sparkwright keys add laptop
    """


@keys.command(short_help="Add a key for all deployments, or for one.")
@click.argument("name")
@click.argument("deployment", required=False, default="")
@click.option("--show", is_flag=True, help="Also print the key itself.")
@click.option(
    "--role",
    type=click.Choice([str(role) for role in Role]),
    default=str(Role.CLIENT),
    show_default=True,
    help="client: the API; viewer: only sees the console; operator: both, and operates.",
)
@shared.cluster_options
@shared.json_option
def add(name: str, deployment: str, where: ClusterOptions, as_json: bool, **how: Any) -> None:
    """Add a key for all deployments of the head node, or only for DEPLOYMENT.

    The key is written to a file on this machine that only you can read; there is no other copy.

    \b
    Examples:
      sparkwright keys add laptop
      sparkwright keys add ci deepseek-v4-flash --show
      sparkwright keys add wall-screen --role viewer --show
    """
    role = Role(how["role"])
    made = shared.drive(where, lambda services: use.add(services, name, deployment, role), quiet=as_json)
    key = {"key": made.secret.reveal()} if how["show"] else {}
    document = {**_json(made.key), "file": made.path, **key}
    client = f'export OPENAI_API_KEY="$(cat {made.path})"' if role is not Role.VIEWER else f"cat {made.path}"
    text = f"key {name} ({role}) for {made.key.opens}: {made.path}\n{key.get('key') or client}"
    shared.answer(as_json, document, text)


@keys.command("list")
@shared.cluster_options
@shared.json_option
def list_keys(where: ClusterOptions, as_json: bool) -> None:
    """List the keys: name, role, deployments, who added them and when.

    \b
    Example: sparkwright keys list
    """
    found = shared.drive(where, use.listed, quiet=True).keys
    text = aligned([_row(key) for key in found]) if found else "no keys; `sparkwright keys add NAME` adds one"
    shared.answer(as_json, {"keys": [_json(key) for key in found]}, text)


@keys.command(short_help="Revoke a key: requests with it get 401.")
@click.argument("name")
@click.argument("deployment", required=False, default="")
@shared.cluster_options
@shared.json_option
def revoke(name: str, deployment: str, where: ClusterOptions, as_json: bool) -> None:
    """Revoke all keys of a name, or only the one for DEPLOYMENT.

    New requests with it get 401; requests in progress are completed.

    \b
    Examples:
      sparkwright keys revoke laptop
      sparkwright keys revoke ci deepseek-v4-flash
    """
    gone = shared.drive(where, lambda services: use.revoke(services, name, deployment), quiet=as_json)
    text = f"revoked: {', '.join(f'{key.name} for {key.opens}' for key in gone)}"
    shared.answer(as_json, {"revoked": [_json(key) for key in gone]}, text)


def _json(key: Key) -> dict[str, object]:
    return {name: value for name, value in asdict(key).items() if name != "sha256"}


def _row(key: Key) -> tuple[str, ...]:
    age = f"{duration(max(time.time() - key.created, 0.0))} ago" if key.created else ""
    return key.name, key.role, key.opens, f"by {key.by}" if key.by else "", age
