"""The Harmony vocabulary cannot be downloaded.

Detects: gpt-oss start-up or an SGLang router that fails to fetch o200k_base.tiktoken.
Why: openai_harmony downloads its vocabulary at start from a host of its own, not from the model hub; offline settings
  of the hub do not help.
Evidence: The loader's `vocab file` line, or an error for its download address.
Remedy: Put the file on every node and name its directory in TIKTOKEN_ENCODINGS_BASE.
References: https://github.com/openai/harmony
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LVER005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the Harmony vocabulary cannot be downloaded"
CAUSE = "harmony-vocab-file-missing-offline"
SIGNS = (
    line(r"error downloading or loading vocab file|failed to download or load vocab file", CERTAIN),
    line(
        r"openaipublic\.blob\.core\.windows\.net.{0,120}(?:o200k|cl100k|tiktoken|timed out|refused"
        r"|resolve|retries)",
        LIKELY,
    ),
    near(
        r"harmony|gpt-?oss",
        r"tiktoken|vocab(?:ulary)? file|o200k_base",
        r"offline|air-?gapped|no (?:network|internet)|download|unreachable|TIKTOKEN_ENCODINGS_BASE",
        sure=LIKELY,
        within=2,
    ),
    line(r"HarmonyError: .{0,60}(?:download|vocab)", LIKELY),
    line(r"(?:harmony|gpt-?oss|需要|download).{0,80}o200k_base", LIKELY),
)
FIX = (
    (
        "mkdir -p <dir> && curl -fLo <dir>/o200k_base.tiktoken "
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken   # where there is a "
        "network"
    ),
    "copy <dir> to every node, mount it and start the container with -e TIKTOKEN_ENCODINGS_BASE=<dir>",
)
EXPLAINS = ("hf-hub-unreachable",)
