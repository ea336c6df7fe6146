"""Shards of the checkpoint are not there.

Detects: loaders that name a shard or part that does not exist, and leftovers of an unfinished download.
Why: the download or the copy to the second node has not ended, or a split GGUF lacks a part.
Evidence: the missing file's name.
Remedy: finish the download on that node.
References: gb10.md C0 step 3;
  https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/model_loader/weight_utils.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LFIL011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "checkpoint shards are missing"
CAUSE = "checkpoint-shards-missing"
SIGNS = (
    line(r"(no such file|not found|cannot open|missing).{0,200}-\d{5}-of-\d{5}\.(safetensors|gguf|bin)", LIKELY),
    line(r"-\d{5}-of-\d{5}\.(safetensors|gguf|bin).{0,120}(no such file|not found|missing|does not exist)", LIKELY),
    line(r"weight files referenced in index but missing", CERTAIN),
    line(
        r"cannot find any model weights with|no model weights (were )?found|incomplete download detected"
        r"|found \d+ \.incomplete files",
        LIKELY,
    ),
    line(r"failed to load gguf split|invalid split (file|count)|illegal split (file|count)", CERTAIN),
    near(r"\.incomplete\b", r"blobs?|download|shard", sure=POSSIBLE, within=3, unless=r"Removing|Downloading"),
    near(
        r"shards?\b",
        r"missing|not (copied|synced|there|present)|only \d+ of \d+",
        r"the worker|second node|other node|node 2|checkpoint|index\.json",
        sure=LIKELY,
        within=1,
    ),
)
FIX = (
    "find ~/.cache/huggingface -name '*.incomplete'; du -sL THE_SNAPSHOT   # on every node",
    "hf download {model}   # goes on where it stopped; or sparkwright up {recipe}, which fetches what is missing",
)
EXPLAINS = (
    "prequantized-checkpoint-loader-keyerror",
    "checkpoint-missing-vision-weights",
)
