"""The drills of a second trial (issue 32): faults that no earlier list has, with what must be printed."""

from drills import fresh_faults as faults
from drills.outage import BEYOND, WAITED, Expected
from drills.outage_drill import OutageDrill
from drills.outage_faults import kill_rank
from drills.spoil import HEAD, SESSIONS, WORKER, cured_by_up, spoil_node
from drills.stage import DrillStage
from drills.trial_faults import HOME
from testbed.settings import FABRIC_B_DEVICE, FABRIC_DEVICE

LOGINS = "/home/spark/.ssh/authorized_keys"
NO_LOGIN = f"cp -p {LOGINS} {LOGINS}.kept; sed -i /sparkwright/d {LOGINS}; {SESSIONS}"
NO_FABRIC = "; ".join(
    f"iptables {{0}} INPUT -i {device} -p tcp --syn -j DROP" for device in (FABRIC_DEVICE, FABRIC_B_DEVICE)
)
"""New connections from the fabric are dropped."""
OF_ROOT = f"chown -R root:root {HOME} && chmod -R go-w {HOME}"
"""Somebody's `sudo`: the gateway's programs may not read their folder, so the outage begins before the kill."""

ALL_OF_USER = OutageDrill(
    "all processes of the user killed on the worker",
    "SIGKILL to every process of the user on the worker: rank, guard, log taker, ssh sessions",
    faults.kill_all_of_user,
    Expected(away=BEYOND, cause=r"rank 1 "),
)
USER_ENDED = OutageDrill(
    "user of the head logged off by root",
    "`loginctl terminate-user` on the head: supervisor, gateway and rank 0 end; 20 s later `up`",
    cured_by_up(spoil_node(HEAD, "loginctl terminate-user spark"), 20.0),
    Expected(away=WAITED, incidents=None),
    limit=180.0,
)
LOGIN = OutageDrill(
    "login of the supervisor removed",
    "the supervisor's key is taken out of the worker's authorized_keys, then SIGKILL to rank 1; back after 30 s",
    spoil_node(WORKER, NO_LOGIN, kill_rank, cure=f"mv {LOGINS}.kept {LOGINS}", seconds=30.0, before=3.0),
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
    cured_by_up(faults.break_caddy, 25.0),
    Expected(away=WAITED, incidents=None, status=r"(?i)gateway"),
    limit=180.0,
)
FIREWALL = OutageDrill(
    "firewall on the head",
    "new connections from the fabric to the head are dropped, and SIGKILL to rank 1; allowed again after 30 s",
    spoil_node(HEAD, NO_FABRIC.format("-I"), kill_rank, cure=NO_FABRIC.format("-D"), seconds=30.0),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=240.0,
)
OWNED = OutageDrill(
    "state folder owned by root",
    "the head's state folder belongs to root, then SIGKILL to rank 1; the user's again after 30 s",
    spoil_node(HEAD, OF_ROOT, kill_rank, cure=f"chown -R spark:spark {HOME}", seconds=30.0, before=5.0, early=True),
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
