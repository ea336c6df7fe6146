"""The server wants an API key that the request does not have.

Detects: 401 answers of the server's own API.
Why: --api-key or VLLM_API_KEY (also one left in a profile or an env file) makes every /v1 route want a bearer
  token; the client sends none, another one, or its own default.
Evidence: the access log's 401, the error object, or the client library's AuthenticationError.
Remedy: send the key, or start the server without one on a private address.
References: https://github.com/vllm-project/vllm/issues/22407;
  https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LAPI005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "request refused: API key missing or wrong"
CAUSE = "api-key-required-401"
# A server's own line about one request: what ends the engine stands before it.
_SERVER = 0.7

SIGNS = (
    line(r"\"(GET|POST|OPTIONS|HEAD) /\S* HTTP/[\d.]+\" 401", _SERVER),
    line(r"\{\"error\": ?\"Unauthorized\"\}", CERTAIN),
    line(
        r"invalid api key.{0,60}authentication_error|authentication_error.{0,80}api key|unauthorized: invalid api key",
        CERTAIN,
    ),
    line(r"request: (GET|POST) /\S* \S+ 401\b|\b401 \W{1,3} ?(?:GET|POST) /(?:v1|api)/", _SERVER),
    line(
        r"401 unauthorized.{0,80}/v1/(chat|completions|models|embeddings)"
        r"|/v1/(chat|completions|models|embeddings).{0,60}401 unauthorized",
        LIKELY,
        unless=r"\" 401",
    ),
    line(r"(invalid|incorrect) api key", LIKELY, unless=r"hugging|nvcr|ngc|wandb"),
    line(r"AuthenticationError.{0,60}\b401\b", LIKELY, unless=r"huggingface|nvcr|docker"),
    line(r"HTTP/[\d.]+ 401 Unauthorized", LIKELY, unless=r"huggingface|nvcr|ghcr|docker|registry|/resolve/"),
    near(
        r"VLLM_API_KEY|--api-key|SGLANG_API_KEY|LLAMA_API_KEY",
        r"http 401|\" 401 |code: 401| 401\b|unauthorized|missing (bearer|authorization)|refused",
        sure=LIKELY,
        within=3,
    ),
    line(r"api_key client option must be set", LIKELY),
    line(
        r"/v1/(?:models|chat|completions|embeddings|responses)\b.{0,60}\bHTTP 401"
        r"|\bHTTP 401\b.{0,80}/v1/(?:models|chat|completions|embeddings)",
        LIKELY,
        unless=r"huggingface|nvcr|registry",
    ),
    line(
        r"401 Client Error: Unauthorized for url: https?://(?:localhost|127\.|10\.|192\.168\.|172\.|spark"
        r"|[\w.-]{1,40}:\d{4,5}/v1)",
        LIKELY,
    ),
    line(r"requested URL returned error: 401", POSSIBLE, unless=r"hugging|nvcr|ghcr|https://"),
    line(r"\| +401 \| .{0,80}\"/(?:v1|api)/", _SERVER),
    line(r"ResponseError: Unauthorized|Unauthorized \(status(?: code)?: 401\)", LIKELY),
)
FIX = (
    (
        'curl -H "Authorization: Bearer $KEY" http://{head}:{port}/v1/models   # the key that the server was '
        "started with"
    ),
    "env | grep -i API_KEY   # in the server's shell and env file: unset VLLM_API_KEY if no key is wanted",
)
EXPLAINS = ()
