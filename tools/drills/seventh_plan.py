"""The drills of a seventh trial (issue 32): faults that no earlier list has, each with the proof that it took hold."""

from drills import seventh_faults as faults
from drills.fourth_faults import CADDY, SUPERVISOR
from drills.outage import BEYOND, WAITED, Expected
from drills.outage_drill import OutageDrill
from drills.outage_faults import kill_rank
from drills.spoil import HEAD, WORKER, cured_by_up, spoil_node
from drills.stage import DrillStage
from drills.trial_faults import HOME
from testbed.settings import FABRIC_B_DEVICE, FABRIC_DEVICE

LINKS = f"{FABRIC_DEVICE} {FABRIC_B_DEVICE}"

PORTS = OutageDrill(
    "no local port left on the head",
    "all 256 ports that programs of the head may connect from are bound by one program for 20 s",
    faults.exhaust_ports(20.0),
    Expected(away=WAITED, incidents=None),
    limit=120.0,
)
QUOTA = OutageDrill(
    "3 % of a core for Caddy and key check",
    "a quota of 3 ms in 100 for both together, for 30 s",
    faults.starve_gateway(30.0),
    Expected(away=WAITED, incidents=None, status=r"(?i)gateway|clients"),
    limit=120.0,
)
NO_CADDY = OutageDrill(
    "Caddy's program deleted",
    "the program is deleted while it runs, and SIGKILL to Caddy; it is there again after 25 s",
    faults.delete_caddy(25.0),
    Expected(away=WAITED, incidents=None, status=r"(?i)gateway"),
    limit=120.0,
)
CONNECTIONS = OutageDrill(
    "10,000 connections of one client",
    "it says nothing on any, and opens another for each that is closed, for 30 s",
    faults.open_connections(30.0),
    Expected(away=BEYOND, incidents=None),
    limit=120.0,
)
BUS = OutageDrill(
    "D-Bus of the head restarted",
    "the system's and the user's, then SIGKILL to Caddy",
    spoil_node(HEAD, faults.RESTART_BUS, CADDY, before=2.0, seconds=3.0, proof=faults.BUS_WAS_RESTARTED),
    Expected(away=BEYOND, incidents=None),
    limit=120.0,
)
HIDDEN = OutageDrill(
    "keys of the gateway unreadable",
    "every file of the gateway's CA has mode 000, and SIGKILL to Caddy; 20 s later `up`",
    cured_by_up(spoil_node(HEAD, faults.HIDE_KEYS, CADDY, proof=faults.HIDDEN), 20.0),
    Expected(away=WAITED, incidents=None, status=r"(?i)gateway|certificate|CA"),
    limit=150.0,
)
STOPPED = OutageDrill(
    "gateway stopped by hand",
    "`systemctl --user stop` of Caddy and key check; 25 s later `up`",
    cured_by_up(spoil_node(HEAD, faults.stop_gateway, proof=faults.STILL_STOPPED), 25.0),
    Expected(away=WAITED, incidents=None, status=r"(?i)gateway"),
    limit=150.0,
)
RUN = OutageDrill(
    "/run of the worker full",
    "no byte is left in /run, /run/lock and the user's, SIGKILL to rank 1; room again after 30 s",
    spoil_node(
        WORKER, faults.FULL_RUN, kill_rank, cure=faults.ROOM_IN_RUN, seconds=30.0, before=2.0, proof=faults.RUN_IS_FULL
    ),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=180.0,
)
TOOL = OutageDrill(
    "nvidia-smi of the worker hangs",
    "it never returns, as with a driver that is stuck; SIGKILL to rank 1; it works again after 40 s",
    spoil_node(
        WORKER, faults.HUNG_TOOL, kill_rank, cure=faults.TOOL_AGAIN, seconds=40.0, before=5.0, proof=faults.TOOL_HANGS
    ),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=180.0,
)
MEMORY = OutageDrill(
    "no memory more for the supervisor",
    "its limit is what it has (RLIMIT_AS), SIGKILL to rank 1; unlimited after 30 s",
    faults.no_memory(30.0),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=180.0,
)
DELETED = OutageDrill(
    "state folder of the worker deleted",
    "`rm -rf` of all that is ours on the worker, then SIGKILL to rank 1",
    spoil_node(WORKER, f"rm -rf {HOME}", kill_rank, before=2.0, proof=f"ls {HOME} 2>&1 | head -n 3"),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=180.0,
)
ONE_WAY = OutageDrill(
    "one direction of the fabric lost",
    "nothing that the worker sends over the fabric arrives for 25 s; what is sent to it does",
    spoil_node(
        WORKER,
        faults.ONE_WAY.format(devices=LINKS, word="-I"),
        cure=faults.ONE_WAY.format(devices=LINKS, word="-D"),
        seconds=25.0,
        proof=faults.DROPPED,
    ),
    Expected(away=WAITED, incidents=None, status=r"(?i)no token|nothing|fabric"),
    limit=180.0,
)
EMPTY = OutageDrill(
    "engine answers 200 with nothing",
    "every request to the engine is answered 200 with an empty body for 30 s, by a program in its place",
    faults.silence_engine(30.0),
    Expected(away=WAITED, incidents=None, status=r"(?i)canary|nothing|empty|no token|answer"),
    limit=180.0,
)
DISK = OutageDrill(
    "slow disk of the head",
    "each fsync of supervisor and key check takes 2 s longer for 40 s (strace); SIGKILL to rank 1",
    faults.slow_disk(40.0),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=180.0,
)
UNITS = OutageDrill(
    "units of the head deleted",
    "every unit file of ours is deleted, daemon-reload, SIGKILL to supervisor and Caddy; 20 s later `up`",
    cured_by_up(spoil_node(HEAD, faults.delete_units, SUPERVISOR, CADDY, proof=faults.NO_FILES), 20.0),
    Expected(away=WAITED, incidents=None, status=r"(?i)supervisor|gateway"),
    limit=180.0,
)
SEVENTH = (
    DrillStage((QUOTA, NO_CADDY, CONNECTIONS, BUS, PORTS), runtime="process"),
    DrillStage((HIDDEN, STOPPED, DELETED), runtime="process"),
    DrillStage((EMPTY, ONE_WAY), runtime="process"),
    DrillStage((DISK, UNITS), runtime="process"),
    DrillStage((RUN, TOOL, MEMORY), runtime="process"),
)
