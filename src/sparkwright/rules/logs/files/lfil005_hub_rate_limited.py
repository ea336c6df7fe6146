"""The Hub limits the rate of requests.

Detects: answers 429 of the Hub or its storage.
Why: requests without a token share the limit of the address; several ranks that list the same repository double
  them, and some programs do not fall back to the files they have.
Evidence: the status with a Hub address, or the library's retry message.
Remedy: a token, one download for all nodes, offline mode for the start.
References: https://huggingface.co/docs/hub/rate-limits; https://github.com/ggml-org/llama.cpp/issues/21677
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LFIL005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Hugging Face rate limit reached"
CAUSE = "hf-rate-limited"
SIGNS = (
    line(r"429 (client error|too many requests).{0,200}(huggingface|hf\.co|xethub)", CERTAIN),
    line(r"(huggingface\.co|hf\.co|xethub).{0,240}(\b429\b|too many requests)", CERTAIN),
    line(r"reached your '?\w+'? rate limit|had to rate limit (your ip|you)|rate limited\. waiting", LIKELY),
    line(r"get_repo_files.{0,40}\(429\)|get failed \(429\)|download failed.{0,30}\b429\b", LIKELY),
    line(r"HTTP status client error \(429", LIKELY),
    near(
        r"\b429\b.{0,40}(too many|rate)|too many requests",
        r"hugging ?face|the hub\b|hub api|hf download|snapshot_download",
        sure=LIKELY,
        within=3,
        unless=r"docker|nvcr",
    ),
    line(
        r"\b(?:answers?|returns?|gives?|with|HTTP|error|got) 429\b",
        0.6,
        unless=r"/v1/|completions|api_server|127\.0\.0\.1|nvcr|docker",
    ),
)
FIX = (
    "export HF_TOKEN=...   # on every node",
    "fetch once and copy: rsync -a ~/.cache/huggingface/ {peer}:.cache/huggingface/",
    "start with HF_HUB_OFFLINE=1 (llama.cpp: -m FILE or --offline)",
)
EXPLAINS = (
    "hf-cache-incomplete-offline",
    "model-path-or-repo-not-found",
)
