"""Notices of transformers and its kin.

Detects: deprecations, defaults taken from the checkpoint, slow image processors, requests without a token.
Why: they tell of future versions or of defaults; the start goes on.
Evidence: the notice.
Remedy: none.
References: captures (all starts)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN025"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "notices of model libraries"
CAUSE = "benign-library-notices"
SIGNS = (
    line(r"default (vLLM )?sampling parameters have been overridden", HINT),
    line(r"`?torch_dtype`? is deprecated|the pynvml package is deprecated", HINT),
    line(
        r"slow image processor|use_fast.{0,40}(unset|processor)|special tokens have been added in the vocabulary", HINT
    ),
    line(r"sending unauthenticated requests to the hf hub", HINT),
    line(r"xet storage is enabled for this repo, but", HINT),
    line(r"incorrect regex pattern.{0,80}tokeni|unrecognized keys in `rope_", HINT),
    line(r"FutureWarning: the (cuda|pynvml|nvrtc)\S* (package|module)|SyntaxWarning: invalid escape", HINT),
)
FIX = ()
EXPLAINS = ()
