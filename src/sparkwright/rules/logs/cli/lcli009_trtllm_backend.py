"""TensorRT-LLM runs with its engine backend, not with PyTorch.

Detects: trtllm-serve or the LLM API in the legacy TensorRT flow, with a model that only the PyTorch flow has.
Why: `--backend tensorrt` (the default until 0.20) builds an engine and knows far fewer architectures; newer models
  are registered for the PyTorch backend only.
Evidence: `Using LLM with TensorRT backend`, or the legacy model map's refusal.
Remedy: Leave --backend out, or name pytorch.
References: https://github.com/NVIDIA/TensorRT-LLM/issues/2845; tensorrt_llm/models/automodel.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LCLI009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "TensorRT-LLM runs with its engine backend, not with PyTorch"
CAUSE = "trtllm-wrong-backend-selected"
SIGNS = (
    line(r"Using LLM with TensorRT backend", LIKELY),
    line(r"given huggingface model architecture (?P<arch>\w+) is not supported in TRT-LLM", LIKELY),
    line(r"Inferred model format _ModelFormatKind\.HF, but failed to load config", LIKELY),
    line(r"Invalid value for '--backend'.{0,80}tensorrt", LIKELY),
    line(
        r"(?:trtllm|tensorrt-llm|trt-llm).{0,120}(?:--backend tensorrt|legacy (?:tensorrt )?(?:engine"
        r"|flow|backend)|wrong backend|tensorrt backend instead)",
        LIKELY,
    ),
    line(r"--backend[= ]tensorrt\b", POSSIBLE),
    line(
        r"rank0\.engine\b.{0,60}(?:not found|No such file|does not exist)|is this a TensorRT engine directory", LIKELY
    ),
    line(r"TLLM_USE_TRT_ENGINE", 0.85),
    line(r"Unrecognized model in \S{0,200}engine", 0.85),
    near(
        r"PyTorch backend|--backend[= ]pytorch",
        r"TRT engine backend|TensorRT (?:engine )?backend",
        sure=LIKELY,
        within=3,
    ),
)
FIX = ("trtllm-serve <model> --backend pytorch   # and no --backend tensorrt anywhere",)
EXPLAINS = ("model-architecture-unsupported",)
