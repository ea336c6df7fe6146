"""`sparkwright keys`: who may use the gateway."""

import time
from collections.abc import Mapping
from functools import wraps
from typing import Any

import click

from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.services import Services
from sparkwright.app.setup import keys as use
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned
from sparkwright.cli.kinds import Whole
from sparkwright.domain.units import counted, duration
from sparkwright.domain.values import asdict, dataclass
from sparkwright.gateway.keys import Key, Role
from sparkwright.gateway.usage import Used

_LIMITS = ("per_minute", "at_once", "tokens_a_day", "reasoning_tokens", "end_loops")


def limit_options(function: Any) -> Any:
    """The limits of a key; the function gets them as `limits`, None for one that is not named."""

    @wraps(function)
    def packed(**given: Any) -> Any:
        return function(limits={name: given.pop(name) for name in _LIMITS}, **given)

    made: Any = packed
    at_least = Whole(min=0)
    told = (
        ("--per-minute", "Requests a minute; 0 for no limit."),
        ("--at-once", "Requests at the same time; 0 for no limit."),
        ("--tokens-a-day", "Tokens of prompts and answers a day (UTC); 0 for no limit."),
        ("--reasoning-tokens", "Reasoning tokens of a streamed answer; 0 for no limit."),
    )
    for name, text in reversed(told):
        made = click.option(name, type=at_least, default=None, metavar="N", help=text)(made)
    text = "End streams that repeat themselves endlessly."
    return click.option("--end-loops/--no-end-loops", default=None, help=text)(made)


@click.group("keys")
def keys_group() -> None:
    """Add, list and revoke the gateway's API keys. The head node stores hashes only.

    Keys outlive deployments. The cluster's first `up` adds a key named `default`.

    \b
    Example: sparkwright keys add laptop
    """


@dataclass(frozen=True, slots=True)
class AddKeyOptions:
    """The command line of `keys add`. deployment: '' for all."""

    name: str
    deployment: str
    show: bool
    role: str
    limits: Mapping[str, int | None]
    where: ClusterOptions
    as_json: bool


@keys_group.command("add", short_help="Add a key for all deployments, or for one.")
@click.argument("name")
@click.argument("deployment", required=False, default="", shell_complete=shared.complete.deployments)
@click.option("--show", is_flag=True, help="Also print the key itself.")
@click.option(
    "--role",
    type=click.Choice([str(role) for role in Role]),
    default=str(Role.CLIENT),
    show_default=True,
    help="client: the API; viewer: only sees the console; operator: both, and operates.",
)
@limit_options
@shared.cluster_options
@shared.json_option
def add_key(**given: Any) -> None:
    """Add a key for all deployments of the head node, or only for DEPLOYMENT.

    The key is written to a file on this machine that only you can read; there is no other copy.

    \b
    Examples:
      sparkwright keys add laptop
      sparkwright keys add ci deepseek-v4-flash --show
      sparkwright keys add wall-screen --role viewer --show
      sparkwright keys add guests --per-minute 30 --tokens-a-day 2000000
    """
    options = AddKeyOptions(**given)
    name, role = options.name, Role(options.role)

    async def make(services: Services) -> use.Made:
        return await use.create_key(services, name, options.deployment, role, **options.limits)

    made = shared.with_services(options.where, make, quiet=options.as_json)
    key = {"key": made.secret.reveal()} if options.show else {}
    document = {**_json(made.key), "file": made.path, **key}
    client = f'export OPENAI_API_KEY="$(cat {made.path})"' if role is not Role.VIEWER else f"cat {made.path}"
    text = f"key {name} ({role}) for {made.key.opens}: {made.path}\n{key.get('key') or client}"
    shared.answer(options.as_json, document, text)


