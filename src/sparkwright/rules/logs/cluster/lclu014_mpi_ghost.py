"""A daemon of an aborted mpirun is in the way.

Detects: `cannot find a corresponding process entry` of Open MPI.
Why: an orted of the last run still lives on a node and answers for a job that is over.
Evidence: mpirun's line.
Remedy: end the own orted on that node, then start again.
References: field guide B6, E50
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LCLU014"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "a daemon of an earlier mpirun still runs"
CAUSE = "mpi-ghost-daemon"
SIGNS = (
    line(r"cannot find a corresponding process entry", LIKELY),
    near(r"\borted\b|\bprted\b", r"ghost|stale|leftover|previous|aborted run|still runs", sure=LIKELY, within=2),
)
FIX = ("on each node: ps -u $USER -o pid,lstart,cmd | grep orted   # end the old one by its pid: kill <pid>",)
EXPLAINS = ()
