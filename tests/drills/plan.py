"""Which drills there are, and on what ground each is run."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from drills import faults
from drills.drill import Drill
from drills.figures import BEYOND, FROZEN, REFUSED, Target
from drills.ground import Ground
from drills.traffic import Load
from sparkwright.supervision.detect.setting import Patience
from testbed import harm

SCALE = 0.1
"""Where waits are long: of the supervisor's patience with an engine that may be busy, and of its hours."""
DEAD = Target(refused=REFUSED)
STUCK = Target(detected=(Patience().still + FROZEN) * SCALE)
"""Beyond what it may be busy, the target; both as they are scaled."""
SILENT = 30.0
"""An ssh connection whose other side is silent is given up after three unanswered questions of 5 s, and tried anew."""
CALM = Target(sign="", relaunches=0, incidents=0)
PREFILL_S, CHUNKS = 996.0, 120
"""Seed 003: 980K tokens in 16.6 minutes, in chunks of 8,192."""
SOAK_S = 3600.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Drills that share one deployment, at most so many as the loop guard allows launches. scale: of the supervisor's
    waits; changes: of the recipe."""

    drills: tuple[Drill, ...]
    runtime: str = "docker"
    scale: float = 1.0
    lasting: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[Ground], None] | None = None


def later(seconds: float, then: Callable[[Ground], object]) -> Callable[[Ground], None]:
    def work(ground: Ground) -> None:
        time.sleep(seconds)
        then(ground)

    return work


def killed_at(*phases: str) -> Callable[[Ground], None]:
    """The supervisor, the moment it is in one of these phases of the relaunch."""

    def work(ground: Ground) -> None:
        end = time.monotonic() + 90
        while ground.now.phase not in phases:
            if time.monotonic() > end:
                raise TimeoutError(f"the relaunch was never seen in {' or '.join(phases)}")
            time.sleep(0.005)
        ground.head.sh(f"kill -9 {ground.supervisor()}")

    return work


def restore_image(ground: Ground) -> None:
    ground.testbed.refresh()


WORKER_KILLED = Drill("worker SIGKILL", "SIGKILL to the worker's process", faults.kill_worker, DEAD)
HEAD_KILLED = Drill("head SIGKILL", "SIGKILL to the head's process", faults.kill_head, DEAD)
STOPPED = Drill("worker stopped by hand", "docker stop of the worker's container", faults.stop_worker_container,
                Target(detected=8.0, refused=9.0))  # fmt: skip
OOM = Drill("memory limit", "the kernel kills the worker at its cgroup's limit", faults.out_of_memory, DEAD)
FROZEN_WORKER = Drill("worker frozen", "SIGSTOP to the worker's process", faults.freeze_worker, STUCK, settled=True)
FROZEN_API = Drill(
    "head API frozen",
    "the web server takes connections and says nothing; told to end, it gives them five seconds more",
    faults.freeze_api,
    replace(STUCK, beyond=BEYOND + 5.0),
    settled=True,
)
DEADLOCK = Drill(
    "deadlock", "ranks wait for each other for ever: sm 96 %, memory 0 %", faults.deadlock, STUCK, settled=True
)
GARBAGE = Drill("garbage", "every answer is !!!!!!", faults.garbage, Target(detected=None), limit=120.0)
LEAK = Drill(
    "leak",
    "14 MB of each node's memory are gone with each request",
    faults.leak,
    Target(sign="trouble", detected=None, beyond=None, relaunches=0, incidents=0, final=("degraded",)),
    limit=420.0,
    load=Load(rate=0.8, prompt=(10, 40), tokens=(4, 16)),
    leaks=True,
)
SSH_CUT = Drill(
    "ssh cut",
    "the head cannot reach the worker's sshd",
    faults.cut_ssh,
    Target(sign="trouble", detected=SILENT, beyond=None, relaunches=0, incidents=0),
    meanwhile=later(10.0, lambda ground: harm.mend_ssh(ground.worker)),
    limit=90.0,
)
FABRIC_CUT = Drill(
    "fabric cut",
    "both functions of the worker's cage are down, and up again 5 s after the notice",
    faults.cut_fabric,
    Target(detected=STUCK.detected, beyond=None),
    meanwhile=later(5.0, faults.mend_fabric),
    limit=150.0,
    settled=True,
)
WORKER_REBOOT = Drill(
    "worker reboot",
    "the worker's node restarts",
    faults.reboot_worker,
    Target(detected=FROZEN, beyond=15.0),
    limit=150.0,
)
HEAD_REBOOT = Drill(
    "head reboot",
    "the head's node restarts, supervisor and door with it",
    faults.reboot_head,
    Target(detected=None, beyond=20.0),
    limit=150.0,
)
BOTH_REBOOT = Drill(
    "both reboot", "both nodes restart", faults.reboot_both, Target(detected=None, beyond=20.0), limit=150.0
)
DISK_FULL = Drill(
    "disk full",
    f"no byte is left where the supervisor writes when the worker is killed; {faults.FULL_S:g} s later there is room",
    faults.fill_disk,
    Target(detected=None, refused=REFUSED, beyond=15.0),
)
SUPERVISOR_KILLED = tuple(
    Drill(
        f"supervisor killed in {phases[0]}",
        f"the worker is killed, and the supervisor when the relaunch is {phases[0]}",
        faults.kill_worker,
        Target(refused=REFUSED, beyond=12.0),
        meanwhile=killed_at(*phases),
    )
    for phases in (("draining",), ("starting",), ("loading",))
)
CRASH_LOOP = Drill(
    "crash loop",
    "the worker is killed, and every start dies while it loads",
    faults.crash_loop,
    Target(refused=REFUSED, beyond=None, relaunches=3, final=("failed",)),
    limit=180.0,
)
IMAGE_GONE = Drill(
    "image removed",
    "the worker's image is gone when the head dies; it is back 3 s after the notice",
    faults.remove_image,
    Target(refused=REFUSED, beyond=None),
    meanwhile=later(3.0, restore_image),
    limit=150.0,
)
PORT_STOLEN = Drill(
    "port stolen",
    "another program takes the engine's port when the head dies; it goes 3 s after the notice",
    faults.steal_port,
    Target(refused=REFUSED, beyond=None),
    meanwhile=later(3.0, lambda ground: harm.give_port_back(ground.head)),
    limit=150.0,
)
DOCKER_RESTART = Drill(
    "docker restarted", "the worker's Docker daemon restarts: its container ends", faults.restart_docker,
    Target(detected=8.0, beyond=12.0), limit=120.0,
)  # fmt: skip


def prompt_of(tokens: int) -> dict[str, Any]:
    body = {"prompt": [n % 30000 for n in range(tokens)], "max_tokens": 4, "stream": True}
    return body | {"ignore_eos": True}


def burst(count: int) -> Callable[[Ground], faults.Mark]:
    """So many long requests at once, sent from here: the queue is full for as long as they take."""

    def inject(ground: Ground) -> faults.Mark:
        at = time.time()
        ground.sent += [("/chat/completions", Load(prompt=(100, 900), tokens=(100, 300)))] * count
        return faults.Mark(at)

    return inject


def long_prefill(ground: Ground) -> faults.Mark:
    at = time.time()
    ground.sent.append(("/completions", prompt_of(CHUNKS * 256 - 64)))
    return faults.Mark(at)


def prefill_stage(scale: float) -> Stage:
    """The same chunks, each as much shorter as the supervisor's waits are; alone, as such a prompt is in practice."""
    seconds = PREFILL_S * scale
    drill = Drill(
        "long prefill",
        f"a prompt of {CHUNKS} chunks that takes {PREFILL_S / 60:.1f} minutes, scaled by {scale:g}",
        long_prefill,
        CALM,
        rest=seconds + 5.0,
        patience=2 * seconds,
        load=Load(rate=0.02),
    )
    env = {"SPARKWRIGHT_TWIN_PREFILL_TPS": f"{CHUNKS * 256 / seconds:.1f}"}
    return Stage((drill,), scale=scale, env=env, changes={"serving": {"batched_tokens": 256}})


