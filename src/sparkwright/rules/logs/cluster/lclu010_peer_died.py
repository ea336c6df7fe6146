"""A process of the group, on this or another node, is gone.

Detects: NCCL connections that the peer closed, workers that died, actors that Ray lost, a store that shut down.
Why: another rank was killed or crashed; this one only sees its socket close. /health may say 200 for a minute more.
  The reason is in that rank's own log or in its node's kernel log: any cause that is found there goes first.
Evidence: `Connection closed by remote peer`, `died unexpectedly`.
Remedy: read the dead rank's log, then restart all ranks together.
References: field guide E102, E112, E114; a recording of vLLM 0.21.0 whose worker was killed
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LCLU010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a rank of the group died"
CAUSE = "peer-rank-died"
SIGNS = (
    # How sparkwright itself tells that a rank of a deployment is not running any more.
    line(r"^rank \d+ on \S+ (?:exited|gone): ExitCode=", POSSIBLE),
    line(r"connection closed by remote peer", POSSIBLE),
    line(r"remote process exited or there was a network error|\bncclRemoteError\b", POSSIBLE),
    near(
        r"connection closed by remote peer",
        r"remote process exited|ncclRemoteError|RuntimeError: cancelled|EngineDeadError",
        sure=0.6,
        within=400,
    ),
    line(r"(?:worker proc|RayWorkerProc|EngineCore|process)\b.{0,40}died unexpectedly", POSSIBLE),
    line(r"scheduler died during initialization|Subprocess .{0,60}crashed with exit code", HINT),
    line(r"ActorDiedError|ActorUnavailableError|actor (?:died|is dead) (?:unexpectedly|because)", POSSIBLE),
    line(
        r"NodeDiedError|(?:node|been|was) (?:mistakenly been )?marked (?:as )?dead|died because its node has died",
        LIKELY,
    ),
    line(
        r"worker unexpectedly exits with a connection error code|A worker died or was killed while executing a task",
        POSSIBLE,
    ),
    line(r"connectFullMesh failed.{0,160}(?:closed by peer|reset by peer)", POSSIBLE),
    line(r"gloo/transport/tcp.{0,120}(?:closed by peer|reset by peer)", POSSIBLE),
    line(r"maybe TCPStore server has shut down|TCPStore server has shut ?down", HINT),
    line(r"recvValue(?:WithTimeout)? failed on SocketImpl", HINT),
    line(r"sendBytes failed on SocketImpl.{0,200}Broken pipe", 0.55, times=3),
    line(r"socket (?:recv|send) failed while polling|NCCL WARN.{0,60}connection reset by peer", HINT),
    near(
        r"\b(?:peer|worker|rank \d|other node|second node|head)\b.{0,40}\b(?:died|was killed|crashed|disappeared)",
        r"/health|other rank|hangs|keeps|still (?:200|up|answers)|no route to host|restart",
        sure=POSSIBLE,
        within=3,
    ),
    line(r"/health.{0,20}(?:200|OK)\b.{0,60}(?:hangs|stuck|never answers|no tokens)", HINT),
    line(r"Worker \w+ pid \d+ died, exit code", POSSIBLE),
    line(r"mpirun noticed that process rank \d+", POSSIBLE),
    line(
        r"SIGQUIT received.{0,120}child (?:process )?failed|PeerFailure|lost communication with a remote daemon", HINT
    ),
)
FIX = (
    "the log of the rank that died, on every node: {logs}",
    "on that node: journalctl -k -b | grep -iE 'oom|killed process|NVRM|Xid' | tail",
    "restart all ranks together: sparkwright down {deployment} && sparkwright up {recipe}",
)
EXPLAINS = ()
