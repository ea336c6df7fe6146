"""The gpt-oss snapshot is an old one.

Detects: Harmony's parser that meets a token where a message must start.
Why: early snapshots of gpt-oss have a generation_config without all end tokens, so the model runs past the end of its
  call.
Evidence: Harmony's line with both token numbers.
Remedy: The current revision of the model.
References: https://huggingface.co/openai/gpt-oss-120b (generation_config.json)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LCFG003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the gpt-oss snapshot is an old one"
CAUSE = "gpt-oss-stale-generation-config"
SIGNS = (
    line(r"Unexpected token (?P<token>\d+) while expecting start token (?P<start>\d+)", LIKELY),
    line(
        r"HarmonyError: (?:unexpected|unknown|Unexpected) .{0,40}(?:token|role|message|EOS)", POSSIBLE, unless=r"vocab"
    ),
    near(
        r"gpt-?oss",
        r"generation_config",
        r"stale|outdated|old (?:revision|snapshot)|eos_token_id|missing|update",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"gpt-?oss",
        r"(?:old|stale|outdated|earlier|first) (?:revision|snapshot|download|checkpoint)",
        sure=LIKELY,
        within=1,
    ),
    line(
        r"generation_config(?:\.json)?\b.{0,60}(?:gpt-?oss|200012|199999).{0,60}(?:old|stale|without"
        r"|missing|lacks|outdated)|gpt-?oss\b.{0,60}generation_config.{0,40}(?:old|stale|outdated|lacks)",
        LIKELY,
    ),
)
FIX = (
    (
        "hf download openai/gpt-oss-120b generation_config.json tokenizer_config.json chat_template.jinja   "
        "# the current revision, on every node"
    ),
    "grep -A6 eos_token_id <snapshot>/generation_config.json   # must list 200002, 199999 and 200012",
)
EXPLAINS = ()
