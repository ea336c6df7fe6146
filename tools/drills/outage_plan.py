"""The drills of outages as clients and the operator see them, with what each may cost and what must be printed."""

from dataclasses import replace

from drills import outage_faults as faults
from drills.ground import DrillGround
from drills.outage import BEYOND, Expected
from drills.outage_drill import OutageDrill
from drills.spoil import HEAD as HEAD_NODE
from drills.spoil import WORKER as WORKER_NODE
from drills.spoil import spoil_node
from drills.stage import DrillStage
from testbed import ContainerNode, harm

TENTH = 0.1
"""Of the supervisor's waits: half an hour is three minutes, five minutes of service are thirty seconds."""
HOLDS = 32.0
"""Seconds of service that count as a launch that held, so scaled."""
DOCKER_S = 30.0
STOPPED, KILLED = r"rank 0 on spark-1.*SIGSTOP", r"rank 1 on spark-2.*(137|SIGKILL)"
REBOOTED = r"spark-{} (was|has) (been )?rebooted"
UNTOUCHED = Expected(incidents=0)
STALL = r"(?i)no token|nothing .*moved|no answer|stall"


def restart_pattern(what: str) -> str:
    return rf"({what})[^\n]*(restarted|started again|was away|came back|is back)"


DOCKERS = "systemctl {} docker.socket docker"
"""Its socket, too: any client that connects to it would start it."""


def cut_fabric(node: ContainerNode) -> None:
    harm.set_fabric(node, up=False)


def restore_fabric(node: ContainerNode) -> None:
    harm.set_fabric(node, up=True)


def room_for_two(ground: DrillGround) -> None:
    for node in ground.nodes:
        harm.live_memory(node, 116.0, 40.0)


