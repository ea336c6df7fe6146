"""The list of drills, and the ground of each."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from drills import faults
from drills.drill import Drill
from drills.eighth_plan import EIGHTH
from drills.fifth_plan import FIFTH
from drills.figures import FROZEN, REFUSED, DrillTarget
from drills.fourth_plan import FOURTH
from drills.fresh_plan import FRESH
from drills.ground import DrillGround
from drills.memory_plan import MEMORY
from drills.outage_plan import OUTAGES
from drills.seventh_plan import SEVENTH
from drills.stage import DrillStage
from drills.third_plan import THIRD
from drills.traffic import TrafficLoad
from drills.trial_plan import TRIAL
from sparkwright.supervisor.core.detect.setting import Patience
from sparkwright.supervisor.core.state import Policy
from testbed import harm

SCALE = 0.1
"""Where waits are long: of the supervisor's patience with an engine that may be busy, and of its hours."""
DEAD = DrillTarget(refused=REFUSED)
BACK = DrillTarget(back=True)
STUCK = DrillTarget(detected=(Patience().still + FROZEN) * SCALE)
"""Beyond what it may be busy, the target; both as they are scaled."""
GARBAGE_S = 60.0 + Policy().canary_every + FROZEN
"""The canary's interval under traffic, and its second question; the last as for what is frozen."""
SILENT = 30.0
"""An ssh connection whose other side is silent is given up after three unanswered questions of 5 s, and tried again."""
CALM = DrillTarget(sign="", beyond=None, relaunches=0, incidents=0)
PREFILL_S, CHUNKS = 996.0, 120
"""Report 003: 980K tokens in 16.6 minutes, in chunks of 8,192."""
SOAK_S = 3600.0


def fault_later(seconds: float, then: Callable[[DrillGround], object]) -> Callable[[DrillGround], float]:
    def work(ground: DrillGround) -> float:
        time.sleep(seconds)
        then(ground)
        return time.time()

    return work


def killed_at(phase: str) -> Callable[[DrillGround], float]:
    """The supervisor, the moment it is in this phase of the relaunch. The way back begins again with it."""

    def work(ground: DrillGround) -> float:
        end = time.monotonic() + 90
        while ground.now.phase != phase:
            if time.monotonic() > end or ground.now.serving:
                raise TimeoutError(f"the relaunch was never seen in {phase}")
            time.sleep(0.005)
        return float(ground.head.sh(f"date +%s.%N; kill -9 {ground.supervisor()}").split()[0])

    return work


def killed_while_waiting(ground: DrillGround) -> float:
    """The supervisor, in the back-off after a start that has died; the next one can live, and comes when that ends."""
    killed_at("backing_off")(ground)
    due = ground.now.at + Policy().backoffs[0]
    ground.inject("")
    return due


def restore_image(ground: DrillGround) -> None:
    ground.testbed.refresh()


