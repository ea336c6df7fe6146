"""Options that several verbs share, and running a use case with them."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import complete as complete
from sparkwright.cli.columns import echo_text
from sparkwright.cli.kinds import Duration, Whole
from sparkwright.domain.codec import encodable
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.domain.replica import MOST_REPLICAS
from sparkwright.domain.units import DRAIN_SECONDS

if TYPE_CHECKING:  # what a verb needs that runs a use case is loaded there: the others start quickly
    from sparkwright.app.services import Services
    from sparkwright.domain.cluster import Cluster

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_NO_REASON = "\0"
_SIMULATED = "sparkwright.simulated"
SCHEMA = 1  # of every JSON document; its keys are only ever added


def cluster_options(function: F) -> F:
    """--cluster and --ssh-config; the function gets them as `where`."""

    @wraps(function)
    def with_both(*args: Any, cluster: str, ssh_config: str, **given: Any) -> Any:
        return function(*args, where=ClusterOptions(cluster, ssh_config), **given)

    places = "$SPARKWRIGHT_CLUSTER, ./cluster.yaml, ~/.config/sparkwright/cluster.yaml"
    told, envvar = "ssh configuration file (ssh -F).", "SPARKWRIGHT_SSH_CONFIG"
    config = click.option("--ssh-config", default="", envvar=envvar, metavar="FILE", help=told)
    file = click.option("--cluster", default="", metavar="FILE", help=f"Cluster file. [default: {places}]")
    return file(config(with_both))  # type: ignore[return-value]


def deployment_of(_: click.Context, __: click.Parameter, value: str) -> str:
    """NAME[@PROFILE] -> NAME. It becomes a folder's and a container's name, and `down` removes that folder: no path

    may pass, nor nothing. Raises click.BadParameter.
    """
    name = value.partition("@")[0]
    if not is_deployment_name(name):
        raise click.BadParameter(f"found {value!r}, expected lower-case letters, digits, `.`, `_` and `-`, at most 63")
    return name


def deployment_if_any(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    return deployment_of(ctx, parameter, value) if value else ""


def deployment_if_given(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """The deployment's name; '' if the argument is missing. An empty one is an error: a shell variable that was not
    set."""
    return "" if value is None else deployment_of(ctx, parameter, value)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
profile_option = click.option(
    "--profile",
    default="",
    metavar="NAME",
    shell_complete=complete.profiles,
    help="Profile of the recipe; the same as RECIPE@PROFILE.",
)
name_option = click.option(
    "--name",
    callback=deployment_if_any,
    default="",
    metavar="NAME",
    help="Name of the deployment. [default: the recipe's]",
)


def replicas_option(function: F) -> F:
    """--replicas N; None if it is not given."""
    told = "Copies of the model, each on its own nodes. [default: as they are, or serving.replicas]"
    return click.option("--replicas", type=Whole(1, MOST_REPLICAS), default=None, help=told)(function)


def force_option(function: F) -> F:
    """--force REASON, or --force --reason REASON; the function gets the reason as `force`."""

    @wraps(function)
    def with_reason(*args: Any, force: str, reason: str, **given: Any) -> Any:
        if force == _NO_REASON and not reason:
            raise click.UsageError("--force needs a reason, which is recorded: --force REASON")
        if reason and not force:
            raise click.UsageError("--reason goes with --force")
        return function(*args, force=reason if force == _NO_REASON else force, **given)

    told = "Override the findings that can be overridden; REASON is recorded."
    reason_option = click.option("--reason", default="", hidden=True)
    forced = click.option("--force", default="", is_flag=False, flag_value=_NO_REASON, metavar="REASON", help=told)
    return forced(reason_option(with_reason))  # type: ignore[return-value]


drain_option = click.option(
    "--drain",
    type=Duration(0, 1.0, 86400, zero=True),
    default=DRAIN_SECONDS,
    help=f"Give requests under way this time to end, such as 5m. [default: {DRAIN_SECONDS:.0f}s]",
)
lease_option = click.option(
    "--break-lease", "seize", is_flag=True, help="Take over the nodes' leases from another user or process."
)


def open_cluster(where: ClusterOptions) -> Cluster:
    """The cluster that the options name. Raises RecipeError, also for an `ignore:` of a code that no finding has."""

    from sparkwright.wiring import cluster_of  # start-up

    def check(cluster: Cluster) -> None:
        try:
            finding_codes(cluster.ignore)
        except UsageError as error:
            raise RecipeError(f"{cluster.source}: ignore: {error.message}", error.hint) from None

    cluster = cluster_of(where, check)
    for note in cluster.notes:
        echo_text(f"warning: {note}", err=True)
    return cluster


def finding_codes(given: Sequence[str]) -> tuple[str, ...]:
    """Each once. given: texts with commas. Raises UsageError for a code that no finding has."""
    codes = tuple(dict.fromkeys(code.strip().upper() for text in given for code in text.split(",")))
    if codes:
        from sparkwright.cli.explain_pages import FORMER, code_pages

        known, codes = code_pages(), tuple(dict.fromkeys(FORMER.get(code, code) for code in codes))
        for code in codes:
            if code not in known:
                near = get_close_matches(code, known, n=1)
                hint = f"did you mean {near[0]}?" if near else "`sparkwright explain` lists all"
                raise UsageError(f"no finding has the code {code!r}", hint)
    return codes


def remember(cluster: Cluster, names: Iterable[str]) -> None:
    """Keep the names of a cluster's deployments, for shell completion."""
    from sparkwright.wiring import shell_names  # start-up

    shell_names().keep_deployments(cluster.name, names)


