"""The model has no chat template.

Detects: chat requests that are refused because neither the tokenizer nor the command line gives a template.
Why: base checkpoints carry none, newer ones carry chat_template.jinja beside the tokenizer, and a partial copy or
  an old downloader leaves that file out. Since transformers 4.44 no default is assumed.
Evidence: the error of transformers or of the engine, in the server's log or in the client's answer.
Remedy: serve the instruct variant, copy the file, or name one with --chat-template; a base model takes
  /v1/completions.
References: https://github.com/vllm-project/vllm/blob/main/vllm/renderers/hf.py;
  https://huggingface.co/docs/transformers/chat_templating
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LAPI002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "no chat template for chat requests"
CAUSE = "chat-template-missing"
SIGNS = (
    line(r"default chat template is no longer", CERTAIN),
    line(r"tokenizer\.chat_template is not set", CERTAIN),
    line(r"ChatTemplateResolutionError", LIKELY),
    line(
        r"(no|without an?|lacks an?|missing|has no|find an?|supply an?) (default |built-in "
        r"|jinja )?chat[_ -]template\b",
        LIKELY,
        unless=r"defaulting to|INFO|fallback for",
    ),
    line(
        r"chat[_ -]template\W{0,2} (is |was |file )?(missing|not (found|set|defined|available|provided)|absent)", LIKELY
    ),
    line(
        r"(does not|doesn't|do not) (have|contain|define|ship|include) an? (default |built-in )?chat[_ -]template",
        LIKELY,
    ),
    line(r"chat template.{0,200}(looks like a file path, but|path doesn't exist|appears path-like, but)", LIKELY),
    line(r"chat_template\.(jinja|json).{0,60}(missing|not copied|no such file|not found)", LIKELY),
    line(r"chat template that comes with this model is not yet supported", POSSIBLE),
)
FIX = (
    (
        "ls the model folder for chat_template.jinja; if it is not there: hf download {model} --include '*.jinja' "
        "'tokenizer*'"
    ),
    "or serve with --chat-template FILE.jinja; a base model is asked over /v1/completions",
)
EXPLAINS = ()
