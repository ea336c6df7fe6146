"""The model brings its own code, and running it was not allowed.

Detects: transformers or the engine that asks for trust_remote_code, or stops at the question in a container.
Why: the repository holds Python files that config or tokenizer need; without the flag they are not run, and the
  prompt meets no terminal.
Evidence: The line that names the argument.
Remedy: Read the code, then start with --trust-remote-code on every node.
References: https://huggingface.co/docs/transformers (custom models)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LCFG002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the model brings its own code, and running it was not allowed"
CAUSE = "trust-remote-code-required"
SIGNS = (
    line(r"contains custom code which must be executed", CERTAIN),
    line(
        r"(?:pass the argument|consider setting|set the option|specify(?:ing)?) `?(?:--trust-remote-code"
        r"|trust_remote_code ?= ?True)",
        LIKELY,
    ),
    line(
        r"(?:needs?|requires?|must (?:set|pass|use)|add) `?(?:--trust-remote-code|trust_remote_code ?= ?True)",
        POSSIBLE,
    ),
    line(
        r"requires you to execute the (?:configuration|tokenizer|modeling|model|image processor"
        r"|processor) ?\w* ?(?:file|code)",
        CERTAIN,
    ),
    line(r"Do you wish to run the custom code\? \[y/N\]", CERTAIN),
    line(r"in resolve_trust_remote_code\b", LIKELY),
    line(
        r"^(?=.*(?:error|fail|missing|required|refus|not set|without|needs?\b))(?=.*(?:custom|own code"
        r"|auto_map)).*trust[-_]remote[-_]code",
        LIKELY,
        unless=r"trust_remote_code'?[=:] ?(?:True|False)|--trust-remote-code .{0,40}--",
    ),
)
FIX = (
    (
        "read the *.py files of {model}, then add --trust-remote-code to the engine's command on every node "
        "(TensorRT-LLM: --trust_remote_code)"
    ),
    "pin the revision, so that the code cannot change: --revision <commit> --code-revision <commit>",
)
EXPLAINS = ()
