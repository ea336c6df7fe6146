"""Python's development headers are not installed.

Detects: A small C helper of Triton or an extension that cannot include Python.h.
Why: Triton compiles a launcher in C at run time against Python's headers; slim images and bare systems lack them.
Evidence: The compiler's line.
Remedy: Install python3-dev of the interpreter in use, and gcc.
References: https://github.com/triton-lang/triton (python/triton/runtime/build.py)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LCUD005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Python's development headers are not installed"
CAUSE = "python-dev-headers-missing"
SIGNS = (
    line(
        r"Python\.h['\"]?(?:: No such file| file not found| not found)|fatal error: Python\.h"
        r"|cannot (?:find|open) .{0,20}Python\.h",
        CERTAIN,
    ),
    line(r"Could NOT find Python3? .{0,80}(?:Development|INCLUDE_DIRS)", LIKELY),
    line(
        r"(?:gcc|/cc|clang)'.{0,40}(?:main|cuda_utils|__triton_launcher)\.c'.{0,900}returned non-zero exit status",
        POSSIBLE,
    ),
    line(
        r"(?:python3-dev|python-dev)(?:el)?\b.{0,60}(?:not installed|missing|is needed|is required"
        r"|must be installed)",
        LIKELY,
    ),
    line(r"(?:missing|without|install|requires|needs?) (?:the )?(?:python3-dev|python-dev)", LIKELY),
    line(
        r"(?:missing|without|install|requires|needs?) (?:the )?(?:python(?=3\.))?3\.1\d-dev(?:el)?\b"
        r"|python development headers",
        LIKELY,
    ),
)
FIX = (
    "apt-get install -y python3-dev build-essential   # python3.12-dev for python3.12",
    (
        'python3 -c \'import sysconfig, os; p = sysconfig.get_path("include"); print(p, os.path.exists(p + '
        '"/Python.h"))\''
    ),
)
EXPLAINS = ()
