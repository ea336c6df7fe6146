"""A node's network, containers, model stores and deep checks; addresses and RDMA ports are in domain/facts.py."""

import re
from collections.abc import Mapping

from sparkwright.domain.unknown import NOT_ASKED, Unknown
from sparkwright.domain.values import dataclass, field

_DOMAIN = re.compile(r"^(roce|ibp?|en)P[0-9]+(?=p[0-9])")


def cage_name(name: str) -> str:
    """The name shared by a port pair: `roceP2p1s0f1` -> `rocep1s0f1`. The function number is the cage."""
    return _DOMAIN.sub(r"\1", name)


@dataclass(frozen=True, slots=True)
class PciFunction:
    """One function of the ConnectX-7. speed_gt: `32.0` of `32.0 GT/s PCIe`, width: lanes; 0: unknown."""

    address: str
    speed_gt: float = 0.0
    width: int = 0


@dataclass(frozen=True, slots=True)
class RdmaDevice:
    """firmware: `28.45.4028`, '' when unknown. rate_gbit: of port 1, from sysfs. counters: of port 1, by name."""

    name: str
    firmware: str = ""
    rate_gbit: float | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Nic:
    """The ConnectX-7 and what goes with it. functions: on the PCI bus now; DGX OS takes an uncabled NIC off it.

    armed: the hot-plug handler's marker is there. verbs: device nodes for user programs (`uverbs0`).
    bonds: bond -> its member netdevs. tools: those of _TOOLS in facts/nic.py that are on the PATH.
    """

    functions: tuple[PciFunction, ...] | Unknown = NOT_ASKED
    devices: tuple[RdmaDevice, ...] = ()
    armed: bool = False
    verbs: tuple[str, ...] | Unknown = NOT_ASKED
    bonds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """destination: `default` or a network; gateway: '' for what is directly on the link."""

    destination: str
    gateway: str
    interface: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A NetworkManager connection that is active. ipv4: auto, manual, disabled, link-local, shared."""

    name: str
    interface: str
    ipv4: str


@dataclass(frozen=True, slots=True)
class Firewall:
    """A host firewall that is on. allows: interfaces, or networks, all of whose traffic is let in.

    Unknown: root alone may see.
    """

    name: str
    allows: tuple[str, ...] | Unknown = NOT_ASKED


@dataclass(frozen=True, slots=True)
class WakeCard:
    """A network card. armed: it wakes the node by a magic packet; None where its driver or the firmware cannot."""

    interface: str
    mac: str
    armed: bool | None = None


@dataclass(frozen=True, slots=True)
class Network:
    """netplan: file -> its mode in octal (`600`). firewall: None: none is on, as far as can be seen without root.

    cards: None where they were not read.
    """

    routes: tuple[Route, ...] = ()
    profiles: tuple[Profile, ...] = ()
    netplan: Mapping[str, str] = field(default_factory=dict)
    firewall: Firewall | None = None
    cards: tuple[WakeCard, ...] | None = None


@dataclass(frozen=True, slots=True)
class EnvironmentSetting:
    """A variable and where it is set: a file's path, or `session` for what an ssh session gets."""

    where: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that reach processes started on the node itself, outside containers.

    communication: NCCL_*, GLOO_*, UCX_* ...; proxies: http_proxy and the like, without user and password.
    nccl: host libraries as file names (`libnccl.so.2.28.9`). token_mode: of the hub's token file, '' without one.
    lax_ssh: ssh_config files that turn host key checking off.
    """

    communication: tuple[EnvironmentSetting, ...] = ()
    proxies: tuple[EnvironmentSetting, ...] = ()
    nccl: tuple[str, ...] = ()
    token_file: str = ""
    token_mode: str = ""
    lax_ssh: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Container:
    """ours: started by sparkwright. restart: `no`, `always`, `unless-stopped`, `on-failure`. gpu: it was given one.

    command: its words without options that may hold keys: the program and the first words only. model: what its
    command line or its processes serve, '' where that is not told. project: of Docker Compose, '' of others.
    """

    name: str
    image: str
    running: bool
    restart: str = ""
    gpu: bool = False
    ours: bool = False
    network: str = ""
    command: str = ""
    model: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """tags: `name:tag`; id: `sha256:...`; arch as Docker names it (`arm64`)."""

    id: str
    arch: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Containers:
    """Containers and images of the Docker daemon. toolkit: version of the NVIDIA container toolkit, '' without one.

    daemon: lines of daemon.json that bound the containers' logs or name NVIDIA's runtime.
    """

    containers: tuple[Container, ...] = ()
    images: tuple[Image, ...] = ()
    toolkit: str = ""
    daemon: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ref:
    """refs/main of one hub entry (`models--org--name`): text as it is in the file, there: its snapshot exists."""

    entry: str
    text: str
    there: bool


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of models. fs: type of its file system (`ext4`, `nfs4`, `fuse.sshfs`); inodes 0: it counts none.

    foreign: the first thing found there that another user owns, as `owner path`. partial: bytes by unfinished download.
    """

    path: str
    fs: str = ""
    inodes: int = 0
    inodes_free: int = 0
    foreign: str = ""
    partial: Mapping[str, int] = field(default_factory=dict)
    refs: tuple[Ref, ...] = ()


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """One rail from `source` to `target`. gbit: average Gb/s; Unknown: ib_write_bw's own line, and why."""

    source: str
    target: str
    device: str
    peer_device: str
    gbit: float | Unknown


@dataclass(frozen=True, slots=True)
class ClockSample:
    """GPU clock, power and utilization at one moment, as nvidia-smi prints them: MHz, W, percent."""

    sm_mhz: float
    power_w: float
    utilization: float


@dataclass(frozen=True, slots=True)
class Clocks:
    """A GPU under load for some seconds. load: what made it: `torch on the node`, an image, `what runs there`."""

    node: str
    load: str
    samples: tuple[ClockSample, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A measurement that was not made: of what (`RDMA bandwidth`, `clocks under load`), where, and why."""

    what: str
    subject: str
    why: str


@dataclass(frozen=True, slots=True)
class DeepMeasurements:
    bandwidths: tuple[Bandwidth, ...] = ()
    clocks: tuple[Clocks, ...] = ()
    skipped: tuple[Skipped, ...] = ()