WORKER_KILLED = Drill("worker SIGKILL", "SIGKILL to the worker's process", faults.kill_worker, DEAD)
HEAD_KILLED = Drill("head SIGKILL", "SIGKILL to the head's process", faults.kill_head, DEAD)
STOPPED = Drill("worker stopped by hand", "docker stop of the worker's container", faults.stop_worker_container, DEAD)
OOM = Drill("memory limit", "the kernel kills the worker at its cgroup's limit", faults.out_of_memory, DEAD)
STILL = DrillTarget(detected=Patience().still + FROZEN)
STOPPED_SOON = DrillTarget(detected=Patience().spin + FROZEN)
"""A process that is stopped can neither work nor compile: an engine that is new gets no more time then."""
FROZEN_WORKER = Drill(
    "worker frozen", "SIGSTOP to the worker's process just after the start", faults.freeze_worker, STOPPED_SOON,
    limit=120.0, patience=150.0,
)  # fmt: skip
PAUSED = replace(
    FROZEN_WORKER,
    name="worker paused",
    fault="docker pause of the worker's container just after the start",
    inject=faults.pause_worker,
)
FROZEN_API = replace(
    FROZEN_WORKER,
    name="head API frozen",
    fault="the web server takes connections and says nothing",
    inject=faults.freeze_api,
    target=STILL,
    settled=True,
)
DEADLOCK = Drill(
    "deadlock", "ranks wait for each other for ever: sm 96 %, memory 0 %", faults.deadlock, STUCK, settled=True
)
GARBAGE = Drill(
    "garbage",
    "every answer is !!!!!!; under traffic that proves life the canary asks every 60 s, and twice before it is sure",
    faults.garbage,
    DrillTarget(detected=GARBAGE_S * SCALE),
    limit=120.0,
)
SPINNING = replace(
    DEADLOCK, name="deadlock, unscaled", target=DrillTarget(detected=Patience().spin + FROZEN), settled=False
)
SHOWN = DrillTarget(sign="trouble", detected=None, beyond=None, relaunches=0, incidents=0, final=("degraded",))
"""What does not stop it from serving is reported, and nothing else happens."""
DRAFTS = Drill(
    "acceptance drifts", "of the drafted tokens 3 in 10 are accepted instead of 8", faults.worse_drafts, SHOWN,
    load=TrafficLoad(rate=6.0, prompt=(20, 100), tokens=(60, 120)), warm=40.0, limit=60.0,
)  # fmt: skip
PREFIXES = Drill(
    "prefix hits drift", "of a prefix that all prompts share nothing is found any more", faults.lost_prefixes, SHOWN,
    load=TrafficLoad(rate=4.0, prompt=(20, 100), tokens=(4, 16), shared=2000), warm=50.0, limit=90.0,
)  # fmt: skip
LEAK = Drill(
    "leak",
    "14 MB of each node's memory are gone with each request, from a minute after the start on: its level is known then",
    faults.leak_memory,
    SHOWN,
    limit=420.0,
    load=TrafficLoad(rate=0.8, prompt=(10, 40), tokens=(4, 16)),
    warm=Patience().settle + 5.0,
    leaks=True,
)
SSH_CUT = Drill(
    "ssh cut",
    "the head cannot reach the worker's sshd; ssh itself gives up after three unanswered questions of 5 s",
    faults.cut_ssh,
    DrillTarget(sign="trouble", detected=SILENT, beyond=None, relaunches=0, incidents=0),
    meanwhile=fault_later(10.0, lambda ground: harm.restore_ssh(ground.worker)),
    limit=90.0,
)
FABRIC_CUT = Drill(
    "fabric cut",
    "both functions of the worker's cage are down, and up again 5 s after the notice",
    faults.cut_fabric,
    STUCK,
    meanwhile=fault_later(5.0, faults.restore_fabric),
    limit=150.0,
    settled=True,
)
WORKER_REBOOT = Drill("worker reboot", "the worker's node restarts", faults.reboot_worker, BACK, limit=150.0)
HEAD_REBOOT = Drill(
    "head reboot", "the head's node restarts, supervisor and gateway with it", faults.reboot_head, BACK, limit=150.0
)
BOTH_REBOOT = Drill("both reboot", "both nodes restart", faults.reboot_both, BACK, limit=150.0)
DISK_FULL = Drill(
    "disk full",
    "no byte is left where the head's supervisor writes when the worker is killed, and none comes back",
    faults.fill_disk,
    replace(DEAD, final=("ready", "degraded")),  # that it is full is shown for as long
)
DISK_FULL_PROCESS = replace(DISK_FULL, name="disk full, processes")
SUPERVISOR_KILLED = tuple(
    Drill(
        f"supervisor killed in {phase}",
        f"the worker is killed, and the supervisor when the relaunch is {phase}",
        faults.kill_worker,
        DEAD,
        meanwhile=killed_at(phase),
    )
    for phase in ("draining", "starting", "loading")
)
KILLED_WAITING = Drill(
    "supervisor killed in backing_off",
    "the worker is killed, its next start dies, and the supervisor is killed in the 5 s that it waits then; the way "
    "back counts from their end",
    faults.crash_loop,
    replace(DEAD, relaunches=2),
    meanwhile=killed_while_waiting,
)
CRASH_LOOP = Drill(
    "crash loop",
    "the worker is killed, and every start dies while it loads",
    faults.crash_loop,
    replace(DEAD, beyond=None, relaunches=3, final=("failed",)),
    limit=180.0,
)
IMAGE_GONE = Drill(
    "image removed",
    "the worker's image is gone when the head dies; it is back 3 s after the notice",
    faults.remove_image,
    DEAD,
    meanwhile=fault_later(3.0, restore_image),
    limit=150.0,
)
PORT_STOLEN = Drill(
    "port stolen",
    "another program takes the engine's port when the head dies; it goes 3 s after the notice",
    faults.steal_port,
    DEAD,
    meanwhile=fault_later(3.0, lambda ground: harm.give_port_back(ground.head)),
    limit=150.0,
)
DOCKER_RESTART = Drill(
    "docker restarted", "the worker's Docker daemon restarts: its container ends", faults.restart_docker, DEAD
)


DRAFTING = {"speculation": {"method": "ngram", "tokens": 3, "options": {"prompt_lookup_max": 4}}}
"""Of a recipe: so the engine counts drafts."""


def prompt_of(tokens: int) -> dict[str, Any]:
    body = {"prompt": [n % 30000 for n in range(tokens)], "max_tokens": 4, "stream": True}
    return body | {"ignore_eos": True}


