"""The quantization method does not take this dtype.

Detects: A dtype that the chosen quantization's kernels do not offer.
Why: AWQ and some GPTQ kernels compute in float16 only, while models default to bfloat16.
Evidence: The engine's line.
Remedy: --dtype float16, or the Marlin variant of the method.
References: vllm/config/vllm.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LCFG016"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the quantization method does not take this dtype"
CAUSE = "dtype-unsupported-by-quantization"
SIGNS = (line(r"torch\.(?P<dtype>\w+) is not supported for quantization method (?P<method>[\w-]+)", CERTAIN),)
FIX = ("add --dtype float16, or leave --quantization out so that the engine takes {method}_marlin",)
EXPLAINS = ()
