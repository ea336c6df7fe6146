"""The engine was not ready in time although nothing failed.

Detects: time-outs of vLLM while it waits for its engine core, and a failed start that names no failed process.
Why: an empty JIT cache, slow storage or 150 GB of weights take longer than VLLM_ENGINE_READY_TIMEOUT_S (600 s). When
  another rank waits or died, that is the cause and this only its end.
Evidence: the time-out's own line; `Failed core proc(s): {}` alone is weak.
Remedy: a longer time-out and caches on a volume.
References: field guide B5; https://github.com/vllm-project/vllm/issues/48031
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LCLU004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the engine took longer to start than it was allowed to"
CAUSE = "engine-ready-timeout-too-short"
SIGNS = (
    line(r"timed out waiting for (?:new )?engine core processes to start", LIKELY),
    line(r"timed out waiting for engines to send initial message", LIKELY),
    line(r"did not receive response from front-?end process within", LIKELY),
    line(
        r"VLLM_ENGINE_READY_TIMEOUT_S.{0,80}(?:exceeded|too (?:short|low)|raise|increase|elapsed|default)",
        LIKELY,
        unless=r"To increase the timeout",
    ),
    near(
        r"VLLM_ENGINE_READY_TIMEOUT_S",
        r"handshake|timing out|timed out|times out|second (?:start|run)|warm restart|raise",
        sure=LIKELY,
        within=3,
        unless=r"To increase the timeout",
    ),
    line(r"failed core proc\(s\): \{\}", HINT),
    line(r"ready[- ]timeout.{0,60}(?:exceeded|too short|expired|elapsed)", POSSIBLE),
    line(r"not ready (?:within|after|in) \d+ ?(?:s\b|sec|min)", POSSIBLE),
    line(
        r"(?:[Ss]erver|[Ee]ngine|service|endpoint|container)\b.{0,20}(?:failed to|did not|not) (?:become"
        r"|get|be) (?:ready|healthy) (?:within|in|after) \d+",
        0.65,
    ),
)
FIX = (
    "export VLLM_ENGINE_READY_TIMEOUT_S=3600   # on every node",
    "docker run ... -v ~/.cache/vllm:/root/.cache/vllm -v ~/.cache/flashinfer:/root/.cache/flashinfer   # keep "
    "what is compiled",
)
EXPLAINS = ()