def remembered(cluster: Cluster) -> Sequence[str]:
    from sparkwright.wiring import shell_names  # start-up

    return shell_names().deployments(cluster.name)


def with_services(where: ClusterOptions, use: Callable[[Services], Awaitable[T]], quiet: bool = False) -> T:
    """Runs a use case with the services of the cluster that the options name."""
    return drive_on(open_cluster(where), where, use, quiet)


def drive_on(
    cluster: Cluster, where: ClusterOptions, use: Callable[[Services], Awaitable[T]], quiet: bool = False
) -> T:
    import asyncio  # start-up

    from sparkwright.cli.console import console_sink
    from sparkwright.wiring import services

    if (context := click.get_current_context(silent=True)) and cluster.simulated:
        context.find_root().meta[_SIMULATED] = True

    async def go() -> T:
        end_like_ctrl_c()
        with console_sink(quiet) as sink:
            async with services(cluster, where, sink) as made:
                return await use(made)

    return asyncio.run(go())


def writable(path: Path | str | None) -> None:
    """Raises UsageError before the work whose result the file is to have."""
    folder = Path(path).expanduser().parent if path else Path()
    if not os.access(folder, os.W_OK | os.X_OK):
        why = "is not writable" if folder.is_dir() else "is no folder"
        raise UsageError(f"{path} cannot be written: {folder} {why}", "name another file")


def end_like_ctrl_c() -> None:
    """SIGTERM and SIGHUP end a call through cancellation, as Ctrl-C does: what was begun is undone."""
    import asyncio  # start-up
    import signal

    if task := asyncio.current_task():
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)


def answer(as_json: bool, document: Any, text: str, code: int = 0) -> None:
    """Prints a command's result as JSON or as text, and ends with its exit code."""
    if as_json:
        print_json(document)
    else:
        echo_text(text)
    if code:
        raise click.exceptions.Exit(code)


def print_json(data: Mapping[str, Any]) -> None:
    click.echo(encodable(json.dumps(enveloped(data), indent=2, ensure_ascii=False, default=_plain)))


def enveloped(data: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its name, the version of its keys, and `simulated` where all of it is.

    document: the command that printed it, as `runs list`. docs/reference/json.md lists them all.
    """
    context = click.get_current_context(silent=True)
    name = " ".join(context.command_path.split()[1:]) if context else ""
    made_up = {"simulated": True} if _all_simulated(context, data) else {}
    return {"schema": SCHEMA, "document": name, **made_up, **data}


def _all_simulated(context: click.Context | None, data: Mapping[str, Any]) -> bool:
    """True if the cluster is simulated, or every row that says so is. A mixed list has the mark in its rows."""
    if context and context.find_root().meta.get(_SIMULATED):
        return True
    rows = [row for value in data.values() for row in (value if isinstance(value, list | tuple) else (value,))]
    told = [row["simulated"] for row in rows if isinstance(row, dict) and "simulated" in row]
    return bool(told) and all(told)


def _plain(value: Any) -> Any:
    if isinstance(value, Secret):
        return "***"
    return dict(value) if hasattr(value, "keys") else asdict(value) if hasattr(value, "__slots__") else str(value)


def print_line(data: Mapping[str, Any]) -> None:
    """One JSON object on a line of its own, for output that grows."""
    click.echo(encodable(json.dumps(enveloped(data), ensure_ascii=False, default=_plain)))
