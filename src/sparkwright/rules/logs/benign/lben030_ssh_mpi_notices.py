"""Notices of ssh and mpirun.

Detects: new host keys, missing displays, library paths of Open MPI that are optional.
Why: they come once per host or without an X server; the job runs.
Evidence: the notice.
Remedy: none.
References: gb10.md C4; https://docs.open-mpi.org/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN030"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "notices of ssh and mpirun"
CAUSE = "benign-ssh-mpi-notices"
SIGNS = (
    line(r"permanently added .{0,80}to the list of known hosts", HINT),
    line(r"authorization required, but no authorization protocol specified|no protocol specified$", HINT),
    line(r"no prefix path was specified|btl_tcp_if_include.{0,40}deprecated", HINT),
)
FIX = ()
EXPLAINS = ()
