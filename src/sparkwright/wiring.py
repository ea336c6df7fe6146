"""The only place that builds adapters, reads the environment, and hands both to the use cases.

Imports inside functions keep the start of the verbs that do without them quick.
"""

import hashlib
import os
import secrets
import select
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sparkwright.adapters import artifacts
from sparkwright.adapters.files import Places, open_cluster
from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.machine import MachineCallers, SystemClock, whoami
from sparkwright.adapters.plan_history import FilePlanHistory
from sparkwright.adapters.ssh import SshSettings
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.services import Services
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.domain.values import dataclass, replace
from sparkwright.ports import Clock, Endpoint, Program, Sink, Tokenizer

if TYPE_CHECKING:
    from sparkwright.adapters.client_files import ClientFiles
    from sparkwright.adapters.first_login import FirstLogin
    from sparkwright.adapters.flag_files import FolderFlags
    from sparkwright.adapters.shell_names import ShellNames
    from sparkwright.adapters.sqlite.runs import SqliteRuns
    from sparkwright.adapters.tunnels import Tunnels
    from sparkwright.app.bench.target import Bench, BenchTarget
    from sparkwright.domain.probed import Probed

CLUSTER_VARIABLE = "SPARKWRIGHT_CLUSTER"
# All waits of a supervisor that `up` leaves, multiplied: drills cannot wait for half an hour.
SCALE_VARIABLE = "SPARKWRIGHT_SUPERVISOR_SCALE"
_XDG = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
KEY_VARIABLES = ("SPARKWRIGHT_API_KEY", "OPENAI_API_KEY")
_KEY_BYTES = 8192


def places() -> Places:
    return Places(Path.cwd(), Path.home(), {name: os.environ.get(name, "") for name in _XDG})


def shell_names() -> "ShellNames":
    """Names for shell completion. Codes are read again after a change of the files that hold them."""
    from sparkwright import __version__
    from sparkwright.adapters.shell_names import ShellNames

    ours = Path(__file__).parent
    texts = (path for name in ("causes", "checks") for path in (ours / name).glob("*.toml"))
    version = f"{__version__}-{max(path.stat().st_mtime_ns for path in texts)}"
    return ShellNames(places().cache / "completion", version)


def cluster_of(where: ClusterOptions, check: Callable[[Cluster], object] = bool) -> Cluster:
    """check: as for open_cluster. Raises RecipeError."""
    return open_cluster(where.cluster, os.environ.get(CLUSTER_VARIABLE, ""), places(), check)


def plan_history() -> Path:
    """The file with predictions and what was measured."""
    return places().state / "plan-history.jsonl"


def has_cluster(where: ClusterOptions) -> bool:
    """True if an option, the environment or a file names a cluster, even an invalid one."""
    named = where.cluster or os.environ.get(CLUSTER_VARIABLE, "")
    return bool(named) or any(path.is_file() for path in places().clusters)


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The way of one program to a cluster. who: for leases and the nodes' audit logs.

    evidence, calibrations: folders on this machine. persist: ssh connections stay open for a while, so that the next
    call is quick.
    """

    cluster: Cluster
    ssh: SshSettings
    who: str
    evidence: Path
    calibrations: Path
    persist: bool = False


@asynccontextmanager
async def open_services(access: ClusterAccess, sink: Sink) -> AsyncIterator[Services]:
    """The real services of a cluster, with all that every program needs; each adds its own with `replace`."""
    clock = SystemClock()
    hosts = ClusterHosts(access.cluster, access.ssh, access.who)
    try:
        yield Services(
            cluster=access.cluster,
            hosts=hosts,
            endpoint=cast(Endpoint, _Later("openai_http", "OpenAiEndpoint", clock)),
            clock=clock,
            save_evidence=artifacts.FolderArtifacts(access.evidence, clock).save,
            calibrations=artifacts.FolderCalibrations(access.calibrations),
            sink=sink,
            who=access.who,
            nonce=secrets.token_hex(8),
            callers=MachineCallers(),
        )
    finally:
        await hosts.close(access.persist)


@asynccontextmanager
async def services(cluster: Cluster, where: ClusterOptions, sink: Sink) -> AsyncIterator[Services]:
    """The services of a command that a user runs on any machine."""
    evidence, calibrations = places().state / "evidence", places().state / "calibrations"
    access = ClusterAccess(cluster, _ssh_settings(where), whoami(), evidence, calibrations, persist=True)
    async with open_services(access, sink) as made:
        yield replace(
            made,
            history=FilePlanHistory(plan_history()),
            secrets=masked(os.environ),
            python=sys.executable,
            launch_key=new_launch_key(),
            **_hub(made.clock),
            keyring=artifacts.FolderKeyring(keys_folder()),
            program=cast(Program, _Later("bundle", "Bundle")),
            time_scale=_scale(),
            flags=flag_store(),
        )


def new_launch_key() -> Secret:
    return Secret(secrets.token_hex(32))


def head_access(home: Path, cluster: Cluster, who: str, ssh: SshSettings) -> ClusterAccess:
    """The access of a program on the head node. home: the folder of a deployment. ssh: without the settings file that
    lies there, which is taken."""
    config = home / "ssh/config"
    found = replace(ssh, config=config if config.exists() else None)
    return ClusterAccess(cluster, found, who, home / "evidence", home.parents[1] / "calibrations")


def socket_folder(home: Path) -> Path:
    """The folder of the ssh connections; HOME itself may be too long for a socket's name."""
    return Path(f"/tmp/sparkwright-{os.getuid()}-{hashlib.sha256(str(home).encode()).hexdigest()[:12]}")


