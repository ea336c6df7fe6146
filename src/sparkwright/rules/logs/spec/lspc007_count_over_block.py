"""More draft tokens than the drafter's block.

Detects: a count of draft tokens that the drafter was not trained for.
Why: block drafters (DSpark, DFlash) predict a fixed block. More tokens than that make every position worse, so
  acceptance falls to a few percent; some versions refuse instead, also smaller counts. A model card may name a
  larger number than the checkpoint's config.
Evidence: the refusal with both numbers, or acceptance that is 0.000 in the last positions and low in all.
Remedy: the block size of the checkpoint, or fewer.
References: vLLM config/speculative.py 0.21 to 0.33; vLLM pull request 41834, issue 50012; field guide E64
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LSPC007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "more draft tokens than the drafter's block"
CAUSE = "spec-token-count-exceeds-drafter-block"
SIGNS = (
    line(r"num_speculative_tokens:? ?\d+ must be divisible by n_predict"),
    line(
        r"num_speculative_tokens.{0,120}(?:dspark_block_size|trained block_size)"
        r"|requires num_speculative_tokens to (?:match|be)"
    ),
    line(r"legal\W{1,3}num_speculative_tokens|ring capacity must divide", LIKELY),
    line(r"Per-position acceptance rate: 0\.[0-2]\d\d, (?:0\.\d{3}, ){2,6}0\.000, 0\.000\b", POSSIBLE),
    line(r"(?:0\.\d{3}, ){3,7}0\.000, 0\.000, Avg Draft acceptance rate: \d\.\d%", POSSIBLE),
    line(r"(?:exceeds?|more than|larger than|beyond|over) the draft(?:er)?\W{0,2}s? block", LIKELY),
    near(
        r"block_size|dspark_block|block of \d|trained (?:for|on|with) \d|drafter'?s block",
        r"num_speculative_tokens|speculative tokens|draft tokens",
        r"acceptance|exceed|larger|more than|collapse|reject|beyond|must",
        sure=LIKELY,
        within=1,
    ),
)
FIX = (
    (
        '"num_speculative_tokens": 5 in --speculative-config for DeepSeek-V4-Flash-0731 (dspark_block_size 5 in its '
        "config.json)"
    ),
    "grep -i block_size <model>/config.json   # the drafter's block",
    "sources differ: some builds refuse other counts, some serve fewer well; more than the block was bad in all",
)
EXPLAINS = ("spec-decode-low-acceptance-broken-drafter",)
