"""A binary needs a newer C library than the system has.

Detects: The loader that does not find a version of glibc's symbols.
Why: wheels and binaries built on a newer distribution do not start on an older one.
Evidence: The loader's GLIBC line.
Remedy: A container, or the build for this distribution.
References: https://sourceware.org/glibc
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, POSSIBLE, line

CODE = "LVER021"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a binary needs a newer C library than the system has"
CAUSE = "glibc-too-old-for-binary"
SIGNS = (
    line(r"version `GLIBC_(?P<wanted>[\d.]+)' not found", CERTAIN),
    line(r"has no wheels with a matching platform tag", POSSIBLE),
)
FIX = (
    "ldd --version | head -1   # needs {wanted} or newer",
    "use the container image, or a wheel whose manylinux tag is at most this version",
)
EXPLAINS = ()
