"""The container runs as a user that has no name in it.

Detects: Python's lookup of the own user that fails.
Why: docker run --user 1234 without an entry in the image's /etc/passwd; torch and other libraries ask for the
  user's name to build the path of a cache.
Evidence: getpwuid and the number.
Remedy: give the name and a home in the environment.
References: https://docs.python.org/3/library/getpass.html; https://docs.docker.com/engine/containers/run/#user
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LIMG024"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the container's user has no name"
CAUSE = "container-user-without-name"
SIGNS = (
    line(r"getpwuid\(\): uid not found", CERTAIN),
    line(r"cannot find name for user ID \d+|whoami: cannot find name", 0.4),
)
FIX = (
    "docker run ... --user 1234:1234 -e USER=engine -e HOME=/cache -v engine-cache:/cache",
    "or mount the host's names: -v /etc/passwd:/etc/passwd:ro",
)
EXPLAINS = ()
