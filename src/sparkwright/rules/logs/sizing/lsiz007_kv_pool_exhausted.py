"""Running requests need more KV cache than the pool has.

Detects: preempted or retracted requests, failed decode slots, blocks that run out while serving.
Why: the sum of prompts and answers in flight is larger than the pool: too many sequences at once, or a few very
  long ones. The engine recomputes or aborts.
Evidence: the engine's own line; the count of preemptions.
Remedy: fewer sequences at once, an 8-bit KV cache, a larger pool.
References: gb10.md F2, F3; https://docs.vllm.ai/en/latest/configuration/optimization/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LSIZ007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the KV cache is full while requests run"
CAUSE = "kv-pool-exhausted-at-runtime"
SIGNS = (
    line(r"preempted by PreemptionMode\.\w+ mode because there is not enough KV cache space", CERTAIN),
    line(r"KV cache pool is full\. Retract requests", CERTAIN),
    line(r"(?:Prefill|Decode) out of memory(?:\. Try to lower your batch size| happened)", CERTAIN),
    line(r"Waiting: [1-9]\d* reqs, GPU KV cache usage: (?:9[89]|100)\.\d", POSSIBLE),
    line(r"token usage: (?:0\.9[89]|1\.00), .{0,60}#queue-req: [1-9]", POSSIBLE),
    line(r"alloc_req_slots runs out of memory", CERTAIN),
    line(r"Out of memory even after retracting all other requests|retract_decode: aborted last request", CERTAIN),
    line(r"KV cache is full! Bug in memory estimation|Beam search group aborted: KV cache pool is full", CERTAIN),
    line(r"Can't allocate new blocks(?: for .{0,40})?\. No free blocks left", CERTAIN),
    line(r"ValueError: No free blocks available|Cannot get \d+ free blocks from the pool", LIKELY),
    line(r"failed to find (?:a )?(?:free space in the KV cache|memory slot for batch|KV cache slot)", LIKELY),
    line(
        r"llama_decode.{0,20}returned 1\b|Input is too large for the KV cache"
        r"|context full and context shift is disabled",
        POSSIBLE,
    ),
    line(r"Requests? .{0,60}(?:preempted|retracted).{0,80}(?:KV|cache)", LIKELY),
    near(
        r"num_preemptions_total [1-9]|num_retracted_(?:reqs|requests_total) [1-9]",
        r"kv_cache_usage_perc|token_usage",
        sure=POSSIBLE,
        within=400,
    ),
    near(
        r"cache usage: (?:9\d|100)|KV pool|KV cache pool|KV cache (?:is |was )?full",
        r"preempt(?:ed|ion)|retract(?:ed|ion)|evict(?:ed|ing) running",
        sure=LIKELY,
        within=3,
    ),
    line(r"KV ?cache.{0,20}(?:耗尽|用尽|已满|不足).{0,40}(?:抢占|请求)", LIKELY),
    line(
        r"KV cache (?:is )?full\b|(?:no|out of) (?:free |more )?KV (?:cache )?(?:blocks|pages|slots)"
        r"|failed to allocate \d+ (?:KV )?(?:blocks|pages)",
        0.65,
        unless=r"No available memory",
    ),
)
FIX = (
    "--max-num-seqs 4   # SGLang: --max-running-requests 4",
    "--kv-cache-dtype fp8   # twice the tokens",
    "sparkwright plan {recipe}   # how many sequences of this context fit",
)
EXPLAINS: tuple[str, ...] = ()
