"""The attention backend's name does not exist in this image.

Detects: An attention backend that the engine does not know by that name.
Why: names change between releases and forks, and recipes carry the names of another image. This is about the name,
  not about a backend that exists and refuses the chip.
Evidence: The engine's line with the valid names, or argparse's about the choice.
Remedy: Leave the choice to the engine, or take a name from its list.
References: vllm/v1/attention/backends/registry.py; sglang/srt/server_args.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCLI001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the attention backend's name does not exist in this image"
CAUSE = "attention-backend-name-unknown"
SIGNS = (
    line(r"Unknown attention backend: '?(?P<name>\w+)", CERTAIN),
    line(r"argument --(?:\w+-)*attention-backend: invalid choice: '(?P<name>[^']+)'", CERTAIN),
    line(
        r"Invalid (?:value for |value '?\w+'? for )?(?:VLLM_)?ATTENTION_BACKEND"
        r"|Invalid attention backend: '?(?P<name>\w+)",
        CERTAIN,
    ),
    line(r"backend name .{0,40}(?:does not exist|unknown|not registered)|unknown backend\b.{0,60}", LIKELY),
    line(r"KeyError: '(?P<name>FLASH\w*|TRITON_\w+|\w+_MLA\w*|\w+_ATTN)'", LIKELY),
    line(r"'(?P<name>FLASH\w+|TRITON_\w+|\w+_MLA\w*)' is not a valid (?:AttentionBackend|_Backend)", LIKELY),
    line(
        r"(?:attention backend|--attention-backend|VLLM_ATTENTION_BACKEND).{0,120}(?:does(?:n't"
        r"| not) exist|is not (?:known|registered|a valid)|no such|unknown name|unknown to)",
        LIKELY,
    ),
    line(r"Attention backend '(?P<name>XFORMERS|\w+)' has been removed", CERTAIN),
)
FIX = (
    "leave out --attention-backend (and VLLM_ATTENTION_BACKEND), so that the engine chooses",
    (
        "docker exec <container> python3 -c 'from vllm.v1.attention.backends.registry import "
        "AttentionBackendEnum as a; print(list(a.__members__))'"
    ),
    "sglang serve --help | grep -A3 attention-backend   # the names that SGLang has",
)
EXPLAINS = ()
