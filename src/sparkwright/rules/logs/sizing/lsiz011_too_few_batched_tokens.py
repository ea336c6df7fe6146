"""`max_num_batched_tokens` is smaller than what must fit into a step.

Detects: vLLM's configuration check of batched tokens against context, sequences or block size.
Why: without chunked prefill a prompt must fit into one step; with it a step must hold at least one token of each
  sequence.
Evidence: both numbers in the line.
Remedy: chunked prefill, or a larger number.
References: vllm/config/scheduler.py of 0.19.0 and 0.33.0
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LSIZ011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "fewer batched tokens than the context or the sequences"
CAUSE = "max-num-batched-tokens-too-small"
SIGNS = (
    line(r"max_num_batched_tokens \(\d+\) is smaller than max_model_len \((?P<needed>\d+)\)", CERTAIN),
    line(r"max_num_batched_tokens \(\d+\) must be greater than or equal to max_num_seqs", CERTAIN),
    line(r"In Mamba cache align mode, block_size .{0,40}must be <= max_num_batched_tokens", CERTAIN),
)
FIX = ("--enable-chunked-prefill   # or --max-num-batched-tokens {needed}",)
EXPLAINS: tuple[str, ...] = ()
