"""The place of the testbed and the names of its nodes."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
OVERLAY = Path(__file__).resolve().parent / "overlay"
FABRIC_MTU = 9000
USERS = {"spark": 1000, "nodocker": 1001}

# The device names of a GB10: the management port, and both functions of the first cage.
MGMT_DEVICE, FABRIC_DEVICE, FABRIC_B_DEVICE = "enP7s7", "enp1s0f0np0", "enP2p1s0f0np0"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node before it exists."""

    index: int
    subnet: str

    @property
    def name(self) -> str:
        return f"spark-{self.index}"

    @property
    def container(self) -> str:
        return f"sparkwright-testbed-{self.index}"

    @property
    def volume(self) -> str:
        return f"{self.container}-docker"

    @property
    def mgmt(self) -> str:
        return f"{self.subnet}.70.{10 + self.index}"

    @property
    def fabric(self) -> str:
        return f"{self.subnet}.71.{10 + self.index}"

    @property
    def fabric_b(self) -> str:
        return f"{self.subnet}.72.{10 + self.index}"

    @property
    def devices(self) -> tuple[tuple[str, str], ...]:
        return ((self.mgmt, MGMT_DEVICE), (self.fabric, FABRIC_DEVICE), (self.fabric_b, FABRIC_B_DEVICE))


@dataclass(frozen=True, slots=True)
class ContainerNetwork:
    name: str
    cidr: str
    bridge: str
    mtu: int
    internal: bool


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """`root` keeps everything that outlives a run; `/run` holds the sockets, whose paths must be short.

    images: a testbed with another number is next to the first and is made of the same ones.
    """

    root: Path
    subnet: str
    images: Path

    @classmethod
    def from_environment(cls) -> "ContainerSettings":
        first = Path(os.environ.get("SPARKWRIGHT_TESTBED", "/var/cache/sparkwright-testbed")).resolve()
        worker = int(os.environ.get("TEST_WORKER", "0"))  # of tests/workers.py
        number = int(os.environ.get("SPARKWRIGHT_TESTBED_NUMBER", "1")) + worker
        root = first if number == 1 else first.with_name(f"{first.name}-{number}")
        return cls(root, f"10.{212 + number}", first / "images")

    @property
    def run(self) -> Path:
        return Path("/run") / f"sparkwright-testbed-{hashlib.sha256(str(self.root).encode()).hexdigest()[:8]}"

    @property
    def ssh(self) -> Path:
        return self.root / "ssh"

    @property
    def nodes(self) -> tuple[NodeSpec, ...]:
        return tuple(NodeSpec(index, self.subnet) for index in (1, 2))

    @property
    def spare(self) -> NodeSpec:
        """A third one, for the tests that need it."""
        return NodeSpec(3, self.subnet)

    @property
    def networks(self) -> tuple[ContainerNetwork, ...]:
        """Only the first gives a default route, as on real nodes: a fabric has no gateway."""
        bridge = f"swt{self.subnet.rpartition('.')[2]}"  # a second testbed on this machine has another subnet
        return (
            ContainerNetwork("testbed-mgmt", f"{self.subnet}.70.0/24", f"{bridge}-mgmt", 1500, False),
            ContainerNetwork("testbed-fabric-a", f"{self.subnet}.71.0/24", f"{bridge}-fab-a", FABRIC_MTU, True),
            ContainerNetwork("testbed-fabric-b", f"{self.subnet}.72.0/24", f"{bridge}-fab-b", FABRIC_MTU, True),
        )
