"""A container of that name exists.

Detects: docker run that finds its name taken.
Why: the container of the last start was stopped or died and was not removed.
Evidence: the daemon's conflict.
Remedy: look whether it still runs, then remove it.
References: https://docs.docker.com/reference/cli/docker/container/run/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LIMG017"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "container name is already in use"
CAUSE = "container-name-in-use"
SIGNS = (
    line(r"the container name \S+ is already in use", CERTAIN),
    line(r"name \S+ is already in use by container", CERTAIN),
)
FIX = ("docker ps -a --filter name=NAME; docker rm -f NAME   # on the node that says so",)
EXPLAINS = ()
