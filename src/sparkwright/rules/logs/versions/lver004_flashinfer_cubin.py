"""flashinfer-python and its kernel packages have different versions.

Detects: FlashInfer's check of the versions of flashinfer-cubin and flashinfer-jit-cache at import.
Why: pip upgraded one of the three packages; the binary kernels fit only the Python package of the same version.
Evidence: FlashInfer's own line with both versions.
Remedy: Install the same version of all three.
References: https://github.com/flashinfer-ai/flashinfer (flashinfer/jit/env.py)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LVER004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "flashinfer-python and its kernel packages have different versions"
CAUSE = "flashinfer-cubin-version-mismatch"
SIGNS = (
    line(
        r"(?P<package>flashinfer[-_](?:cubin"
        r"|jit[-_]cache)) version \(?(?P<found>[\w.+]+)\)? does not match flashinfer version \(?(?P<wanted"
        r">[\w.+]+)",
        CERTAIN,
    ),
    line(r"FLASHINFER_DISABLE_VERSION_CHECK=1 to bypass", LIKELY),
    line(
        r"flashinfer[-_](?:cubin|jit[-_]cache).{0,120}(?:mismatch|not match|differ|out of sync|older than"
        r"|newer than|incompatib)",
        LIKELY,
    ),
    line(r"(?:mismatch|incompatib|different).{0,80}flashinfer[-_](?:cubin|jit[-_]cache)", LIKELY),
    near(
        r"flashinfer[-_](?:cubin|jit[-_]cache)\b",
        r"version (?:mismatch|conflict)|does not match flashinfer",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"flashinfer-python\W{0,3}(?:v?0\.\d+\.\d+\S*).{0,40}flashinfer-(?:cubin|jit-cache)\W{0,3}v?0\.\d+"
        r"|flashinfer-(?:cubin|jit-cache)\b.{0,60}(?:older|newer|different|another|other|mismatch\w*"
        r"|not match\w*)",
        LIKELY,
    ),
)
FIX = (
    "pip list | grep -i flashinfer",
    (
        "pip install --no-deps flashinfer-python=={wanted} flashinfer-cubin=={wanted}   # and "
        "flashinfer-jit-cache=={wanted} where it is installed"
    ),
    "export FLASHINFER_DISABLE_VERSION_CHECK=1   # a stop-gap only",
)
EXPLAINS = ()
