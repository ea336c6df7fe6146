"""The drills of a third trial (issue 32): faults that no earlier list has, with what must be printed."""

from drills import third_faults as faults
from drills.outage import BEYOND, WAITED, Expected
from drills.outage_drill import OutageDrill
from drills.outage_faults import kill_rank
from drills.spoil import WORKER, spoil_node
from drills.stage import DrillStage

FILL_SHM = "head -c 64G /dev/zero >/dev/shm/theirs 2>/dev/null || :"
DELETE_LOG = f"find {faults.HOME}/deployments -path '*rank1*' -name 'log*' -type f -delete"
SLOW_LOGIN = "echo 'sleep 6' >/etc/ssh/sshrc"
"""As behind a slow directory of users."""

TALK = OutageDrill(
    "a shell that greets programs",
    "the worker's .bashrc prints a line to every ssh command, then SIGKILL to rank 1",
    faults.talkative_shell,
    Expected(away=BEYOND, cause=r"rank 1 "),
    limit=120.0,
)
PYTHON = OutageDrill(
    "python3 of the head gone for 20 s",
    "python3 is moved away as by an upgrade, and SIGKILL to the supervisor; back after 20 s",
    faults.no_python(20.0),
    Expected(incidents=None, status=r"(?i)supervisor"),
    limit=120.0,
)
SHM = OutageDrill(
    "/dev/shm of the worker full",
    "another program fills /dev/shm, and SIGKILL to rank 1; freed after 20 s",
    spoil_node(WORKER, FILL_SHM, kill_rank, cure="rm -f /dev/shm/theirs", seconds=20.0),
    Expected(away=WAITED, cause=r"rank 1 "),
    limit=180.0,
)
NAMES = OutageDrill(
    "no default route and no resolver",
    "the head has neither for 30 s",
    faults.no_names(30.0),
    Expected(incidents=0),
)
LOG = OutageDrill(
    "log of a rank deleted",
    "the log of rank 1 is deleted while it is written, then SIGKILL to rank 1",
    spoil_node(WORKER, DELETE_LOG, kill_rank, before=2.0),
    Expected(away=BEYOND, cause=r"rank 1 "),
)
REEXEC = OutageDrill(
    "systemd upgraded",
    "daemon-reexec of the system's and the user's manager, and logind restarted, on the head",
    faults.reexecute,
    Expected(incidents=0),
)
GUESSES = OutageDrill(
    "a stranger guesses keys",
    "2,000 requests with keys that nobody has, 20 at a time",
    faults.guess_keys,
    Expected(incidents=0),
    limit=120.0,
)
GARBAGE = OutageDrill(
    "the user's recipe file is garbage",
    "then `restart`",
    faults.garbage_recipe,
    Expected(away=WAITED, incidents=None),
    limit=120.0,
)
SOCKETS = OutageDrill(
    "sockets of the head deleted",
    "a cleaner deletes the sockets of supervisor and gateway; 10 s later `restart`",
    faults.lose_runtime_folder,
    Expected(away=WAITED, incidents=None),
    limit=180.0,
)
SLOW = OutageDrill(
    "worker answers 6 s late",
    "every ssh command on the worker begins 6 s late for 60 s; SIGKILL to rank 1 meanwhile",
    spoil_node(WORKER, SLOW_LOGIN, kill_rank, cure="rm -f /etc/ssh/sshrc", seconds=60.0, before=3.0),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=240.0,
)
GATEWAY = OutageDrill(
    "Caddy and key check killed together",
    "SIGKILL to every program of ours on the head but the supervisor",
    faults.kill_caddy_and_key_check,
    Expected(incidents=None),
)
PRUNE = OutageDrill(
    "docker system prune while it serves",
    "`docker system prune --all --force` on both nodes, then SIGKILL to rank 1",
    faults.prune_images,
    Expected(away=BEYOND, cause=r"rank 1 "),
    limit=180.0,
)
THIRD = (
    DrillStage((TALK, LOG, GARBAGE), runtime="process"),
    DrillStage((NAMES, REEXEC, GUESSES, GATEWAY), runtime="process"),
    *(DrillStage((drill,), runtime="process") for drill in (PYTHON, SHM, SOCKETS, SLOW)),
    DrillStage((PRUNE,)),
)
