"""vLLM's list of new block numbers is never emptied.

Detects: host memory of the engine core that grows in a straight line under load, with a model without Mamba layers.
Why: the KV cache manager notes each block it hands out, and empties the note only for hybrid models. Full-attention
  models collect one number a block for ever (after PR 35219, before PR 44490).
Evidence: RSS of the engine core over hours without a plateau; the GPU's memory stays level.
Remedy: a vLLM with PR 44490; until then restart on a schedule.
References: https://github.com/vllm-project/vllm/pull/44490; https://github.com/vllm-project/vllm/issues/44175
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LHEL003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "vLLM's scheduler keeps every block number: host memory grows"
CAUSE = "host-memory-leak-undrained-block-ids"
SIGNS = (
    near(
        r"\bRSS[ :=(-].{0,40}(?:grow|increas|climb|rise|leak)|(?:grow|increas|climb|rising|leak).{0,40}[ (/]RSS\b",
        r"no plateau|linear|steadi|unbounded|without bound|\bover (?:a |an )?\d+ ?h|max_tokens|prefix cach",
        sure=LIKELY,
    ),
    line(r"take_new_block_ids|\bnew_block_ids\b.{0,60}(?:grow|drain|leak|unbounded)", LIKELY),
    near(
        r"host (?:memory|RAM) leak|leak\w* host (?:memory|RAM)|CPU memory growth|host memory (?:\w+ )?(?:increases"
        r"|grows)",
        r"prefix cach|engine core process|VLLM::EngineC|vLLM \d|vLLM server|linearly",
        sure=POSSIBLE,
    ),
    line(r"(?:RSS|vLLM).{0,40}内存.{0,20}(?:泄漏|持续增长|不断增长)", LIKELY),
    line(
        r"(?:never|not) (?:drained|freed|cleared|popped)\b.{0,60}(?:block|request)[ _]ids|(?:finished"
        r"|freed|block|request)[ _](?:request |block )?ids\b.{0,40}(?:never|not) (?:drained|freed|cleared"
        r"|popped)|undrained",
        LIKELY,
    ),
)
FIX = (
    (
        "ps -o pid,rss,args -C python3 --sort -rss | head   # on {node}, now and after an hour: is it the engine core "
        "that grows?"
    ),
    "upgrade vLLM to a release with PR 44490 (the block numbers are emptied on every step)",
    "until then: restart {deployment} on a schedule, or before the RSS has eaten the reserve",
)
EXPLAINS = ("uma-exhaustion-host-freeze",)
