"""The context asked for is longer than the model's own.

Detects: A max_model_len beyond what the model's config allows.
Why: positions beyond max_position_embeddings were never trained, so the engine refuses them unless it is told to
  scale.
Evidence: The engine's line with both numbers.
Remedy: Stay below the limit, or set the model's own RoPE scaling.
References: vllm/config/model.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LCFG009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the context asked for is longer than the model's own"
CAUSE = "max-model-len-above-model-limit"
SIGNS = (
    line(r"User-specified max_model_len \((?P<wanted>\d+)\) is greater than the derived max_model_len", CERTAIN),
    line(r"User-specified context_length \((?P<wanted>\d+)\) is greater than the derived context_length", CERTAIN),
)
FIX = (
    (
        "--max-model-len at most the model's limit (SGLang: --context-length); or the RoPE scaling of the "
        "model card in --hf-overrides"
    ),
)
EXPLAINS = ()