@keys_group.command("limit", short_help="Limit what a key may use.")
@click.argument("name")
@limit_options
@shared.cluster_options
@shared.json_option
def limit_key(name: str, limits: Mapping[str, int | None], where: ClusterOptions, as_json: bool) -> None:
    """Limit what a key may use: beyond it requests get 429 with Retry-After.

    A limit that is not named stays as it is. Requests in progress are completed.

    \b
    Examples:
      sparkwright keys limit ci --per-minute 60 --at-once 8
      sparkwright keys limit ci --tokens-a-day 0
      sparkwright keys limit agents --end-loops --reasoning-tokens 32000
    """
    if all(value is None for value in limits.values()):
        raise click.UsageError("name a limit: --per-minute, --at-once, --tokens-a-day, --reasoning-tokens, --end-loops")

    async def change(services: Services) -> tuple[Key, ...]:
        await use.limit_key(services, name, **limits)
        return tuple(key for key in (await use.listed(services)).keys if key.name == name)

    found = shared.with_services(where, change, quiet=as_json)
    text = "\n".join(f"key {key.name} for {key.opens}: {key.limits or 'no limits'}" for key in found)
    shared.answer(as_json, {"keys": [_json(key) for key in found]}, text)


@keys_group.command("list", short_help="List the keys, their limits and what they used.")
@click.option("--days", type=Whole(1, 3660), default=7, help="Days of usage, by UTC. [default: 7]")
@shared.cluster_options
@shared.json_option
def list_keys(where: ClusterOptions, as_json: bool, days: int) -> None:
    """List the keys: name, role, deployments, who added them and when, limits, and what they used by day and model.

    Tokens are those that the engine's own usage reports. Cut requests have none, for their client left before the end:
    of their streams the tokens that passed are shown as `at least`.

    \b
    Examples:
      sparkwright keys list
      sparkwright keys list --days 31 --json
    """

    async def read(services: Services) -> tuple[tuple[Key, ...], tuple[Used, ...]]:
        return (await use.listed(services)).keys, await use.read_usage(services, days)

    found, usage = shared.with_services(where, read, quiet=True)
    text = aligned([_row(key) for key in found]) if found else "no keys; `sparkwright keys add NAME` adds one"
    if usage:
        rows = [("day (UTC)", "key", "model", "requests", "prompt", "completion", ""), *map(_usage_row, usage)]
        text += f"\n\nused in the last {counted(days, 'day')}\n{aligned(rows)}"
    shared.answer(as_json, {"keys": [_json(key) for key in found], "usage": [asdict(one) for one in usage]}, text)


def _usage_row(one: Used) -> tuple[str, ...]:
    cut = f"cut (at least {one.at_least:,} tokens)" if one.at_least else "cut"
    left = (cut, one.cut), ("failed", one.failed), ("without a count", one.uncounted), ("open or lost", one.open)
    guarded = ("ended in a loop", one.looped), ("over the reasoning limit", one.reasoned)
    notes = ", ".join(f"{number:,} {what}" for what, number in (*left, *guarded, ("refused", one.refused)) if number)
    return one.day, one.key, one.model, f"{one.requests:,}", f"{one.prompt:,}", f"{one.completion:,}", notes


@keys_group.command(short_help="Revoke a key: requests with it get 401.")
@click.argument("name")
@click.argument("deployment", required=False, default="", shell_complete=shared.complete.deployments)
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
    gone = shared.with_services(where, lambda services: use.revoke(services, name, deployment), quiet=as_json)
    text = f"revoked: {', '.join(f'{key.name} for {key.opens}' for key in gone)}"
    shared.answer(as_json, {"revoked": [_json(key) for key in gone]}, text)


def _json(key: Key) -> dict[str, object]:
    return {name: value for name, value in asdict(key).items() if name != "sha256"}


def _row(key: Key) -> tuple[str, ...]:
    age = f"{duration(max(time.time() - key.created, 0.0))} ago" if key.created else ""
    return key.name, key.role, key.opens, f"by {key.by}" if key.by else "", age, key.limits