KILL = OutageDrill(
    "rank 1 killed next to another deployment",
    "SIGKILL to rank 1 of a deployment of processes; one of containers serves on the same nodes",
    faults.kill_next_to_another,
    Expected(away=BEYOND, cause=KILLED),
)
KILL_BOTH = replace(
    KILL,
    name="rank 1 of two deployments killed",
    fault="the same, and SIGKILL to both deployments' rank 1 at once",
    script=faults.kill_of_both,
    expected=replace(KILL.expected, away=2 * BEYOND),
)
FREEZE = OutageDrill(
    "rank 0 stopped by SIGSTOP",
    "SIGSTOP to rank 0 just after the start",
    faults.freeze_head,
    Expected(cause=STOPPED, status=STALL),
    limit=120.0,
)
SUPERVISOR = OutageDrill(
    "supervisor killed",
    "SIGKILL to the supervisor",
    faults.kill_unit(lambda unit: "supervisor" in unit),
    Expected(incidents=0, record=restart_pattern("supervisor")),
)
CADDY = OutageDrill(
    "Caddy killed",
    "SIGKILL to the reverse proxy",
    faults.kill_unit(lambda unit: "caddy" in unit),
    Expected(incidents=0, record=restart_pattern("caddy|reverse proxy|gateway")),
)
KEY_CHECK = OutageDrill(
    "key check killed",
    "SIGKILL to the service that checks keys",
    faults.kill_unit(lambda unit: "door" in unit),
    Expected(incidents=0, record=restart_pattern("key check|keys|gateway")),
)
NOISE = OutageDrill(
    "client errors before a kill",
    "a wrong key, a wrong path, a wrong model and broken JSON; then SIGKILL to rank 1",
    faults.noise_before_kill,
    Expected(away=BEYOND, cause=KILLED),
)
BODY = OutageDrill("body of 80 MB", "a request of 80 MB, with its length and in chunks", faults.large_body, UNTOUCHED)
CROWD = OutageDrill("200 clients at once", "200 requests at once for 8 places", faults.send_crowd, UNTOUCHED)
SLOW_HEADERS = OutageDrill(
    "slow headers", "100 connections that send a byte of their headers each second", faults.slow_headers, UNTOUCHED
)
FABRIC_20 = OutageDrill(
    "fabric link down for 20 s",
    "both functions of the worker's cage are down for 20 s, just after the start",
    spoil_node(WORKER_NODE, cut_fabric, cure=restore_fabric, seconds=20.0),
    Expected(away=15.0, incidents=None, status=STALL, record=STALL),
    limit=150.0,
)
FABRIC_70 = replace(
    FABRIC_20,
    name="fabric link down for 70 s",
    fault="both functions of the worker's cage are down for 70 s, just after the start",
    script=spoil_node(WORKER_NODE, cut_fabric, cure=restore_fabric, seconds=70.0),
)
DOCKER = OutageDrill(
    "dockerd stopped",
    f"dockerd of the worker is stopped for {DOCKER_S:.0f} s, and its containers with it",
    spoil_node(WORKER_NODE, DOCKERS.format("stop"), cure=DOCKERS.format("start"), seconds=DOCKER_S),
    Expected(away=10.0, cause=r"[Dd]ocker.*not running", refusal="[Dd]ocker", status="[Dd]ocker"),
)
WORKER = OutageDrill(
    "worker rebooted, processes",
    "the worker's node restarts",
    faults.reboot(1),
    Expected(away=15.0, cause=REBOOTED.format(2)),
)
HEAD = OutageDrill(
    "head rebooted, processes",
    "the head's node restarts, supervisor and gateway with it",
    faults.reboot(0),
    Expected(away=15.0, cause=REBOOTED.format(1)),
)
FOUR = OutageDrill(
    "four faults in half an hour",
    f"rank 1 killed, the worker rebooted, rank 0 stopped by SIGSTOP, rank 0 killed; {HOLDS:.0f} s of service between",
    faults.in_turn(
        faults.kill_rank,
        faults.reboot(1),
        faults.freeze_head,
        lambda scene: faults.kill_rank(scene, 0),
        service=HOLDS,
    ),
    Expected(incidents=4),
)
EVENING = OutageDrill(
    "maintenance evening",
    "worker, head and worker are rebooted, with 10 s of service between; then rank 1 is killed",
    faults.in_turn(faults.reboot(1), faults.reboot(0), faults.reboot(1), faults.kill_rank, service=10.0),
    Expected(incidents=4),
)
FULL_HEAD = OutageDrill(
    "disk of the head full",
    "no byte is left in the head's state folder; 8 s later SIGKILL to rank 1",
    spoil_node(HEAD_NODE, harm.fill_state, faults.kill_rank, before=8.0),
    Expected(
        away=BEYOND,
        incidents=None,  # a full disk may cost history
        never=rf"{Expected().never}|rank 0 .*code 137",
        status=r"(?i)disk.*full.*spark-1|spark-1.*disk.*full",
        refusal="(?i)disk",
    ),
)
FULL_WORKER = replace(
    FULL_HEAD,
    name="disk of the worker full",
    fault="no byte is left in the worker's state folder; 8 s later SIGKILL to rank 1",
    script=spoil_node(WORKER_NODE, harm.fill_state, faults.kill_rank, before=8.0),
    expected=replace(FULL_HEAD.expected, status=r"(?i)disk.*full.*spark-2|spark-2.*disk.*full"),
)
UP_UP = OutageDrill(
    "up next to another's up", "a second operator's `up` while the first one's is at work", faults.up_next_to_up,
    idle=True,
)  # fmt: skip
UP_DOWN = OutageDrill(
    "down next to another's up", "a second operator's `down` of what the first one's `up` is starting",
    faults.down_next_to_up, idle=True,
)  # fmt: skip
CHANGE = OutageDrill(
    "up of a change that fails",
    "`up` of the recipe that serves, changed so that its engine dies while it loads",
    faults.change_that_fails,
    Expected(incidents=None, refusal="."),
)
REPLACE = OutageDrill(
    "up --replace",
    "`up next --replace drill`: another deployment on the same ports",
    faults.replace_by_another,
    Expected(incidents=0, refusal="."),
)
OUTAGES = (
    *(
        DrillStage((drill,), runtime="process", changes={"serving": {"memory_fraction": 0.3}}, before=room_for_two)
        for drill in (KILL, KILL_BOTH)
    ),
    *(
        DrillStage((drill,), runtime="process")
        for drill in (FREEZE, SUPERVISOR, CADDY, KEY_CHECK, NOISE, BODY, CROWD, SLOW_HEADERS, FABRIC_20, FABRIC_70)
    ),
    DrillStage((DOCKER,)),
    *(DrillStage((drill,), runtime="process") for drill in (WORKER, HEAD)),
    *(DrillStage((drill,), runtime="process", scale=TENTH) for drill in (FOUR, EVENING)),
    DrillStage((FULL_HEAD,), runtime="process", before=lambda ground: harm.small_state(ground.head, "30m")),
    DrillStage((FULL_WORKER,), runtime="process", before=lambda ground: harm.small_state(ground.worker, "30m")),
    *(DrillStage((drill,), runtime="process") for drill in (UP_UP, UP_DOWN, CHANGE, REPLACE)),
)
