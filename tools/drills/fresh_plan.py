"""The drills of a second trial (issue 32): faults that no earlier list has, with what must be printed."""

from drills import fresh_faults as faults
from drills.outage import Expected
from drills.outage_drill import OutageDrill
from drills.stage import DrillStage

BEYOND = 5.0
"""Seconds that all but the engine's own start may take."""
WAITED = 35.0
"""Seconds until what was given back is noticed: the longest back-off of a first fault, and BEYOND."""

ALL_OF_USER = OutageDrill(
    "all processes of the user killed on the worker",
    "SIGKILL to every process of the user on the worker: rank, guard, log taker, ssh sessions",
    faults.kill_all_of_user,
    Expected(away=BEYOND, cause=r"rank 1 "),
)
USER_ENDED = OutageDrill(
    "user of the head logged off by root",
    "`loginctl terminate-user` on the head: supervisor, gateway and rank 0 end; 20 s later `up`",
    faults.end_user,
    Expected(away=WAITED, incidents=None),
    limit=180.0,
)
LOGIN = OutageDrill(
    "login of the supervisor removed",
    "the supervisor's key is taken out of the worker's authorized_keys, then SIGKILL to rank 1; back after 30 s",
    faults.remove_login(30.0),
    Expected(away=WAITED, incidents=None, status=r"(?i)spark-2: .*(permission denied|log in|refused)"),
    limit=180.0,
)
PROCESSES = OutageDrill(
    "no process more on the head",
    "the supervisor may start no process, then SIGKILL to rank 1; it may again after 30 s",
    faults.no_processes(30.0),
    Expected(away=WAITED, incidents=None, refusal="."),
    limit=180.0,
)
NO_KEYS = OutageDrill(
    "list of keys emptied",
    "the gateway's keys.json is an empty file; 15 s later `up`",
    faults.empty_keys,
    Expected(incidents=None, status=r"(?i)key"),
    limit=120.0,
)
CADDY = OutageDrill(
    "Caddy's configuration broken",
    "garbage in caddy.json and SIGKILL to Caddy; 25 s later `up`",
    faults.break_caddy,
    Expected(away=WAITED, incidents=None, status=r"(?i)gateway"),
    limit=180.0,
)
FIREWALL = OutageDrill(
    "firewall on the head",
    "new connections from the fabric to the head are dropped, and SIGKILL to rank 1; allowed again after 30 s",
    faults.firewall(30.0),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=240.0,
)
OWNED = OutageDrill(
    "state folder owned by root",
    "the head's state folder belongs to root, then SIGKILL to rank 1; the user's again after 30 s",
    faults.root_owns_state(30.0),
    Expected(away=WAITED, incidents=None, status=r"(?i)permission denied|cannot be written|owned by root"),
    limit=180.0,
)
LAPTOP = OutageDrill(
    "laptop asleep in a swap",
    "the machine that runs `up` of a changed recipe sleeps once the old ranks are gone",
    faults.sleeping_laptop,
    Expected(away=120.0, incidents=None, refusal="."),
    limit=240.0,
)
HANG_UP = OutageDrill(
    "clients that hang up",
    "four waves of 50 clients that reset their connection in the middle of a stream",
    faults.hang_up(50, 4),
    Expected(incidents=0),
)
RENAMED = OutageDrill(
    "head renamed",
    "the head gets another hostname, and SIGKILL to supervisor and Caddy; the old name is back after 15 s",
    faults.rename_head,
    Expected(incidents=None),
    limit=120.0,
)
FRESH = (
    *(DrillStage((drill,), runtime="process") for drill in (ALL_OF_USER, USER_ENDED, LOGIN, PROCESSES)),
    DrillStage((HANG_UP, NO_KEYS, RENAMED), runtime="process"),
    *(DrillStage((drill,), runtime="process") for drill in (CADDY, FIREWALL, OWNED, LAPTOP)),
)