class _Later:
    """An adapter that is made when it is first used: what it imports takes longer than all that `status` does."""

    def __init__(self, module: str, kind: str, *given: Any) -> None:
        self._module, self._kind, self._given, self._made = module, kind, given, None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = getattr(import_module(f"sparkwright.adapters.{self._module}"), self._kind)(*self._given)
        return getattr(self._made, name)


def _hub(clock: Clock) -> dict[str, Any]:
    """`hub` and `headers` of Services, with the variables that the hub's own client reads; none when offline."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        return {}
    token, at = os.environ.get("HF_TOKEN", ""), os.environ.get("HF_ENDPOINT", "")
    hub = _Later("hub", "HttpHub", places().state / "hub", clock, at, Secret(token) if token else None)
    return {
        "hub": lambda model, revision: hub.look(model, revision),
        "headers": lambda model, revision: hub.headers(model, revision),
    }


def _ssh_settings(where: ClusterOptions) -> SshSettings:
    """The settings of ssh; the file that `init` has written includes the user's own configuration."""
    config = Path(where.ssh_config).expanduser() if where.ssh_config else None
    ours = places().config / "ssh/config"
    return SshSettings(config=config or (ours if ours.is_file() else None), environ=dict(os.environ))


def first_login(where: ClusterOptions) -> "FirstLogin":
    """The first login to machines that this one has never logged in to."""
    from sparkwright.adapters.first_login import FirstLogin

    base = Path(where.ssh_config).expanduser() if where.ssh_config else None
    return FirstLogin(Path.home(), base, places().config / "ssh")


def announced() -> tuple[str, ...]:
    """Host names that announce ssh on this network."""
    from sparkwright.adapters.mdns import find_ssh_hosts

    return find_ssh_hosts()


def flag_store() -> "FolderFlags":
    """Options of engines that this user had read."""
    from sparkwright.adapters.flag_files import FolderFlags

    return FolderFlags(places().state / "engines")


def _scale() -> float:
    """Raises UsageError."""
    text = os.environ.get(SCALE_VARIABLE, "") or "1"
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0.0 < scale <= 100.0:
        raise UsageError(f"{SCALE_VARIABLE}: expected a number above 0 and at most 100, found {text!r}")
    return scale


def masked(environ: Mapping[str, str]) -> Mapping[str, Secret]:
    """The environment as secrets: recipes may name any variable, and none of them is to be shown."""
    return {name: Secret(value) for name, value in environ.items() if value}


def earlier_events(cluster: str) -> dict[str, float]:
    """Events on the nodes that checks from this machine have shown, with when."""
    return artifacts.read_events(_events(cluster))


def keep_events(cluster: str, events: Mapping[str, float]) -> None:
    artifacts.write_events(_events(cluster), events)


