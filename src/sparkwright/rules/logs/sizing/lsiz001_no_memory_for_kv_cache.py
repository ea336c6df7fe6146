"""Weights and activations leave no memory for the KV cache.

Detects: engines that say that no block of the KV cache fits, or print an available KV memory at or near zero.
Why: the share of memory that the engine may use is filled by weights, activations and CUDA graphs before the first
  block.
Evidence: the engine's own sentence; an `Available KV cache memory` that is negative or below half a GiB.
Remedy: a larger share while the host keeps its reserve, fewer batched tokens and sequences, or smaller weights per
  node.
References: gb10.md D4; https://github.com/vllm-project/vllm/issues/10439
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LSIZ001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "nothing is left for the KV cache"
CAUSE = "kv-cache-no-memory-left"
SIGNS = (
    line(r"No available memory for the cache blocks", CERTAIN),
    line(r"# GPU blocks: 0\b", CERTAIN),
    line(r"Available KV cache memory: (?P<kv>-[\d.]+) GiB", CERTAIN),
    line(r"Available KV cache memory: (?P<kv>0\.[0-4]\d*|0(?:\.0+)?) GiB", LIKELY),
    near(r"Available KV cache memory: 0\.[0-4]\d* GiB", r"max seq len|KV\s+cache is needed", sure=CERTAIN),
    line(r"not enough GPU memory available to serve even a single token", CERTAIN),
    line(r"Not enough memory\. Please try to increase --mem-fraction-static", CERTAIN),
    line(r"leaving none for the KV cache|weights leave no (?:GPU )?memory for the KV cache", CERTAIN),
    line(r"(?:insufficient|not enough).{0,20}(?:GPU )?memory (?:for|to allocate) (?:the )?(?:KV|k/v) ?cache", LIKELY),
    line(r"No memory (?:is )?left for (?:the )?KV ?cache|KV.?cache.{0,20}[ :=]0 (?:tokens|blocks)\b", LIKELY),
    near(r"available KV cache memory", r"negative|-\d+(?:\.\d+)? GiB", sure=LIKELY, within=2),
    line(r"(?:KV ?cache|gpu.memory.utilization).{0,30}(?:显存不足|内存不足|没有可用)", LIKELY),
    line(
        r"cannot fit ONE worst-case request|num_gpu_blocks must be (?:positive|greater)"
        r"|KV cache manager.{0,60}free memory is not enough",
        LIKELY,
    ),
    line(
        r"(?:nothing|no memory|no room|no space|too little|not enough|hardly any\w*) (?:\w+ )?(?:left "
        r"|remains? |remaining |available )?(?:over )?for (?:the |any )?KV",
        LIKELY,
    ),
    line(
        r"\b(?:left for (?:the )?KV|available for (?:the )?KV|remaining for (?:the )?KV)\W.{0,20}(?:-\d"
        r"|\b0(?:\.0+)? ?G)|KV (?:cache |pool )?memory (?:is )?(?:negative|-\d)",
        LIKELY,
    ),
    line(r"larger than the profiled value -\d|max_total_num_tokens=(?:-\d|0\b)", CERTAIN),
)
FIX = (
    "--gpu-memory-utilization 0.80   # SGLang: --mem-fraction-static; on GB10 not above 0.85",
    "--max-num-batched-tokens 2048 --max-num-seqs 4   # less activation memory",
    "--enforce-eager gives the graphs' memory back, at a price in speed; or split {model} over more nodes",
)
EXPLAINS: tuple[str, ...] = ()
