"""A placeholder token of the draft reaches the embedding.

Detects: an index assertion in an embedding or gather while drafts are padded.
Why: unfilled draft slots carry the token -1. It must be masked before the embedding; with one GPU, with images or
  with some drafters it is not, and the lookup faults later and elsewhere.
Evidence: torch's device assertion `srcIndex < srcSelectDimSize` or `vectorized gather kernel`, with speculation on.
Remedy: the fixed version.
References: vLLM pull requests 26198, 46947, 47029, 53977
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, anywhere, line, near

CODE = "LSPC006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a placeholder token of the draft reaches the embedding"
CAUSE = "spec-decode-sentinel-token-oob"
SIGNS = (
    near(
        r"srcIndex < srcSelectDimSize|indexSelect(?:Small|Large)Index|vectorized[ _]gather[ _]kernel",
        r"spec_decode/|speculative_config=Spec|mtp_|_mtp\b|eagle|drafter|VocabParallelEmbedding"
        r"|embed_tokens|embed_input_ids",
        sure=LIKELY,
        within=30,
    ),
    anywhere(
        r"speculative_config=SpeculativeConfig",
        r"srcIndex < srcSelectDimSize|vectorized gather kernel index",
        sure=LIKELY,
    ),
    line(r"srcIndex < srcSelectDimSize|vectorized gather kernel index out of bounds", POSSIBLE),
    line(r"scheduled_spec_decode_tokens=\{[^}]{0,200}\[-1\b", LIKELY),
    near(
        r"synchronize_input_prep|prepare_inputs_event",
        r"device-side assert",
        sure=LIKELY,
        within=6,
    ),
    near(
        r"sentinel|placeholder (?:token|draft)|placeholder ids?|PADDING_SLOT_ID|PLACEHOLDER_TOKEN_ID"
        r"|`?-1`? (?:draft )?token|token ids? (?:of )?`?-1|padded draft",
        r"embedding|embed_tokens|input_ids| gather|out[- ]of[- ](?:range|bounds)|device-side assert",
        sure=LIKELY,
        within=4,
        unless=r"Supported architectures",
    ),
    line(
        r"^(?=.*(?:\bMTP\b|speculat|draft|EAGLE))(?=.*(?:-1\b|placeholder|sentinel"
        r"|padd)).*(?:device-side assert|out of bounds|out-of-bounds|embedding)",
        LIKELY,
        unless=r"Supported architectures",
    ),
)
FIX = (
    "a vLLM with pull request 47029 (and 53977 for one GPU, 46947 for images)",
    "or no --speculative-config",
    "CUDA_LAUNCH_BLOCKING=1 shows the embedding as the real place",
)
EXPLAINS = ()
