"""The compile cache cannot be saved.

Detects: a start that ends while the compiled graph is saved.
Why: AOTAutograd's cache pickles what it compiled; a Triton launcher function made at run time cannot be pickled.
Evidence: the PicklingError with `launcher`, or with frames of the compile cache.
Remedy: start without this cache.
References: field guide E83
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LGRA005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the compile cache cannot be saved"
CAUSE = "torch-compile-cache-pickling-error"
SIGNS = (
    line(
        r"Can'?t pickle .{0,40}launcher",
        unless=r"unable to serialize|bypass",
    ),
    near(
        r"Can'?t pickle|cannot pickle|\bPicklingError",
        r"aot_?autograd|torch_compile_cache|inductor|standalone_compile|compiler_interface|autograd_cache",
        sure=LIKELY,
        within=25,
    ),
    line(r"\bPicklingError", POSSIBLE),
    line(r"launcher.{0,40}cannot be pickled|cannot pickle.{0,40}launcher", LIKELY),
    line(r"BypassAOTAutogradCache.{0,80}pickle", LIKELY),
    line(r"TORCHINDUCTOR_AUTOGRAD_CACHE ?= ?0|VLLM_DISABLE_COMPILE_CACHE ?= ?1", HINT),
    line(
        r"launcher.{0,60}(?:AOTAutograd|pickle)|(?:AOTAutograd|pickle).{0,60}launcher",
        LIKELY,
        unless=r"unable to serialize|bypass",
    ),
)
FIX = ("export VLLM_DISABLE_COMPILE_CACHE=1   # or TORCHINDUCTOR_AUTOGRAD_CACHE=0; compilation and graphs stay on",)
EXPLAINS = ()