def _events(cluster: str) -> Path:
    return places().state / "checked" / f"{cluster}.json"


def last_evidence(deployment: str) -> Path | None:
    """The folder with the newest evidence about a deployment on this machine."""
    return artifacts.newest_run(places().state / "evidence", deployment)


def keys_folder() -> Path:
    """The keys of gateways that were made on this machine, a folder for each cluster."""
    return places().state / "keys"


def tune_folder() -> Path:
    """The journals of searches of settings on this machine."""
    return places().state / "tune"


def run_store() -> "SqliteRuns":
    """The benchmark runs on this machine. To be closed with `aclose`."""
    from sparkwright.adapters.sqlite.runs import RUNS, SqliteRuns

    return SqliteRuns(places().state / RUNS)


def make_asker(authority: str = "") -> Endpoint:
    """A server that is to be measured may be far away."""
    from sparkwright.adapters.openai_http import HttpTimeouts, OpenAiEndpoint

    return OpenAiEndpoint(SystemClock(), HttpTimeouts(connect=10.0), authority)


@asynccontextmanager
async def bench(tokenizer: Path | None) -> AsyncIterator["Bench"]:
    """tokenizer: a tokenizer.json, or a folder with one, in place of the server's own. Raises UsageError."""
    if not hasattr(select, "epoll"):
        raise UsageError(f"bench measures on Linux only (epoll); this is {sys.platform}", "run it on the head node")
    from sparkwright.adapters import machine as here
    from sparkwright.adapters import tokenizers
    from sparkwright.adapters.load.client import ProcessClient
    from sparkwright.app.bench.target import Bench, ClientMachine

    async def counting(asker: Endpoint, engine: "BenchTarget", probed: "Probed") -> Tokenizer:
        return await tokenizers.tokenizer(
            tokenizers.TokenizeServer(asker, engine.root, probed.model, engine.key), tokenizer
        )

    runs = run_store()
    machine = ClientMachine(here.client(), here.describe_host(), here.describe_clock(), secrets.token_hex(8))
    try:
        yield Bench(make_asker(), ProcessClient(), runs, SystemClock(), machine, counting)
    finally:
        await runs.aclose()


def trusting(made: "Bench", cluster: str) -> "Bench":
    """The bench, which also trusts the authority of the cluster's gateways if `up` ran on this machine."""
    from sparkwright.adapters.load.client import ProcessClient

    stored = authority(cluster)
    return replace(made, asker=make_asker(stored), client=ProcessClient(authority=stored)) if stored else made


async def vouched(url: str, cluster: str) -> bool:
    """True if an https server proves by its certificate that it belongs to the cluster."""
    from sparkwright.adapters.tls import signed

    stored = authority(cluster)
    return bool(stored) and await signed(url, stored)


def authority(cluster: str) -> str:
    path = places().state / "keys" / cluster / "ca.crt"
    return str(path) if path.is_file() else ""


def client_files() -> "ClientFiles":
    """Settings of other programs of this user."""
    from sparkwright.adapters.client_files import ClientFiles

    return ClientFiles(Path.home(), places().state / "connect")


def tunnels(where: ClusterOptions) -> "Tunnels":
    from sparkwright.adapters.tunnels import Tunnels

    return Tunnels(places().state / "tunnels", _ssh_settings(where))


def keys_to_try(file: Path | None) -> tuple[Secret | None, ...]:
    """Keys to try, in this order. A key for another service is shown only to a server that requires one.

    Raises UsageError for a file without a key.
    """
    if file is None:
        own, general = (os.environ.get(name, "").strip() for name in KEY_VARIABLES)
        first = Secret(own) if own else None
        return (first, Secret(general)) if general else (first,)
    try:
        with file.open("rb") as opened:
            words = opened.read(_KEY_BYTES).decode().split()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--key-file {file}: {getattr(error, 'strerror', None) or 'no text'}") from None
    if len(words) != 1:
        raise UsageError(f"--key-file {file}: expected one key, found {len(words)} words")
    return (Secret(words[0]),)


def gateway_keys(cluster: str) -> tuple[Secret, ...]:
    """The keys to the gateways of a cluster that were made from this machine."""
    return tuple(key for _, key in artifacts.FolderKeyring(keys_folder()).saved(cluster))
