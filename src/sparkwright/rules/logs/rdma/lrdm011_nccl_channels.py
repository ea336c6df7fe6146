"""NCCL's initialization hangs with its default number of channels.

Detects: reports of a silent hang in init that a small NCCL_MAX_NCHANNELS ends.
Why: on one pair of Sparks the default number of channels did not connect; the cause below it is not known.
Evidence: one source only: a guess to try, not a diagnosis.
Remedy: NCCL_MAX_NCHANNELS=2 on all nodes.
References: field guide E38, B5
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LRDM011"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "NCCL hangs in initialization with its default number of channels"
CAUSE = "nccl-default-channels-init-hang"
SIGNS = (
    near(
        r"NCCL_MAX_NCHANNELS|NCCL_MIN_NCHANNELS",
        r"\bhang|\bhung|stuck|silent|deadlock|wedge|required",
        sure=LIKELY,
        within=2,
        unless=r"NCCL INFO",
    ),
    line(r"default (?:number of )?channels?.{0,40}(?:hang|stuck|silent)", LIKELY),
)
FIX = ("export NCCL_MAX_NCHANNELS=2   # on every node",)
EXPLAINS = ()
