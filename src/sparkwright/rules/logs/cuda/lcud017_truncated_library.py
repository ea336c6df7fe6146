"""A library file is truncated.

Detects: The loader that finds a library too short or without an ELF header.
Why: a full disk or an interrupted update left a part of the file; containers mount the host's driver libraries and
  see the same.
Evidence: The loader's line.
Remedy: Install the package again that brings the file.
References: field guide E 29
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCUD017"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a library file is truncated"
CAUSE = "host-library-truncated"
SIGNS = (
    line(r"(?P<lib>lib\S+\.so\S*): file too short", CERTAIN),
    line(r"(?P<lib>lib\S+\.so\S*): invalid ELF header", LIKELY),
    line(r"error while loading shared libraries: (?P<lib>lib\S+?): (?:ELF load command|object file has no)", LIKELY),
)
FIX = (
    "on {node}: ls -l $(ldconfig -p | awk '/{lib}/ {{print $NF}}'); df -h /",
    (
        'sudo apt-get install --reinstall "$(dpkg -S {lib} | head -1 | cut -d: -f1)"   # the driver\'s '
        "libraries: the whole driver set"
    ),
)
EXPLAINS = ()
