"""One request of the maximum context needs more KV cache than there is.

Detects: the start-up check that compares the maximum context with the KV cache, in vLLM's three wordings, SGLang's
  and TensorRT-LLM's.
Why: without `--max-model-len` the model's own maximum counts, often 128K and more; its KV cache is larger than what
  the weights leave.
Evidence: both figures, and in most versions the longest context that would fit.
Remedy: the context that fits, an 8-bit KV cache, or more memory for the KV cache.
References: gb10.md E73, D4; https://docs.vllm.ai/en/latest/configuration/conserving_memory/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LSIZ002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the context does not fit into the KV cache"
CAUSE = "max-model-len-exceeds-kv-cache"
SIGNS = (
    line(r"To serve at least one request with the models?'s max seq len", CERTAIN),
    line(r"is larger than the maximum number of tokens that can be stored in KV cache", CERTAIN),
    line(r"estimated maximum model length is (?P<fits>\d+)", CERTAIN),
    line(r"KV pool holds (?P<fits>\d+) tokens, fewer than --context-length", LIKELY),
    line(r"Impossible to fit (?:in )?at least one sequence in kv ?Cache", CERTAIN),
    line(r"max_?seq_?len.{0,40}(?:exceeds|larger than|greater than).{0,40}(?:KV|k/v) ?cache", LIKELY),
    near(
        r"max seq len|max[_-](?:seq|model)[_-]len|maximum context|context length",
        r"needs? [\d.]+ GiB of KV|KV (?:cache )?floor|only [\d.]+ GiB fits",
        sure=LIKELY,
    ),
    line(r"\d GiB KV floor", LIKELY),
    line(r"needs? [\d.]+ GiB of KV, only [\d.]+ GiB fits", LIKELY),
    near(
        r"max[ _-](?:model|seq)[ _-]?len|context[ _-]length|maximum context",
        r"(?:exceeds|more than|larger than|does(?: not|n't) fit).{0,40}KV.?cache|KV.?cache.{0,40}(?:too small"
        r"|only holds|fits? only|can hold only)",
        sure=POSSIBLE,
        within=2,
    ),
    line(r"failed to allocate buffer for kv cache|context length \d+ exceeds (?:the )?KV pool", LIKELY),
    line(
        r"(?:context|max[-_]model[-_]len|max seq len)\W.{0,40}(?:does not fit|larger than|exceeds"
        r"|more than).{0,40}KV[- ](?:cache|pool)",
        LIKELY,
    ),
    line(
        r"(?:context|max[-_]model[-_]len|tokens)\b.{0,40}(?:needs?|requires?"
        r"|wants) \d+(?:\.\d+)? ?GiB.{0,20}\bKV\b.{0,40}(?:only|but|available)",
        LIKELY,
    ),
    line(
        r"max_?Tokens_?In_?Paged_?Kv_?Cache\b.{0,20}must be large enough"
        r"|must be large enough to process at least 1 sequence",
        CERTAIN,
    ),
)
FIX = (
    "--max-model-len {fits}   # or below it; SGLang: --context-length",
    "--kv-cache-dtype fp8   # half the bytes a token",
    "sparkwright plan {recipe}   # shows weights, KV cache and context against the memory of each node",
)
EXPLAINS: tuple[str, ...] = ()
