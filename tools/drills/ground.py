"""The ground that drills run on: a supervised deployment on the two nodes, its gateway, its live.json."""

import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.drive import NAME, CallResult, CommandDriver
from drills.traffic import GatewayTarget
from drills.watch import READER, Sight, Watcher
from testbed import ContainerNode, Testbed, harm
from testbed.node import STATE

USER = "spark"
SPOT = "/tmp/faults"
"""In the container: a fault written there ends with this start of the rank."""
LASTING = "/home/spark/drill"
"""On the node, and mounted into its rank under the same path: a fault there meets every start."""
BOOT = {
    "SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.03",
    "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1",
    "SPARKWRIGHT_SIMULATOR_STEP_MS": "8",
}
PHASES = ("start ranks", "start", "rendezvous", "load", "compile", "warmup", "graphs", "server", "answer")
"""Steps of `up` that are the engine's own: from the start of its first rank to a token."""
PORT = 8443
HEADROOM_GIB, CLAIM_GIB = 116.0, 100.0
"""MemAvailable of a node without a rank, and what a rank is assumed to hold: 16 GiB stay free."""


@dataclass
class DrillGround:
    testbed: Testbed
    folder: Path
    scale: float = 1.0
    lasting: bool = False
    """Faults are recognized by LASTING instead of SPOT."""
    drive: CommandDriver = field(init=False)
    watcher: Watcher | None = None
    start: float = 0.0
    """Seconds from the first rank's start to the first token, by a plain `up`."""
    gateway: GatewayTarget = field(init=False)
    sent: list[tuple[str, Any]] = field(default_factory=list)
    """Requests that a fault wants sent: path, and a body or a Load to make one of."""
    lines: list[str] = field(default_factory=list)
    """What a drill adds to the log that is left of it."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        env = {"SPARKWRIGHT_SUPERVISOR_SCALE": str(self.scale), "DRILL_KEY": f"sk-drill-{secrets.token_hex(16)}"}
        node_env = {"SPARKWRIGHT_SYSROOT": "/opt/fixtures"}
        self.drive = CommandDriver(self.folder, self.testbed, env=env, node_env=node_env, supervise=True)

    @property
    def head(self) -> ContainerNode:
        return self.testbed.nodes[0]

    @property
    def worker(self) -> ContainerNode:
        return self.testbed.nodes[1]

    @property
    def nodes(self) -> list[ContainerNode]:
        return self.testbed.nodes

    @property
    def home(self) -> str:
        """The supervisor's, on the head."""
        return f"/home/{USER}/{STATE}/supervision/{NAME}"

    @property
    def now(self) -> Sight:
        assert self.watcher
        return self.watcher.now

    def memory(self) -> list[tuple[float, float]]:
        return self.watcher.memory if self.watcher else []

    # Bringing it up

    def fresh(
        self,
        runtime: str = "docker",
        env: Mapping[str, str] | None = None,
        before: "Callable[[DrillGround], None] | None" = None,
        idle: bool = False,
        **changes: Any,
    ) -> None:
        """New nodes, a new deployment under a new supervisor that has not launched anything yet; idle: without one."""
        self.clear()
        for node in self.nodes:
            node.set_shim("nvidia-smi", "twin")
            harm.live_memory(node, HEADROOM_GIB, CLAIM_GIB)
            node.sh(f"mkdir -p {LASTING}", user=USER)
        if before is not None:
            before(self)
        if not idle:
            self.up(runtime, env, **changes)

    def clear(self) -> None:
        if self.watcher is not None:
            self.watcher.close()
            self.watcher = None
        self.testbed.reset()

    def recipe(self, runtime: str, env: Mapping[str, str] | None, **changes: Any) -> str:
        serving = {"expose": "all", "api_key_env": "DRILL_KEY", "door": {"port": PORT}}
        changes["serving"] = {**serving, **changes.get("serving", {})}
        control = {"SPARKWRIGHT_SIMULATOR_CONTROL": f"{LASTING}/faults" if self.lasting else SPOT}
        mounts = [f"{LASTING}:{LASTING}"] if self.lasting else []
        return self.drive.recipe(runtime, {**BOOT, **control, **(env or {})}, mounts=mounts, **changes)

    def measure(
        self,
        runtime: str = "docker",
        env: Mapping[str, str] | None = None,
        before: "Callable[[DrillGround], None] | None" = None,
        **changes: Any,
    ) -> float:
        """The engine's own start, by a plain `up`: what anybody has to wait for. before: as in `fresh`."""
        self.clear()
        if before is not None:
            before(self)
        told = self.good("up", self.recipe(runtime, env, **changes), "--json", "--no-supervise").json
        steps = {step["name"]: step["seconds"] for step in told["steps"]}
        self.good("down", NAME)
        return sum(float(steps[name]) for name in PHASES if name in steps)

    def up(self, runtime: str = "docker", env: Mapping[str, str] | None = None, **changes: Any) -> None:
        self.good("up", self.recipe(runtime, env, **changes), "--json")
        self.watcher = Watcher(self.head.argv("python3", "-u", "-c", READER, f"{self.home}/live.json"))
        self.gateway = self.probe()

    def probe(self) -> GatewayTarget:
        """A client with the key and the CA that the caller of `up` gave it."""
        given = self.folder / "home" / STATE / "keys" / "testbed"
        key = (given / "default.key").read_text().strip()
        context = ssl.create_default_context(cafile=str(given / "ca.crt"))
        return GatewayTarget(f"https://{self.head.mgmt}:{PORT}/v1", key, "twin-tiny", context, self.head.name)

    # What can be seen and done there

    def inject(self, faults: str, *nodes: ContainerNode) -> float:
        """The simulators on these nodes (all by default) have these faults from now on; when the last was reported."""
        at = 0.0
        for node in nodes or self.nodes:
            script = f"printf %s '{faults}' > $0.new && date +%s.%N && mv $0.new $0"
            rank = self.container(self.nodes.index(node))
            argv = (
                ["sh", "-c", script, f"{LASTING}/faults"]
                if self.lasting
                else ["docker", "exec", rank, "sh", "-c", script, SPOT]
            )
            at = float(node.exec(argv).stdout)
        return at

    def signal(self, node: ContainerNode, number: str, having: str = "") -> float:
        """Sends the signal to the rank's own process (with this text in its command line); returns the time."""
        pids = " ".join(str(pid) for pid in self.ranks(node, having))
        assert pids, f"no rank runs on {node.name}"
        return float(node.sh(f"date +%s.%N; kill -{number} {pids}").split()[0])

    def ranks(self, node: ContainerNode, having: str = "") -> list[int]:
        found = [p for p in node.processes() if "-m sparkwright.simulator serve" in p.command and having in p.command]
        return [p.pid for p in found if p.command.split()[0].rpartition("/")[2].startswith("python")]

    def supervisor(self) -> int:
        """Its pid; 0 when none runs."""
        text = self.head.sh("pgrep -f '[s]parkwright.*run --home' | head -1", check=False)
        return int(text) if text else 0

    def container(self, rank: int) -> str:
        return f"sparkwright-{NAME}-rank{rank}"

    def good(self, verb: str, *words: str) -> CallResult:
        """Patiently: a busy machine is no reason to have no ground."""
        done = self.drive.run(verb, *words, timeout=180)
        assert done.code == 0, str(done)
        return done

    def close(self) -> None:
        self.clear()
        self.drive.close()
