"""This FlashInfer release crashes while graphs are captured.

Detects: A segmentation fault of FlashInfer 0.6.16 during CUDA graph capture, or a top-k size without a bucket for
  this chip.
Why: the release lacks the SM120 bucket for 192 experts; 0.6.15.post1 works. Two reports.
Evidence: The note with version and bucket.
Remedy: Pin flashinfer 0.6.15.post1.
References: field guide E 87; https://github.com/flashinfer-ai/flashinfer/issues/4309
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LVER023"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "this FlashInfer release crashes while graphs are captured"
CAUSE = "flashinfer-release-breaks-graph-capture"
SIGNS = (
    line(r"flashinfer.{0,40}0\.6\.16\b.{0,80}(?:segfault|segmentation|crash)", LIKELY),
    line(r"topk ?= ?192\b.{0,80}(?:bucket|SM120|unsupported)", LIKELY),
)
FIX = (("pip install flashinfer-python==0.6.15.post1 flashinfer-cubin==0.6.15.post1   # in an image of your own"),)
EXPLAINS = ()