def soak_stage(scale: float) -> Stage:
    drill = Drill(
        "soak",
        f"mixed traffic for {SOAK_S / 3600:g} h, scaled by {scale:g}",
        lambda ground: faults.Mark(time.time()),
        CALM,
        rest=SOAK_S * scale,
        load=Load(rate=2.0),
    )
    return Stage((drill,), scale=scale)


BURST = Drill("burst", "120 long requests at once for 8 places", burst(120), CALM, rest=40.0)

QUICK = (
    Stage((WORKER_KILLED, SUPERVISOR_KILLED[1], FROZEN_WORKER), scale=SCALE),
    Stage((BURST, HEAD_KILLED), runtime="process"),
)
FULL = (
    Stage((WORKER_KILLED, HEAD_KILLED, STOPPED)),
    Stage((OOM, SSH_CUT)),
    Stage((FROZEN_WORKER, FROZEN_API, DEADLOCK), scale=SCALE),
    Stage((GARBAGE, FABRIC_CUT), scale=SCALE),
    Stage((WORKER_KILLED, HEAD_KILLED), runtime="process"),
    Stage((WORKER_REBOOT,)),
    Stage((HEAD_REBOOT,)),
    Stage((BOTH_REBOOT,)),
    Stage((DISK_FULL,), before=lambda ground: harm.small_state(ground.head)),
    Stage(SUPERVISOR_KILLED),
    Stage((CRASH_LOOP,), lasting=True),
    Stage((IMAGE_GONE,)),
    Stage((PORT_STOLEN,)),
    Stage((DOCKER_RESTART,)),
    Stage((LEAK,)),
    Stage((BURST,)),
    prefill_stage(SCALE),
    soak_stage(SCALE),
)
