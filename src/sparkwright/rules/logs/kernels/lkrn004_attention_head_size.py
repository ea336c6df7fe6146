"""The attention backend lacks the model's head size.

Detects: a refused head size or head dimension.
Why: each backend has kernels for a list of head sizes; Gemma's global layers have 512, MLA 576, and shared memory
  of SM 12.x (99 KiB) rules large ones out of some backends.
Evidence: the backend's reason `head_size not supported` or its own limit.
Remedy: another backend for this model.
References: vLLM v1/attention/backend.py; vLLM issue 40677; FlashInfer pull request 3576
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LKRN004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the attention backend lacks the model's head size"
CAUSE = "attention-backend-unsupported-head-size"
SIGNS = (
    line(r"Selected backend .{0,80}is not valid .{0,160}head_size not supported", 0.85),
    line(
        r"No valid attention backend found.{0,3000}head_size not supported",
        LIKELY,
        unless=r"compute capability not supported",
    ),
    line(r"Invalid head_dim: ?\d+"),
    line(r"Unsupported head[_ ]dim(?:ension)?\w*: ?\d+", LIKELY),
    line(r"forward only supports head dimension at most \d+"),
    line(
        r"headdim not being a multiple of|head[-_ ]dim\w* (?:limit|not divisible|must be)"
        r"|static_asserts? HEAD_DIM",
        LIKELY,
    ),
    line(
        r"head[_ ]?(?:size|dim(?:ension)?) ?\(?\d*\)? (?:is )?not supported",
        LIKELY,
        unless=r"potential backends",
    ),
    line(r"\(head_dim, head_dim_v\)=\(\d+, ?\d+\) is not supported", LIKELY),
    line(r"head_(?:size|dim)[ =:]{1,3}\d{3}\b.{0,80}(?:unsupported|not supported|only supports|exceeds)", LIKELY),
)
FIX = (
    "--attention-backend TRITON_ATTN   # takes any head size",
    "or leave --attention-backend unset; FlashInfer takes 512 on SM 12.x from 0.6.15 on",
)
EXPLAINS = ()