def send_burst(count: int) -> Callable[[DrillGround], faults.Mark]:
    """Sends `count` long requests at once, from here: the queue is full until they end."""

    def inject(ground: DrillGround) -> faults.Mark:
        at = time.time()
        ground.sent += [("/chat/completions", TrafficLoad(prompt=(100, 900), tokens=(100, 300)))] * count
        return faults.Mark(at)

    return inject


def long_prefill(ground: DrillGround) -> faults.Mark:
    at = time.time()
    ground.sent.append(("/completions", prompt_of(CHUNKS * 256 - 64)))
    return faults.Mark(at)


def prefill_stage(scale: float) -> DrillStage:
    """The same chunks, each as much shorter as the supervisor's waits are; alone, as such a prompt is in practice."""
    seconds = PREFILL_S * scale
    drill = Drill(
        "long prefill",
        f"a prompt of {CHUNKS} chunks that takes {PREFILL_S / 60:.1f} minutes, scaled by {scale:g}",
        long_prefill,
        CALM,
        rest=seconds + 5.0,
        patience=2 * seconds,
        load=TrafficLoad(rate=0.02),
    )
    env = {"SPARKWRIGHT_SIMULATOR_PREFILL_TPS": f"{CHUNKS * 256 / seconds:.1f}"}
    return DrillStage((drill,), scale=scale, env=env, changes={"serving": {"batched_tokens": 256}})


def nothing(_: DrillGround) -> faults.Mark:
    return faults.Mark(time.time())


SOAK = Drill("soak", f"mixed traffic for an hour, scaled by {SCALE:g}", nothing, CALM, rest=SOAK_S * SCALE)
HOUR = Drill("soak, unscaled", "mixed traffic for an hour", nothing, CALM, rest=SOAK_S, weighed=True)


BURST = Drill("burst", "120 long requests at once for 8 places", send_burst(120), CALM, rest=40.0)

HEAD_PROCESS = replace(HEAD_KILLED, name="head SIGKILL, processes")
WORKER_PROCESS = replace(WORKER_KILLED, name="worker SIGKILL, processes")

QUICK = (
    DrillStage((WORKER_KILLED,)),
    DrillStage((HEAD_PROCESS,), runtime="process"),
    DrillStage((SUPERVISOR_KILLED[1],)),
    DrillStage((replace(DEADLOCK, settled=False),), scale=SCALE),
    DrillStage((GARBAGE,), scale=SCALE),
    DrillStage((replace(BURST, fault="60 long requests at once for 8 places", inject=send_burst(60), rest=10.0),)),
)
FULL = (
    *(DrillStage((drill,)) for drill in (WORKER_KILLED, HEAD_KILLED, STOPPED, OOM, SSH_CUT)),
    *(DrillStage((drill,), scale=SCALE) for drill in (DEADLOCK, GARBAGE, FABRIC_CUT)),
    *(DrillStage((drill,)) for drill in (FROZEN_WORKER, PAUSED, FROZEN_API, SPINNING)),
    *(DrillStage((drill,), runtime="process") for drill in (WORKER_PROCESS, HEAD_PROCESS)),
    *(DrillStage((drill,)) for drill in (WORKER_REBOOT, HEAD_REBOOT, BOTH_REBOOT)),
    DrillStage((DISK_FULL,), before=lambda ground: harm.small_state(ground.head)),
    DrillStage((DISK_FULL_PROCESS,), runtime="process", before=lambda ground: harm.small_state(ground.head)),
    *(DrillStage((drill,)) for drill in SUPERVISOR_KILLED[:2]),
    DrillStage((SUPERVISOR_KILLED[2],), env={"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.15"}),
    *(DrillStage((drill,), lasting=True) for drill in (KILLED_WAITING, CRASH_LOOP)),
    *(DrillStage((drill,)) for drill in (IMAGE_GONE, PORT_STOLEN, DOCKER_RESTART, LEAK, BURST)),
    DrillStage((DRAFTS,), changes=DRAFTING),
    DrillStage((PREFIXES,), env={"SPARKWRIGHT_SIMULATOR_PREFILL_TPS": "100000"}),
    prefill_stage(SCALE),
    DrillStage((SOAK,), scale=SCALE, changes=DRAFTING),
    DrillStage((HOUR,), changes=DRAFTING),
    *OUTAGES,
    *TRIAL,
    *FRESH,
    *THIRD,
    *FOURTH,
    *FIFTH,
    *SEVENTH,
    *EIGHTH,
    *MEMORY,
)


def stage_names(stages: Sequence[DrillStage]) -> list[str]:
    return [drill.name for stage in stages for drill in stage.drills]
