"""The drills of the trial's faults (issue 32), with what each may cost and what must be printed."""

from drills import trial_faults as faults
from drills.outage import BEYOND, Expected
from drills.outage_drill import OutageDrill
from drills.outage_faults import kill_rank
from drills.spoil import HEAD, SESSIONS, WORKER, spoil_node
from drills.stage import DrillStage
from testbed import ContainerNode
from testbed.settings import FABRIC_B_DEVICE, FABRIC_DEVICE

STOP_SSHD = f"systemctl stop ssh.socket ssh 2>/dev/null || systemctl stop ssh; {SESSIONS}"
"""The supervisor's own way to the worker is another sshd."""
HALF_LOST = "; ".join(
    f"iptables {{0}} INPUT -i {device} -m statistic --mode random --probability 0.5 -j DROP"
    for device in (FABRIC_DEVICE, FABRIC_B_DEVICE)
)
"""Of what comes in over the fabric."""
READ_ONLY_STATE = f"mount --bind {faults.HOME} {faults.HOME} && mount -o remount,ro,bind {faults.HOME}"
"""As after an error of the disk."""


def other_host_key(node: ContainerNode) -> None:
    """The node shows another host key, as after a new installation; open sessions end."""
    node.regenerate_host_key()
    node.sh(SESSIONS)


SUPERVISOR_STOPPED = OutageDrill(
    "supervisor stopped by SIGSTOP",
    "SIGSTOP to the supervisor; nobody continues it",
    faults.stop_supervisor(),
    Expected(incidents=0, record=r"supervisor[^\n]*restarted"),
)
SUPERVISOR_STOPPED_KILL = OutageDrill(
    "supervisor stopped, then a rank killed",
    "SIGSTOP to the supervisor, and SIGKILL to rank 1 at once",
    faults.stop_supervisor(kill_rank),
    Expected(away=15.0, cause=r"rank 1 ", status="rank 1 on spark-2"),
)
SSHD = OutageDrill(
    "sshd of the head dead",
    "sshd of the head is stopped for 30 s, and its sessions end",
    spoil_node(HEAD, STOP_SSHD, cure="systemctl start ssh", seconds=30.0),
    Expected(incidents=0, status=r"(?i)spark-1: .*(refused|closed|reset|no ssh)"),
)
HOST_KEY = OutageDrill(
    "host key of the worker changed",
    "the worker has another host key for 30 s, and its sessions end",
    spoil_node(WORKER, other_host_key, cure=ContainerNode.restore_host_key, seconds=30.0),
    Expected(incidents=0, status="(?i)host key"),
)
CA = OutageDrill(
    "CA deleted, Caddy killed",
    "the gateway's CA is deleted and Caddy killed: it makes another CA; then `up`",
    faults.lose_ca,
    Expected(cause="CA is not the one that clients have", status="CA is not the one that clients have"),
    limit=150.0,
)
STORE = OutageDrill(
    "history overwritten",
    "store.sqlite and its side files are overwritten with random bytes",
    faults.overwrite_store,
    Expected(incidents=0, status="damaged"),
)
BOTH = OutageDrill(
    "both nodes rebooted",
    "both nodes restart at once",
    faults.reboot_both,
    Expected(away=20.0, cause=r"rebooted.*node rebooted while serving"),
    limit=180.0,
)
PACKETS = OutageDrill(
    "half of the fabric's packets lost",
    "50 % of the packets to the worker are dropped for 40 s",
    spoil_node(WORKER, HALF_LOST.format("-I"), cure=HALF_LOST.format("-D"), seconds=40.0),
    Expected(incidents=None),
    limit=150.0,
)
READ_ONLY = OutageDrill(
    "state folder read-only",
    "the head's state folder is read-only; 8 s later SIGKILL to rank 1; writable after 30 s more",
    spoil_node(HEAD, READ_ONLY_STATE, kill_rank, cure=f"umount -l {faults.HOME}", seconds=30.0, before=8.0),
    Expected(
        away=40.0,
        incidents=None,
        status="read-only file system on spark-1",
        refusal="read-only file system on spark-1",
    ),
    limit=180.0,
)
TMP = OutageDrill(
    "/tmp of the head full",
    "no byte is left in /tmp of the head; 3 s later SIGKILL to rank 0",
    spoil_node(HEAD, lambda node: node.fill_disk("/tmp", 0), lambda scene: kill_rank(scene, 0), before=3.0),
    Expected(away=BEYOND, cause=r"rank 0 on spark-1.*(137|SIGKILL)"),
)
DUPLICATE = OutageDrill(
    "address of the worker on the head",
    "the head takes the worker's fabric address for 20 s",
    faults.duplicate_address(20.0),
    Expected(incidents=None),
    limit=150.0,
)
TWICE = OutageDrill(
    "worker rebooted twice",
    "the worker restarts, and again 9 s after it is back",
    faults.reboot_twice(9.0),
    Expected(away=15.0, incidents=None, cause=r"spark-2 (was|has) (been )?rebooted|node rebooted"),
    limit=180.0,
)
EXPOSE = OutageDrill(
    "serving.expose changed",
    "`up` of what serves with `expose: loopback`, then with `expose: all` again",
    faults.change_expose,
    Expected(incidents=None, meant=True),
)
PEOPLE = OutageDrill(
    "two people",
    "a second operator calls `up` of what serves, and `restart`",
    faults.two_people,
    Expected(away=BEYOND, incidents=0, refusal="."),
)
TRIAL = (
    *(
        DrillStage((drill,), runtime="process")
        for drill in (SUPERVISOR_STOPPED, SUPERVISOR_STOPPED_KILL, CA, READ_ONLY)
    ),
    *(DrillStage((drill,), runtime="process") for drill in (BOTH, DUPLICATE, SSHD, HOST_KEY, STORE, PACKETS)),
    DrillStage((TMP,), runtime="process", before=lambda ground: faults.small_tmp(ground.head)),
    *(DrillStage((drill,), runtime="process") for drill in (TWICE, PEOPLE, EXPOSE)),
)
