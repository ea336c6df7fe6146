"""The engine does not know one of the environment variables.

Detects: vLLM's warning about a VLLM_ variable that this build does not read.
Why: the variable was renamed, belongs to a fork or is mistyped; the engine goes on without it, often on a slower
  path.
Evidence: The warning.
Remedy: Take it out, or use the build that reads it.
References: field guide E 65; vllm/envs.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line

CODE = "LCLI010"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the engine does not know one of the environment variables"
CAUSE = "env-variable-unknown-to-engine"
SIGNS = (
    line(
        r"unknown vLLM environment variable(?: detected)?: (?P<variable>\w*(?:B12X|DSV4|MOE|NVFP4|FP4|MLA"
        r"|GEMM|BACKEND|EXECUTE)\w*)",
        POSSIBLE,
    ),
    line(r"unknown vLLM environment variable(?: detected)?: (?P<variable>\w+)", HINT),
    line(
        r"(?:VLLM|SGLANG|SGL|TRTLLM)_\w+ .{0,60}(?:is ignored|has no effect|is not read|doesn't work in"
        r"|does not work in|is unknown)",
        LIKELY,
    ),
)
FIX = (
    "docker exec <container> python3 -c 'from vllm import envs; print(\"{variable}\" in envs.environment_variables)'",
    "take {variable} out of the recipe, or use an image whose build reads it",
)
EXPLAINS = ()
