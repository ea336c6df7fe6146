"""`sparkwright status` and `logs`."""

from collections.abc import AsyncIterator, Awaitable
from typing import Any

import click

from sparkwright.app import queries
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.diagnose.incidents import incident, incident_logs
from sparkwright.app.services import Services
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo_text
from sparkwright.cli.kinds import Whole
from sparkwright.cli.text import deployment_text, model_json, model_text
from sparkwright.cli.watch import Frame, every_option, watch_screen
from sparkwright.domain.deployment import Deployment
from sparkwright.domain.live import DeploymentState
from sparkwright.domain.model_replicas import models_of
from sparkwright.domain.values import asdict, dataclass

_GOOD = (
    DeploymentState.READY,
    DeploymentState.LOADING,
    DeploymentState.STARTING,
    DeploymentState.RUNNING,
    DeploymentState.ON_DEMAND,
)


@dataclass(frozen=True, slots=True)
class StatusOptions:
    """The command line of `status`. deployment: '' for all. every: seconds between two looks of --watch."""

    deployment: str
    where: ClusterOptions
    as_json: bool
    no_probe: bool
    watch: bool
    every: float


@click.command()
@click.argument("deployment", required=False, default="", shell_complete=shared.complete.deployments)
@shared.cluster_options
@click.option("--no-probe", is_flag=True, help="Do not send a probe request to the endpoint.")
@click.option("--watch", "-w", is_flag=True, help="Show it again and again until Ctrl-C.")
@every_option
@shared.json_option
def status(**given: Any) -> None:
    """Show the deployments as the nodes report them. Health is one real token, not /health.

    A supervised deployment's state comes from its supervisor, which sends probe requests itself.

    Exit status: 0 all healthy or nothing runs; 1 a deployment is degraded, failed, restarting after a fault, left
    without a supervisor by an interrupted `up`, or was taken down; 2 there is no such DEPLOYMENT; 3 a node could not be
    reached.

    \b
    Examples:
      sparkwright status
      sparkwright status deepseek-v4-flash --json
      sparkwright status --watch
    """

    options = StatusOptions(**given)

    async def look(services: Services) -> _Seen:
        found, trouble, by = await _status(services, options.deployment, not (options.no_probe or options.watch))
        alone = await queries.left_alone(services, found) if services.program else frozenset[str]()
        return _Seen(options.deployment, found, trouble, by, alone)

    if options.watch:
        watch_screen(options.where, lambda services: _framed(look(services)), options.every, options.as_json)
        return
    seen = shared.with_services(options.where, look, quiet=True)
    for line in seen.trouble if not options.as_json else ():
        echo_text(line, err=True)
    if seen.trouble and not options.as_json:
        echo_text("hint:  sparkwright check", err=True)
    shared.answer(options.as_json, seen.document, seen.text, 3 if seen.trouble else int(not seen.well))


@dataclass(frozen=True, slots=True)
class _Seen:
    """The state at one look. deployment: the requested one, '' for all. by: the person who took it down.

    alone: deployments that an interrupted `up` has left without a supervisor.
    """

    deployment: str
    found: tuple[Deployment, ...]
    trouble: tuple[str, ...]
    by: str
    alone: frozenset[str] = frozenset()

    @property
    def shown(self) -> list[Deployment]:
        return [d for d in self.found if self.deployment in ("", d.name, d.replica_of)]

    @property
    def well(self) -> bool:
        well = all(_is_well(one) and one.name not in self.alone for one in self.shown)
        return well and (bool(self.shown) or not self.deployment)

    @property
    def text(self) -> str:
        alone = [deployment_text(one) for one in self.shown if not one.replica_of]
        models = [model_text(one) for one in models_of(self.shown)]
        return "\n".join((*alone, *models)) or _nothing(self.deployment, self.trouble, self.by)

    @property
    def document(self) -> dict[str, Any]:
        shown = [{**asdict(one), "replica_of": one.replica_of} for one in self.shown]
        document = {"deployments": shown, "unreachable": list(self.trouble)}
        document["models"] = [model_json(one) for one in models_of(self.shown)]
        return document | ({"taken_down": self.by} if self.by else {})


