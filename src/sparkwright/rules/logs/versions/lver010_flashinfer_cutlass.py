"""FlashInfer or FlashAttention does not fit the installed cutlass-dsl.

Detects: A name or an operation that the CUTLASS Python package of this version does not have.
Why: FlashInfer and FlashAttention (CuTe) use the DSL's inner names, which change between its minor releases.
Evidence: The AttributeError, ImportError or TypeError of the module cutlass.
Remedy: Install the nvidia-cutlass-dsl that the kernel package pins.
References: seed 003 (`combinations that failed`); https://github.com/Dao-AILab/flash-attention/pull/2640
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LVER010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "FlashInfer or FlashAttention does not fit the installed cutlass-dsl"
CAUSE = "flashinfer-cutlass-version-mismatch"
SIGNS = (
    line(r"module 'cutlass[\w.]*' has no attribute '(?P<name>\w+)'", 0.85),
    line(r"cannot import name '(?P<name>\w+)' from 'cutlass", 0.85),
    line(r"No module named 'cutlass\.[\w.]+'", LIKELY),
    line(r"Unsupported tcgen05 MMA op kind", CERTAIN),
    near(
        r"cutlass/(?:cute|base_dsl|cutlass_dsl)|flash_attn/cute|flashinfer/cute_dsl",
        r"TypeError: .{0,120}(?:unexpected keyword argument|missing \d required|takes \d)"
        r"|AttributeError: (?:type object|module|') ?\S* .{0,60}has no attribute",
        sure=POSSIBLE,
        within=6,
    ),
    line(
        r"flashinfer.{0,60}\bcutlass.{0,60}version.{0,20}(?:mismatch|skew|incompatib)|\bcutlass"
        r".{0,60}\bflashinfer.{0,60}version.{0,20}(?:mismatch|skew|incompatib)",
        LIKELY,
    ),
    line(r"(?:version mismatch|incompatib|version skew).{0,80}(?:cutlass[-_]dsl|flashinfer.{0,20}\bcutlass)", LIKELY),
    line(r"cutlass[-_]dsl.{0,120}(?:removed|no longer (?:has|available)|lacks|dropped)", POSSIBLE),
    line(r"cutlass[-_]dsl.{0,80}(?:incompatib\w*|too (?:old|new)|breaks|version mismatch)", LIKELY),
)
FIX = (
    "pip list | grep -iE 'flashinfer|flash.?attn|cutlass'",
    "pip show flashinfer-python | grep -i requires   # the cutlass-dsl it wants",
    "pip install nvidia-cutlass-dsl==<that version>   # or use an image in which both match",
)
EXPLAINS = ()
