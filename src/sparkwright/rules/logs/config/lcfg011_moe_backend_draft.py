"""The MoE kernel was forced on a draft that is not quantized.

Detects: A forced MoE kernel that the unquantized MTP or multimodal experts cannot use.
Why: --moe-backend applies to every MoE of the model; marlin takes quantized weights only, while draft heads are often
  BF16.
Evidence: The refusal that names draft, MTP or `unquantized`.
Remedy: Name another kernel for the draft, or let the engine choose.
References: field guide E 77
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LCFG011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the MoE kernel was forced on a draft that is not quantized"
CAUSE = "moe-backend-rejected-by-unquantized-draft"
SIGNS = (
    line(
        r"^(?=.*(?:not support|reject|crash|fail|cannot|error))(?=.*\b(?:draft|mtp"
        r"|unquantized)).*moe[-_]backend\W{1,3}marlin",
        LIKELY,
    ),
)
FIX = (
    '--speculative-config \'{{"method":"mtp","num_speculative_tokens":2,"moe_backend":"triton"}}\'',
    "or leave out --moe-backend",
)
EXPLAINS = ()
