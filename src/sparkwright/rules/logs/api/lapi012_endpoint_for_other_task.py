"""The route does not fit what the model is served for.

Detects: answers that say that the model does not support an API.
Why: a pooling model has no chat, a generating one no embeddings, and images need a model with a vision part.
Evidence: the error object.
Remedy: the right route, or another --runner or --task.
References: https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai;
  https://docs.vllm.ai/en/latest/models/pooling_models.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LAPI012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "route not supported by the served model"
CAUSE = "endpoint-unsupported-for-task"
SIGNS = (
    line(r"model does not support (the )?[\w ]{3,40}\bAPI\b", CERTAIN),
    line(r"is not a multimodal model", CERTAIN),
    line(r"\"POST /(?:v\d/)?(?:embeddings|pooling|score|rerank|classify) HTTP/[\d.]+\" 404", LIKELY),
    line(r"at most \d+ (image|video|audio)\(s\) may be provided", CERTAIN),
)
FIX = (
    "use the route of the model's task; --runner pooling (older: --task embed) for embeddings",
    "for more images in a request: --limit-mm-per-prompt '{{\"image\": 4}}'",
)
EXPLAINS = ()
