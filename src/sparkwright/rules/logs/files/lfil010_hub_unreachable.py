"""The Hub cannot be reached.

Detects: name resolution, connection and time-out errors for huggingface.co and its storage.
Why: no internet on the fabric's default route, a proxy that the container does not know, a slow resolver.
Evidence: the network error with the host's name.
Remedy: repair the way out, or start offline from the cache.
References: https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LFIL010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Hugging Face cannot be reached"
CAUSE = "hf-hub-unreachable"
SIGNS = (
    line(
        r"(huggingface\.co|hf\.co|xethub).{0,300}(max retries exceeded|failed to (resolve|establish)"
        r"|name resolution|no address|timed? ?out|connection (reset|refused|aborted)|unreachable|ConnectError"
        r"|SSLError)",
        LIKELY,
    ),
    line(
        r"(max retries exceeded|failed to resolve|couldn't connect to|cannot reach"
        r"|connection error).{0,120}huggingface\.co",
        LIKELY,
        unless=r"offline mode",
    ),
    line(r"error happened while trying to locate the files? on the hub", LIKELY),
    line(r"couldn't connect to 'https?://[^']{1,200}' to load the files", LIKELY, unless=r"huggingface\.co"),
    near(
        r"no internet\b|no route to the internet|air-?gapped",
        r"hf download|hugging ?face|docker (hub|pull)|download",
        sure=LIKELY,
        within=2,
    ),
    line(r"'http(s)?://huggingface\.co/[^']{0,200}' thrown while requesting", POSSIBLE),
)
FIX = (
    "curl -sI https://huggingface.co | head -1; ip route get 1.1.1.1",
    "with the files on disk: HF_HUB_OFFLINE=1",
)
EXPLAINS = ()
