"""The request is longer than the context that is served.

Detects: prompts, or prompts with their max_tokens, that do not fit the context length, in the words of vLLM,
  SGLang, TensorRT-LLM and llama.cpp.
Why: the server was started with a smaller context than the client assumes, or the client asks for a completion as
  long as the whole context; a template adds tokens of its own to a prompt that just fits.
Evidence: the refusal with both figures.
Remedy: fewer tokens in the request, or a longer context if the KV cache has room.
References: gb10.md E116; https://github.com/vllm-project/vllm/blob/main/vllm/renderers/params.py;
  https://github.com/ggml-org/llama.cpp/pull/15780
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LAPI004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "request exceeds the served context length"
CAUSE = "request-exceeds-max-model-len"
# A server's own line about one request: what ends the engine stands before it.
_SERVER = 0.7

SIGNS = (
    line(r"maximum context length (is|of) \d+ tokens", _SERVER),
    line(
        r"(BadRequest|code\W{1,4}400|ContextWindowExceeded).{0,300}maximum context length"
        r"|maximum context length (is|of).{0,600}(BadRequest|code\W{1,4}400)",
        CERTAIN,
    ),
    line(r"longer than the (model's context|maximum model|maximum context) length", _SERVER),
    line(
        r"exceeds? the (available|maximum|model's) context (size|length|window)|context (size|window) exceeded", _SERVER
    ),
    line(r"exceed_context_size_error", CERTAIN),
    line(r"requested tokens \(\d+\) exceed context window", CERTAIN),
    line(
        r"max_(completion_)?tokens\W{0,2}=?\d* cannot be greater than|max_(completion_)?tokens' is too large", CERTAIN
    ),
    line(r"prompt is too long: \d+ tokens", LIKELY),
    line(r"max_tokens must be at least 1, got -\d+", LIKELY),
    line(r"input prompt \(\d+ tokens\).{0,60}exceeds", LIKELY),
    line(r"(prompt|input) length \(?\d+\)? (tokens )?exceeds (the )?maximum", LIKELY),
    line(
        r"prompt length.{0,60}should not exceed max_(num_tokens|seq_len|input_len)"
        r"|default_max_tokens.{0,60}(greater than 0|prompt length)",
        LIKELY,
    ),
    line(r"prompt contains (at least )?\d+ (input )?tokens.{0,80}exceed", CERTAIN),
    near(
        r"max[-_]model[-_]len|context (length|window|limit)|ctx[-_]size",
        r"http 400|http error 400|error code: 400|status 400|BadRequest",
        r"prompt|request|template adds",
        sure=POSSIBLE,
        within=2,
        unless=r"KV cache",
    ),
    line(
        r"You passed \d+ input (?:tokens|characters) and requested|resulting in a maximum input length of "
        r"\d+ tokens",
        CERTAIN,
    ),
    line(r"prompt length.{0,60}exceeds? (?:the )?max_(?:seq_len|model_len|position|input)", LIKELY),
    line(r"requested \d+ output tokens.{0,60}context length is only", CERTAIN),
    line(
        r"(?:prompt|input|request|context)\W.{0,60}\b\d+ tokens\b.{0,40}(?:exceeds?|over|larger than"
        r"|more than) (?:the )?(?:server|engine|model|configured)?.{0,20}(?:max_model_len|max-model-len"
        r"|context (?:length|window|limit))",
        LIKELY,
        unless=r"KV cache",
    ),
)
FIX = (
    (
        "lower max_tokens in the client or shorten the prompt; leave a few thousand tokens below the ceiling, the "
        "chat template adds some"
    ),
    "or raise --max-model-len (SGLang --context-length, llama.cpp -c); sparkwright plan {recipe} shows what fits",
)
EXPLAINS = ()
