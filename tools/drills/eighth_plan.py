"""The drills of an eighth trial (issue 32): ten faults that no earlier list has, each with the proof that it took
hold."""

from functools import partial

from drills import eighth_faults as faults
from drills.fourth_faults import SUPERVISOR
from drills.outage import WAITED, Expected
from drills.outage_drill import OutageDrill
from drills.outage_faults import kill_rank
from drills.spoil import HEAD, WORKER, give_restart, spoil_node
from drills.stage import DrillStage
from testbed import harm

HIDDEN = OutageDrill(
    "processes of others hidden",
    "/proc of the head shows nobody another user's processes (hidepid=2) for 20 s, and SIGKILL to rank 0",
    spoil_node(
        HEAD,
        faults.HIDE_OTHERS.format(2),
        partial(kill_rank, number=0),
        cure=faults.HIDE_OTHERS.format(0),
        seconds=20.0,
        before=2.0,
        proof=faults.OTHERS_ARE_HIDDEN,
    ),
    Expected(away=WAITED, incidents=None, cause=r"rank 0 "),
    limit=150.0,
)
LOOPBACK = OutageDrill(
    "loopback of the head down",
    "`ip link set lo down`; up again after 15 s",
    spoil_node(
        HEAD, "ip link set lo down", cure="ip link set lo up", seconds=15.0, proof="ip -br link show lo | grep DOWN"
    ),
    Expected(away=WAITED, incidents=None),
    limit=150.0,
)
NO_NEW = OutageDrill(
    "no new connection of the head",
    "each first packet of a connection from or to the head is lost for 20 s, as with a full table of connections; "
    "what is connected stays so",
    spoil_node(
        HEAD,
        faults.LOSE_FIRST.format("-I"),
        cure=faults.LOSE_FIRST.format("-D"),
        seconds=20.0,
        proof=faults.FIRST_ARE_LOST,
    ),
    Expected(away=WAITED, incidents=None),
    limit=150.0,
)
ODD = OutageDrill(
    "odd time zone and locale",
    "the head's user has the time of Chatham and a locale that is not installed; SIGKILL to the supervisor, then "
    "`restart`",
    spoil_node(
        HEAD,
        faults.ODD_SETTINGS,
        SUPERVISOR,
        give_restart,
        cure=faults.USUAL_SETTINGS,
        before=2.0,
        proof=faults.SETTINGS_ARE_ODD,
    ),
    Expected(away=WAITED, incidents=None),
    limit=150.0,
)
INODES = OutageDrill(
    "no inode for the head's state",
    "the file system of the state folder has room, but no inode more, and SIGKILL to rank 1; inodes again after 30 s",
    spoil_node(
        HEAD,
        faults.NO_INODE,
        kill_rank,
        cure=faults.INODES_AGAIN,
        seconds=30.0,
        before=2.0,
        proof=faults.INODES_ARE_GONE,
    ),
    Expected(away=WAITED, incidents=None, status=r"(?i)inode|room|space|full|written"),
    limit=150.0,
)
LIAR = OutageDrill(
    "python3 of the worker does nothing",
    "somebody's /usr/local/bin/python3 exits with 0 at once, sessions end, SIGKILL to rank 1; away after 30 s",
    spoil_node(
        WORKER,
        faults.LYING_PYTHON,
        kill_rank,
        cure=faults.PYTHON_AGAIN,
        seconds=30.0,
        before=2.0,
        proof=faults.PYTHON_LIES,
    ),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=150.0,
)
PRINTER = OutageDrill(
    "nobody reads what rank 0 prints",
    "what takes it to the log is stopped (SIGSTOP), and the pipe before it holds one page, for 40 s",
    spoil_node(HEAD, faults.STOP_PRINTER, cure=faults.START_PRINTER, seconds=40.0, proof=faults.PRINTER_IS_STOPPED),
    Expected(away=WAITED, incidents=None),
    limit=150.0,
)
LOGIN = OutageDrill(
    "each login at the worker takes 25 s",
    "a slow PAM module, sessions end, SIGKILL to rank 1; quick again after 60 s",
    spoil_node(
        WORKER,
        faults.SLOW_LOGIN,
        kill_rank,
        cure=faults.USUAL_LOGIN,
        seconds=60.0,
        before=2.0,
        proof=faults.LOGINS_ARE_SLOW,
    ),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=150.0,
)
TASKS = OutageDrill(
    "no fork at a login of the worker",
    "limits.d gives the user fewer tasks than run, sessions end, and `restart`; without the limit after it",
    spoil_node(
        WORKER,
        faults.limit_tasks,
        give_restart,
        cure=f"rm -f {faults.LIMITS}",
        seconds=5.0,
        before=2.0,
        proof=faults.NO_FORK,
    ),
    Expected(away=WAITED, incidents=None),
    limit=150.0,
)
DISK = OutageDrill(
    "disk of the head's state unmounted",
    "the state folder is a link to a disk that is unmounted for 30 s, and SIGKILL to rank 1",
    spoil_node(
        HEAD,
        faults.UNMOUNT,
        kill_rank,
        cure=faults.MOUNT,
        seconds=30.0,
        before=2.0,
        proof=faults.UNMOUNTED,
    ),
    Expected(away=WAITED, incidents=None),
    limit=150.0,
)
EIGHTH = (
    DrillStage((HIDDEN, LOOPBACK, NO_NEW), runtime="process"),
    DrillStage((LIAR, LOGIN, PRINTER), runtime="process"),
    DrillStage((TASKS, ODD), runtime="process"),
    DrillStage((INODES,), runtime="process", before=lambda ground: harm.small_state(ground.head)),
    DrillStage((DISK,), runtime="process", before=faults.link_state),
)
