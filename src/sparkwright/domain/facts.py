"""Facts of one node. A field that could not be read holds Unknown, never a guess."""

from collections.abc import Mapping
from enum import StrEnum

from sparkwright.domain.fabric_facts import Containers, Network, Nic, Settings, Store
from sparkwright.domain.host_facts import Activity, Board, KernelLog, Package, Times, Upkeep
from sparkwright.domain.host_facts import Memory as Memory
from sparkwright.domain.unknown import NOT_ASKED as NOT_ASKED
from sparkwright.domain.unknown import Unknown as Unknown
from sparkwright.domain.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Identity:
    """hostname, machine-id, arch (`aarch64`), boot id, vendor and product, DGX platform and OTA.

    pid1_start: clock ticks after the machine's start; another one: a system container was restarted.
    """

    hostname: str
    machine_id: str
    arch: str
    boot_id: str
    user: str
    home: str
    product: str | Unknown = NOT_ASKED
    dgx_platform: str | Unknown = NOT_ASKED
    ota_version: str | Unknown = NOT_ASKED
    pid1_start: int | Unknown = NOT_ASKED

    @property
    def boot(self) -> str:
        """Another one after each start of the node, as samples have it; '' where it is not known."""
        return "" if isinstance(self.pid1_start, Unknown) else f"{self.boot_id}:{self.pid1_start}"


@dataclass(frozen=True, slots=True)
class Kernel:
    release: str
    cmdline: str
    os: str


@dataclass(frozen=True, slots=True)
class Driver:
    """version: of the kernel module; gsp_firmware: what the GPU runs. Unequal: a torn update.

    persistence: the driver stays loaded without a client. slowdowns: reasons that hold the clocks down now.
    """

    version: str | Unknown
    gsp_firmware: str | Unknown
    persistence: bool | Unknown = NOT_ASKED
    slowdowns: tuple[str, ...] = ()

    @property
    def torn(self) -> bool | Unknown:
        """Unknown when either version is."""
        known = isinstance(self.version, str) and isinstance(self.gsp_firmware, str)
        return self.version != self.gsp_firmware if known else Unknown("", "one of the two versions is not known")


@dataclass(frozen=True, slots=True)
class GpuProcess:
    pid: int
    name: str
    used: int | Unknown


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as nvidia-smi reports it. On GB10 the memory fields are `[N/A]`: Unknown here; the pool is in Memory.

    memory_reserved: bytes of memory_total that the driver keeps for itself. CUDA counts without them.
    """

    name: str
    driver: str
    compute_capability: str | Unknown
    memory_total: int | Unknown
    temperature_c: float | Unknown = NOT_ASKED
    power_w: float | Unknown = NOT_ASKED
    sm_clock_mhz: float | Unknown = NOT_ASKED
    utilization: float | Unknown = NOT_ASKED
    memory_reserved: int | Unknown = NOT_ASKED


@dataclass(frozen=True, slots=True)
class Gid:
    """One row of a port's GID table; version is `v1` or `v2` (RoCE); ipv4 is '' for link-local rows."""

    index: int
    gid: str
    version: str
    ipv4: str = ""
    netdev: str = ""


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """One RDMA device port. state is ACTIVE/DOWN/...; physical_state may be LINK_UP while state is DOWN."""

    device: str
    port: int
    state: str
    physical_state: str
    netdev: str
    gids: tuple[Gid, ...] = ()

    @property
    def active(self) -> bool:
        return self.state == "ACTIVE"


@dataclass(frozen=True, slots=True)
class Address:
    ipv4: str
    prefix: int


@dataclass(frozen=True, slots=True)
class Interface:
    name: str
    up: bool
    mtu: int
    addresses: tuple[Address, ...] = ()
    speed_mbps: int | Unknown = NOT_ASKED


class DockerTrouble(StrEnum):
    """The reason why the Docker daemon did not answer this user."""

    NONE = ""
    NOT_INSTALLED = "not installed"
    NOT_RUNNING = "not running"
    NO_RIGHTS = "no rights"


@dataclass(frozen=True, slots=True)
class Docker:
    """The daemon as this user sees it. version '' with trouble: not installed, not running, or no rights.

    cdi: the daemon can hand out NVIDIA GPUs by CDI name. proxy, no_proxy: its own, without user and password.
    """

    version: str
    runtimes: tuple[str, ...] = ()
    cdi: bool = False
    root: str = ""
    snap: bool = False
    storage: str = ""
    trouble: DockerTrouble = DockerTrouble.NONE
    said: str = ""  # Docker's own first line about the trouble
    rootless: bool = False
    can_raise_memlock: bool | Unknown = NOT_ASKED
    log_driver: str = ""
    proxy: str = ""
    no_proxy: str = ""


