"""The only place that builds adapters, reads the environment, and hands both to the use cases."""

import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sparkwright.adapters import log_files
from sparkwright.adapters.artifacts import FolderArtifacts, newest_run
from sparkwright.adapters.audit import whoami
from sparkwright.adapters.calibrations import FolderCalibrations
from sparkwright.adapters.clock import SystemClock
from sparkwright.adapters.files import Places, open_cluster
from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.keyring import FolderKeyring
from sparkwright.adapters.noticed import read_events, write_events
from sparkwright.adapters.ssh import SshSettings
from sparkwright.app.world import World
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.ports import Clock, Endpoint, ModelHub, Program, Sink

CLUSTER_VARIABLE = "SPARKWRIGHT_CLUSTER"
# All waits of a supervisor that `up` leaves, multiplied: drills cannot wait for half an hour.
SCALE_VARIABLE = "SPARKWRIGHT_SUPERVISOR_SCALE"
_STATE = Path(".local/state/sparkwright")


@dataclass(frozen=True, slots=True)
class Where:
    """What the command line says about where to work; '' where it says nothing."""

    cluster: str = ""
    ssh_config: str = ""


def places() -> Places:
    return Places(Path.cwd(), Path.home())


def cluster_of(where: Where, check: Callable[[Cluster], object] = bool) -> Cluster:
    """check: as for open_cluster. Raises RecipeError."""
    return open_cluster(where.cluster, os.environ.get(CLUSTER_VARIABLE, ""), places(), check)


@asynccontextmanager
async def world(cluster: Cluster, where: Where, sink: Sink) -> AsyncIterator[World]:
    """The real world around a cluster. ssh connections end by themselves after a while: the next call is quick."""
    clock = SystemClock()
    hosts = ClusterHosts(cluster, _ssh_settings(where))
    try:
        yield World(
            cluster=cluster,
            hosts=hosts,
            endpoint=cast(Endpoint, _Later(lambda: _endpoint(clock))),
            clock=clock,
            artifacts=FolderArtifacts(Path.home() / _STATE / "evidence", clock),
            calibrations=FolderCalibrations(Path.home() / _STATE / "calibrations"),
            sink=sink,
            who=whoami(),
            nonce=secrets.token_hex(8),
            secrets=masked(os.environ),
            python=sys.executable,
            launch_key=Secret(secrets.token_hex(32)),
            hub=_hub(clock),
            keyring=FolderKeyring(Path.home() / _STATE / "keys"),
            program=cast(Program, _Later(_bundle)),
            time_scale=_scale(),
        )
    finally:
        await hosts.close(persist=True)


class _Later:
    """An adapter that is made when it is first used: what it imports takes longer than all that `status` does."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._made = make, None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)


def _endpoint(clock: Clock) -> Endpoint:
    from sparkwright.adapters.openai_http import OpenAiEndpoint

    return OpenAiEndpoint(clock)


def _bundle() -> Program:
    from sparkwright.adapters.bundle import Bundle

    return Bundle()


def _hub(clock: Clock) -> ModelHub | None:
    """With the variables that the hub's own client reads."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        return None
    token = os.environ.get("HF_TOKEN", "")

    def make() -> ModelHub:
        from sparkwright.adapters.hub import HUB, HttpHub

        at = os.environ.get("HF_ENDPOINT", "") or HUB
        return HttpHub(Path.home() / _STATE / "hub", clock, at, Secret(token) if token else None)

    return cast(ModelHub, _Later(make))


def _scale() -> float:
    """Raises UsageError."""
    text = os.environ.get(SCALE_VARIABLE, "") or "1"
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0.0 < scale <= 100.0:
        raise UsageError(f"{SCALE_VARIABLE}: observed {text!r}; a number above 0 and at most 100 is wanted")
    return scale


def _ssh_settings(where: Where) -> SshSettings:
    config = Path(where.ssh_config).expanduser() if where.ssh_config else None
    return SshSettings(config=config, environ=dict(os.environ))


def masked(environ: Mapping[str, str]) -> Mapping[str, Secret]:
    """The environment as secrets: recipes may name any variable, and none of them is to be shown."""
    return {name: Secret(value) for name, value in environ.items() if value}


def earlier_events(cluster: str) -> dict[str, float]:
    """Events on the nodes that checks from this machine have shown, with when."""
    return read_events(_events(cluster))


def keep_events(cluster: str, events: Mapping[str, float]) -> None:
    write_events(_events(cluster), events)


def _events(cluster: str) -> Path:
    return Path.home() / _STATE / "checked" / f"{cluster}.json"


def read_log(path: Path | None) -> Iterator[bytes]:
    """The bytes of a log, unpacked; None: standard input. Raises UsageError."""
    return log_files.chunks(path)


def logs_in(path: Path) -> tuple[Path, ...]:
    """The file itself, or the logs in a folder. Raises UsageError."""
    return log_files.log_files(path)


def growing(path: Path) -> log_files.Growing:
    return log_files.Growing(path)


def arriving() -> Iterator[bytes]:
    """Standard input as it comes."""
    return log_files.arriving()


def last_evidence(deployment: str) -> Path | None:
    """The folder with the newest evidence about a deployment on this machine."""
    return newest_run(Path.home() / _STATE / "evidence", deployment)
