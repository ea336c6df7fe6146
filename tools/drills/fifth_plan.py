"""The drills of a fifth trial (issue 32): faults that no earlier list has, with what must be printed."""

from collections.abc import Callable

from drills import fifth_faults as faults
from drills.outage import BEYOND, WAITED, Expected
from drills.outage_drill import OutageDrill
from drills.outage_faults import kill_rank
from drills.outage_plan import room_for_two
from drills.spoil import HEAD, WORKER, cured_by_up, spoil_node
from drills.stage import DrillStage
from testbed import ContainerNode
from testbed.settings import FABRIC_DEVICE


def set_address(word: str) -> "Callable[[ContainerNode], object]":
    """`add` or `del` of a node's first address on the fabric, as NetworkManager takes a connection up again."""
    return lambda node: node.sh(f"ip address {word} {node.spec.fabric}/24 dev {FABRIC_DEVICE}")


FILES = OutageDrill(
    "24 open files for the gateway",
    "Caddy and the key check may open 24 files for 20 s",
    faults.few_files(20.0),
    Expected(away=BEYOND, incidents=None),
    limit=120.0,
)
ADDRESS = OutageDrill(
    "fabric address lost for 5 s",
    "the worker's address on the fabric is deleted, and there again after 5 s",
    spoil_node(WORKER, set_address("del"), cure=set_address("add"), seconds=5.0),
    Expected(away=WAITED, incidents=None),
    limit=150.0,
)
JOURNAL = OutageDrill(
    "journal vacuumed, journald killed",
    "the head's journal is rotated and vacuumed, journald killed and restarted; then SIGKILL to rank 1",
    spoil_node(HEAD, faults.VACUUM, kill_rank, before=2.0),
    Expected(away=BEYOND, cause=r"rank 1 "),
    limit=120.0,
)
HOSTS = OutageDrill(
    "known_hosts of the head emptied",
    "every known_hosts of the user is empty, sessions to the worker end; 25 s later `up`",
    faults.lose_known_hosts,
    Expected(incidents=0, status=r"(?i)spark-2: .*(host key|known)"),
    limit=120.0,
)
TMP = OutageDrill(
    "/tmp of the head cleaned",
    "everything in /tmp and /var/tmp is deleted, then SIGKILL to rank 1",
    spoil_node(HEAD, faults.CLEAN_TMP, kill_rank, before=2.0),
    Expected(away=BEYOND, cause=r"rank 1 "),
    limit=120.0,
)
CRON = OutageDrill(
    "every python process of the head killed",
    "SIGKILL to all python processes of the user, as by a cron job: supervisor, key check and rank 0",
    spoil_node(HEAD, faults.KILL_PYTHON),
    Expected(away=WAITED, cause=r"ranks? 0"),
    limit=180.0,
)
RESTARTED = OutageDrill(
    "services restarted by needrestart",
    "`systemctl --user restart` of every service of ours on the head",
    faults.restart_services,
    Expected(away=WAITED, incidents=None),
    limit=180.0,
)
KEY = OutageDrill(
    "ssh key of the supervisor made anew",
    "the key that the supervisor logs in with is another, sessions end, SIGKILL to rank 1; 20 s later `up`",
    faults.replace_login_key,
    Expected(away=WAITED, incidents=None, status=r"(?i)spark-2: .*(permission denied|log in|refused)"),
    limit=180.0,
)
LINGER = OutageDrill(
    "linger of the head's user disabled",
    "`loginctl disable-linger` on the head while `status` logs in again and again; 12 s later `up`",
    cured_by_up(spoil_node(HEAD, "loginctl disable-linger spark"), 12.0),
    Expected(incidents=0, record=r"linger of spark was disabled on spark-1, and is enabled again"),
    limit=180.0,
)
FROZEN = OutageDrill(
    "worker frozen for 20 s",
    "no process of the worker runs for 20 s, its kernel still answers; then all of it goes on",
    spoil_node(WORKER, ContainerNode.freeze, cure=ContainerNode.thaw, seconds=20.0),
    Expected(away=WAITED, incidents=None),
    limit=180.0,
)
PIDS = OutageDrill(
    "no task more for the worker's user",
    "TasksMax of the user's slice is what runs, SIGKILL to rank 1; infinity after 30 s",
    spoil_node(WORKER, faults.FEW_TASKS, kill_rank, cure=faults.TASKS.format("infinity"), seconds=30.0, before=2.0),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=180.0,
)
SECOND_UP = OutageDrill(
    "another recipe's up killed",
    "SIGKILL to `up` of a second deployment while its ranks start; then the same `up` again, and `down`",
    faults.kill_second_up,
    Expected(incidents=0),
    limit=120.0,
)
DOCKER = OutageDrill(
    "docker command gone for 10 s",
    "the worker's docker command is moved away as by an upgrade, and SIGKILL to rank 1; back after 10 s",
    faults.no_docker_client(10.0),
    Expected(away=WAITED, incidents=1, cause=r"rank 1 "),
    limit=180.0,
)
FIFTH = (
    DrillStage((FILES, ADDRESS, JOURNAL), runtime="process"),
    DrillStage((HOSTS, TMP, CRON), runtime="process"),
    DrillStage((RESTARTED, KEY, LINGER), runtime="process"),
    DrillStage((FROZEN, PIDS), runtime="process"),
    DrillStage((DOCKER,)),
    DrillStage((SECOND_UP,), runtime="process", changes={"serving": {"memory_fraction": 0.3}}, before=room_for_two),
)
