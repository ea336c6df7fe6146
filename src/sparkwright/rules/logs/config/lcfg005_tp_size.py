"""The model cannot be cut into that many parts.

Detects: A number of attention heads, KV heads, experts or vocabulary rows that the tensor-parallel size does not
  divide.
Why: tensor parallelism gives each rank whole heads; with three or more nodes the number often does not come out even.
Evidence: The engine's line with both numbers.
Remedy: Two or four ranks, or pipeline parallelism for the odd node.
References: vllm/config/model.py; vllm/distributed/utils.py; sglang/srt/distributed/utils.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCFG005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the model cannot be cut into that many parts"
CAUSE = "tp-size-not-divisible"
SIGNS = (
    line(
        r"Total number of (?:attention heads|hidden dimensions?|key/value heads"
        r"|kv heads) \((?P<heads>\d+)\) must be divisible by tensor parallel size \((?P<tp>\d+)\)",
        CERTAIN,
    ),
    line(
        r"must be divisible by (?:the )?(?:tensor[- ]parallel|attn_tp_size|tp_size|\btp\b|world size"
        r"|tensor_parallel_size)",
        LIKELY,
        unless=r"nnodes|dcp|pcp|block_[nk]|_per_partition",
    ),
    line(
        r"(?:heads?|experts?|vocab|kv_heads|num_attention_heads|num_key_value_heads|intermediate_size"
        r"|hidden_size)\b.{0,60}(?:not divisible by|indivisible by|cannot be divided by"
        r"|can't be evenly divided).{0,60}(?:tp|tensor|rank|gpu|parallel|\d)",
        LIKELY,
        unless=r"block_[nk]|group_size|block size|min_thread|_per_partition",
    ),
    line(r"experts=\d+ must be divisible by ep_size=\d+|must be divisible by (?:ep_size|mp_size)", CERTAIN),
    line(r"not divisible by the number of tensor parallel|assert numerator % denominator == 0", LIKELY),
    line(r"AssertionError: \d+ is not divisible by \d+", LIKELY),
    line(r"must (?:evenly )?divide .{0,40}(?:heads|experts)\b", LIKELY),
    line(
        r"requires total_num_(?:kv_)?heads divisible by tp_size|(?:attention|KV|query) heads "
        r".{0,40}divisible by .{0,20}\b(?:tp|tensor)",
        LIKELY,
    ),
    line(
        r"^(?=.*(?:\bTP ?=? ?\d|tensor[- ]parallel|(?:three|five|six|3|5|6) (?:nodes|gpus|sparks"
        r"|ranks)))(?=.*(?:divisib|evenly|odd number|do not split)).*\b(?:heads|experts)\b",
        LIKELY,
        unless=r"block[ _]|group[ _]size",
    ),
    line(
        r"(?:must be|not|isn.t|is not) (?:evenly )?divisible by (?:the )?(?:shard |attention |decode_|moe_"
        r"|attn_|index_|shared-expert )?(?:tp_(?:world_)?size|world_size|TP size|\bTP\b|tp_group|attention TP)",
        0.7,
        unless=r"nnodes|dcp|pcp|block_[nk]|_per_partition|hash_block|quantiz",
    ),
)
FIX = (
    (
        "take a tensor-parallel size that divides {heads} (2 or 4), or --tensor-parallel-size 1 "
        "--pipeline-parallel-size <nodes>"
    ),
    "`sparkwright plan {recipe}` shows which splits fit",
)
EXPLAINS = ("quant-block-not-divisible-by-tp",)