@dataclass(frozen=True, slots=True)
class Disk:
    """File system under a path: bytes."""

    path: str
    mount: str
    total: int
    available: int


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening TCP socket; process '' when another user's."""

    address: str
    port: int
    process: str = ""


@dataclass(frozen=True, slots=True)
class RankStatus:
    """One rank as found on its node: a container or a process group of ours.

    state: created, running, exited, gone. exit_code: None while it runs or when not known.
    """

    deployment: str
    rank: int
    node: str
    runtime: str
    state: str
    handle: str
    recipe: str = ""
    recipe_hash: str = ""
    spec_hash: str = ""
    engine: str = ""
    world: int = 1
    port: int = 0
    bind: str = ""
    served_name: str = ""
    key_env: str = ""
    simulated: bool = False
    started: str = ""
    exit_code: int | None = None
    oom_killed: bool = False
    forced: bool = False
    replica_of: str = ""

    @property
    def code(self) -> str:
        return "unknown" if self.exit_code is None else str(self.exit_code)

    @property
    def running(self) -> bool:
        return self.state == "running"


@dataclass(frozen=True, slots=True)
class KeeperStatus:
    """A process that keeps the weights of a deployment's rank. handle: its container's name, or its folder.

    spec_hash: over all that makes it what it is; another one holds other weights.
    """

    deployment: str
    rank: int
    node: str
    runtime: str
    handle: str
    running: bool
    spec_hash: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Everything gathered from one node in one go.

    asked, at: seconds since the epoch on the control machine when the node was asked and when its answer was there.
    keepers: deployments whose weights a process keeps here; asked only where the recipe has such a process.
    """

    node: str
    at: float
    identity: Identity | Unknown = NOT_ASKED
    kernel: Kernel | Unknown = NOT_ASKED
    memory: Memory | Unknown = NOT_ASKED
    gpus: tuple[Gpu, ...] | Unknown = NOT_ASKED
    gpu_processes: tuple[GpuProcess, ...] | Unknown = NOT_ASKED
    driver: Driver | Unknown = NOT_ASKED
    gsp_firmware: str | Unknown = NOT_ASKED
    rdma: tuple[RdmaPort, ...] | Unknown = NOT_ASKED
    interfaces: tuple[Interface, ...] | Unknown = NOT_ASKED
    docker: Docker | Unknown = NOT_ASKED
    disks: tuple[Disk, ...] | Unknown = NOT_ASKED
    listeners: tuple[Listener, ...] | Unknown = NOT_ASKED
    ranks: tuple[RankStatus, ...] | Unknown = NOT_ASKED
    nic: Nic | Unknown = NOT_ASKED
    network: Network | Unknown = NOT_ASKED
    settings: Settings | Unknown = NOT_ASKED
    containers: Containers | Unknown = NOT_ASKED
    stores: tuple[Store, ...] | Unknown = NOT_ASKED
    kernel_log: KernelLog | Unknown = NOT_ASKED
    packages: tuple[Package, ...] | Unknown = NOT_ASKED
    activity: Activity | Unknown = NOT_ASKED
    times: Times | Unknown = NOT_ASKED
    upkeep: Upkeep | Unknown = NOT_ASKED
    board: Board | Unknown = NOT_ASKED
    asked: float = 0.0
    keepers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FabricChoice:
    """The address, interface and HCAs that a node uses to reach its peers; notes: how they were found.

    gids: for each HCA the index of its RoCE v2 GID with an IPv4 of this node, None when there is none.
    gid_index: that number when it is the same for all HCAs; only for tools that cannot find it by meaning.
    """

    address: str
    interface: str
    hcas: tuple[str, ...] = ()
    gid_index: int | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)
    gids: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class EngineFound:
    """The engine that an image, or a node's Python, contains.

    arch: of the image as Docker names it (`arm64`), '' without one. versions: package -> version, '?' where its code is
    there and nothing has the version. program: its path, '' when there is none. broken: why its interpreter cannot
    import it, '' where it can or was not asked to.
    """

    arch: str
    versions: Mapping[str, str] = field(default_factory=dict)
    program: str = ""
    broken: str = ""
