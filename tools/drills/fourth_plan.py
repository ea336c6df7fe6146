"""The drills of a fourth trial (issue 32): faults that no earlier list has, with what must be printed."""

from drills import fourth_faults as faults
from drills.outage import BEYOND, WAITED, Expected
from drills.outage_drill import OutageDrill
from drills.outage_faults import kill_rank
from drills.spoil import HEAD, WORKER, spoil_node
from drills.stage import DrillStage

CERTIFICATE = OutageDrill(
    "certificates of the gateway garbled",
    "random bytes in every certificate of the gateway, and SIGKILL to Caddy",
    spoil_node(HEAD, faults.GARBLE, faults.CADDY),
    Expected(away=15.0, incidents=None, record=r"certificate of .* was damaged"),
)
AUTHORITY = OutageDrill(
    "files of the gateway's CA emptied",
    "every file of the CA is empty, and SIGKILL to Caddy",
    spoil_node(HEAD, faults.EMPTY_CA, faults.CADDY),
    Expected(away=15.0, incidents=None, record=r"CA's certificate or key was damaged"),
)
PORT = OutageDrill(
    "port of the gateway taken",
    "another program listens on the gateway's port for 25 s after SIGKILL to Caddy",
    faults.take_port(25.0),
    Expected(away=BEYOND, cause=r"(?i)port 8443.*(in use|taken|python)|another program"),
    limit=120.0,
)
LOGS = OutageDrill(
    "logs truncated while open",
    "every log of ours is truncated on the worker, then SIGKILL to rank 1",
    spoil_node(WORKER, faults.TRUNCATE_LOGS, kill_rank, before=2.0),
    Expected(away=BEYOND, cause=r"rank 1 "),
)
OLDER = OutageDrill(
    "older backup of the state folder",
    "the head's state folder is overwritten with a copy from before an incident, SIGKILL to the supervisor, to rank 1",
    faults.restore_older_state,
    Expected(away=BEYOND, incidents=None, cause=r"rank 1 "),
    limit=120.0,
)
SETTING = OutageDrill(
    "key check without its setting",
    "gateway.json is deleted, and SIGKILL to the key check; 20 s later `up`",
    faults.lose_gateway_setting,
    Expected(away=WAITED, incidents=None, status=r"(?i)gateway"),
    limit=120.0,
)
LARGE = OutageDrill(
    "only large packets lost",
    "TCP packets above 1,300 bytes do not reach the worker for 40 s; SIGKILL to rank 1 meanwhile",
    spoil_node(WORKER, faults.LOSE_LARGE, kill_rank, cure=faults.KEEP_LARGE, seconds=40.0, before=2.0),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=240.0,
)
SSHD = OutageDrill(
    "ssh configuration of the head changed",
    "another port, AllowUsers and a banner for 30 s; open sessions end",
    spoil_node(HEAD, faults.OTHER_SSHD, cure=faults.USUAL_SSHD, seconds=30.0),
    Expected(incidents=0, status=r"spark-1: "),
)
SESSIONS = OutageDrill(
    "sshd allows one session per connection",
    "MaxSessions 1 on the worker for 60 s, open sessions end; SIGKILL to rank 1 meanwhile",
    spoil_node(WORKER, faults.ONE_SESSION, kill_rank, cure=faults.USUAL_SSHD, seconds=60.0, before=3.0),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=180.0,
)
POLICY = OutageDrill(
    "restart policy set by somebody",
    "`docker update --restart always` for the rank on the worker, then SIGKILL to rank 1",
    spoil_node(WORKER, faults.RESTARTED_BY_DOCKER, kill_rank, before=2.0),
    Expected(away=BEYOND, cause=r"rank 1 "),
    limit=180.0,
)
PROGRAM = OutageDrill(
    "files of the program emptied",
    "the supervisor's program on the head is truncated to nothing, then SIGKILL to rank 1",
    spoil_node(HEAD, faults.EMPTY_PROGRAM, kill_rank, before=2.0),
    Expected(away=WAITED, incidents=None, cause=r"rank 1 "),
    limit=180.0,
)
PROGRAM_KILL = OutageDrill(
    "files of the program emptied, all of it killed",
    "the same, and SIGKILL to supervisor and key check",
    spoil_node(HEAD, faults.EMPTY_PROGRAM, faults.SUPERVISOR, faults.KEY_CHECK, before=1.0),
    Expected(away=BEYOND, incidents=None, record=r"supervisor"),
)
FOURTH = (
    DrillStage((CERTIFICATE, AUTHORITY, LOGS, PROGRAM_KILL, PROGRAM), runtime="process"),
    DrillStage((PORT, SETTING, OLDER), runtime="process"),
    DrillStage((SSHD, SESSIONS, LARGE), runtime="process"),
    DrillStage((POLICY,)),
)
