"""A multimodal item does not fit into one step.

Detects: vLLM's check of the largest image or video against the batched tokens, and the encoder cache's limit at a
  request.
Why: models whose image tokens attend to one another cannot split an item over steps, so a step must hold the
  largest one.
Evidence: both numbers in the line.
Remedy: more batched tokens than the largest item, or a limit on the item.
References: vllm/v1/core/encoder_cache_manager.py of 0.19.0 and 0.33.0
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LSIZ009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "one image needs more tokens than a step may have"
CAUSE = "mm-item-larger-than-max-batched-tokens"
SIGNS = (
    line(r"max_tokens_per_mm_item \((?P<item>\d+)\) is larger than max_num_batched_tokens", CERTAIN),
    line(r"Chunked MM input (?:is )?disabled but max_tokens_per_mm_item", CERTAIN),
    line(r"item with length \d+, which exceeds the pre-allocated encoder cache size", CERTAIN),
    near(
        r"max_tokens_per_mm_item|multi-?modal item|image tokens|encoder cache",
        r"larger than.{0,20}max_num_batched_tokens|max_num_batched_tokens.{0,60}(?:smaller|too small|below)"
        r"|exceeds.{0,30}encoder",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"encoder cache size \d+.{0,40}(?:smaller|exceed|less)|exceeds (?:the )?(?:pre-allocated )?encoder"
        r" cache size|(?:image|video|multimodal|mm)\w*[ _]?(?:item|input)?\b.{0,40}\b\d+ tokens\b.{0,60}ma"
        r"x_num_batched_tokens",
        LIKELY,
    ),
)
FIX = (
    "--max-num-batched-tokens {item}   # or above it",
    '--limit-mm-per-prompt \'{{"image": 1, "video": 0}}\'   # or --mm-processor-kwargs with fewer pixels',
)
EXPLAINS: tuple[str, ...] = ()
