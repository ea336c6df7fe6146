"""The sparse MLA kernel for SM 12.x spins forever.

Detects: a GPU that is busy at low power without memory traffic while the log is silent.
Why: two warps of the kernel wait for each other when a request resumes on a warm prefix cache. /health answers for
  minutes, then `sample_tokens` times out, or the node freezes.
Evidence: about 96 % utilisation, 18 W, no memory traffic; or a report that names the kernel. The same picture comes
  from a collective that waits for a dead peer.
Remedy: another build; no prefix cache until then.
References: vLLM issue 49026, RFC 48720; field guide E94
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, anywhere, line, near

CODE = "LKRN029"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the sparse MLA kernel for SM 12.x spins forever"
CAUSE = "sparse-mla-sm120-livelock"
SIGNS = (
    near(
        r"sparse_mla_sm120|MLA_SPARSE_SM120|sparse[ _-]mla",
        r"livelock|live-lock|mbarrier|spins?\b|\bhangs?\b|wedge[sd]?\b|freez",
        sure=LIKELY,
        within=4,
        unless=r"resolved|selected",
    ),
    line(
        r"9\d ?% util.{0,40}\b1\d(?:\.\d)? ?W\b|9\d ?% GPU util.{0,40}\b1\d(?:\.\d)? ?W\b",
        LIKELY,
        unless=r"\d{3} MHz",
    ),
    near(
        r"GPU util\w*\W{1,12}9\d|utili[sz]ation\W{1,12}9\d|% util",
        r"\b0 ?% (?:mem|memory|bandwidth)|memory traffic|no memory traffic",
        r"silent|no log|no output|/health",
        sure=LIKELY,
        within=3,
        unless=r"\d{3} MHz",
    ),
    anywhere(
        r"Using (?:AttentionBackendEnum\.)?FLASHINFER_MLA_SPARSE_SM120",
        r"RPC call to sample_tokens timed out",
        sure=POSSIBLE,
    ),
    near(
        r"attention kernel",
        r"never returns?|spins?\b|does not return|wait forever|livelock",
        r"9\d ?% util|low power|SMs parked|SMs are|other ranks?|other \d+ ranks",
        sure=0.7,
        within=4,
    ),
    line(
        r"\b9\d ?%.{0,40}\b(?:1\d|2[0-5])(?:\.\d)? ?W\b.{0,80}(?:no (?:error|log|time-?out|output|Xid)"
        r"|silent|never|spin|livelock)|\bspins?\b.{0,40}\b9\d ?%.{0,40}\b(?:1\d|2[0-5]) ?W\b",
        LIKELY,
        unless=r"MHz|graph",
    ),
)
FIX = (
    "power-cycle the node if nvidia-smi hangs: a reboot may not be enough",
    "a build with the repaired kernel (vLLM pull request 41834 lineage)",
    "until then: --no-enable-prefix-caching for traffic with long shared prefixes",
)
EXPLAINS = ()