async def _framed(looking: Awaitable[_Seen]) -> Frame:
    seen = await looking
    return Frame("\n".join((*seen.trouble, seen.text)), seen.document)


async def _status(
    services: Services, deployment: str, probe: bool
) -> tuple[tuple[Deployment, ...], tuple[str, ...], str]:
    """The deployments, and who took the requested one down if it is absent. Raises UsageError for an unknown one."""
    found, trouble = await queries.status(services, probe)
    names = {name for one in found for name in (one.name, one.replica_of) if name}
    if not trouble:
        shared.remember(services.cluster, names)
    by = await queries.taken_down_by(services, deployment) if deployment and deployment not in names else ""
    if deployment and not (deployment in names or by or trouble):
        raise queries.unknown(services, deployment, names)
    return found, trouble, by


def _is_well(found: Deployment) -> bool:
    """A start after a fault is the middle of an outage."""
    live = found.supervised.current if found.supervised else None
    return found.state in _GOOD and not (live and live.incident and live.refusing)


def _nothing(deployment: str, trouble: tuple[str, ...], by: str) -> str:
    """The text if nothing of the request runs; a node that did not answer may have it."""
    where = " on the nodes that answered" if trouble else ""
    if by:
        return f"{deployment} was taken down by {by}"
    return f"no deployment {deployment}{where}" if deployment else f"nothing runs{where}"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The command line of `logs`. rank, incident: None for all ranks as they are. tail: lines, 0 for all."""

    deployment: str
    where: ClusterOptions
    as_json: bool
    rank: int | None
    incident: int | None
    tail: int
    raw: bool
    follow: bool


@click.command()
@click.argument(
    "deployment",
    metavar="DEPLOYMENT",
    callback=shared.deployment_of,
    shell_complete=shared.complete.deployments,
)
@click.option("--rank", type=Whole(0), default=None, help="Print only this rank. [default: all]")
@click.option(
    "--incident",
    type=Whole(min=1),
    metavar="NUMBER",
    default=None,
    help="Print the logs that were saved for this incident.",
)
@click.option("--tail", type=Whole(min=0), default=100, show_default=True, help="Number of last lines; 0 for all.")
@click.option("--raw", is_flag=True, help="Print colors and control characters as the engine logged them.")
@click.option("--follow", "-f", is_flag=True, help="Follow new lines until Ctrl-C or the rank's end.")
@shared.cluster_options
@shared.json_option
def logs(**given: Any) -> None:
    """Print the logs of a deployment's ranks, also after they ended.

    \b
    Examples:
      sparkwright logs deepseek-v4-flash --rank 1 --tail 0
      sparkwright logs deepseek-v4-flash -f
      sparkwright logs deepseek-v4-flash --incident 3 --rank 0
    """
    options = LogOptions(**given)
    if options.incident and options.follow:
        raise click.UsageError("--follow and --incident exclude each other: saved logs do not grow")

    show = click.echo if options.raw else echo_text

    async def read(services: Services) -> None:
        async for (of, rank), node, simulated, line in _lines(services, options):
            if options.as_json:
                shared.print_line({"rank": rank, "node": node, "simulated": simulated, "line": line, "deployment": of})
            else:
                show(f"{rank}| {line}" if of == options.deployment else f"{of} {rank}| {line}")

    shared.with_services(options.where, read, quiet=True)


async def _lines(services: Services, options: LogOptions) -> AsyncIterator[tuple[tuple[str, int], str, bool, str]]:
    """((deployment, rank), node, simulated, line) of the ranks as they are, or as they were saved."""
    rank_wanted, tail = options.rank, options.tail
    if options.incident is None:
        async for rank, line in queries.logs(services, options.deployment, rank_wanted, tail, options.follow):
            yield (rank.deployment, rank.rank), rank.node, rank.simulated, line
        return
    shown = await incident(services, options.incident, options.deployment)
    async for number, node, line in incident_logs(services, shown, rank_wanted, tail):
        yield (shown.incident.deployment, number), node, shown.incident.simulated, line
