"""This model cannot be split by layers.

Detects: A model class without pipeline parallelism.
Why: the class must hand over its state between stages; several multimodal and new models cannot.
Evidence: The engine's line.
Remedy: Tensor parallelism instead.
References: vllm/config/model.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCFG014"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "this model cannot be split by layers"
CAUSE = "pipeline-parallel-unsupported-by-model"
SIGNS = (
    line(r"Pipeline parallelism is not supported for this model", CERTAIN),
    line(r"pipeline parallel\w* is (?:currently )?not supported (?:with|for|by)", LIKELY),
)
FIX = ("--pipeline-parallel-size 1 --tensor-parallel-size <nodes>",)
EXPLAINS = ()
