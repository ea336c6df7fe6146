"""A hybrid model has fewer state blocks than sequences.

Detects: vLLM's refusal that `max_num_seqs` exceeds the Mamba cache blocks, the older assertion, and SGLang's pool.
Why: each running sequence of a hybrid model (Mamba, GDN) needs one state block. The default of `max_num_seqs` is
  higher than the number that fits.
Evidence: both numbers in the line.
Remedy: at most as many sequences as blocks.
References: https://github.com/vllm-project/vllm/issues/34094; https://github.com/vllm-project/vllm/pull/38632
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LSIZ003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "more sequences than Mamba cache blocks"
CAUSE = "mamba-cache-blocks-below-max-num-seqs"
SIGNS = (
    line(
        r"max_num_seqs \((?P<seqs>\d+)\) exceeds (?:the )?available Mamba cache blocks(?: \((?P<blocks>\d+)\))?",
        CERTAIN,
    ),
    line(r"exceeds (?:the )?available Mamba cache|Mamba cache blocks \(\d+\)\. Each decode sequence", CERTAIN),
    line(r"lower max_num_seqs to at most (?P<blocks>\d+)", LIKELY),
    line(r"Not enough space for mamba (?:cache|ping pong idx), try to increase --mamba", CERTAIN),
    line(r"smallest capture size was \d+\. Disabling cudagraph capture", LIKELY),
    line(r"assert num_cache_lines >= batch", LIKELY),
    line(r"capture sizes? .{0,60}Mamba cache blocks \(\d+ blocks available\)", POSSIBLE),
    near(
        r"max_num_seqs|max-num-seqs|max-running-requests",
        r"mamba.{0,60}(?:block|cache|state|slot)s?\b.{0,60}(?:exceed|not enough|fewer|too (?:few|many)|only \d+"
        r"|run out)|(?:exceed|fewer|not enough).{0,40}mamba",
        sure=LIKELY,
    ),
    line(
        r"(?:mamba[_ ](?:cache|state)|max_mamba_cache_size|linear[- ]attention state"
        r"|SSM state).{0,60}(?:smaller than|too small|below|less than|exceed"
        r"|not enough).{0,60}(?:max_running_requests|max_num_seqs|requests|sequences)|max_(?:num_seqs"
        r"|running_requests)\b.{0,40}(?:exceeds?|larger than|more than).{0,40}[Mm]amba",
        LIKELY,
    ),
)
FIX = (
    "--max-num-seqs {blocks}   # or below it; SGLang: --max-running-requests or --mamba-full-memory-ratio",
    "a larger --gpu-memory-utilization gives more blocks; the field's ceiling on GB10 is 0.85",
)
EXPLAINS: tuple[str, ...] = ()
