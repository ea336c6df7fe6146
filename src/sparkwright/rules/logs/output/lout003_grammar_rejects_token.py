"""The grammar does not take the sampled token.

Detects: a request with a grammar that ends in error 500 or in the middle.
Why: the model emits a token (often a special one, or one of a rejected draft) that the compiled grammar does not
  allow, so the request is terminated. It is no memory or proxy fault.
Evidence: the backend's own line with the token id.
Remedy: another backend, no draft, or no strict schema.
References: vLLM backend_xgrammar.py; vLLM issues 22483, 53181; SGLang xgrammar_backend.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LOUT003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the grammar does not take the sampled token"
CAUSE = "xgrammar-fsm-rejects-token"
SIGNS = (
    line(r"Failed to advance FSM|FSM failed to advance"),
    line(r"grammar (?:rejected tokens|terminated or rejected draft)"),
    line(r"Tokens not accepted: ?\d+"),
    line(r"trying to accept new token|GrammarMatcher has terminated", LIKELY),
    line(r"Unexpected empty grammar stack", LIKELY),
    line(r"doesn't satisfy the grammar|Grammar \w+ (?:failed|error).{0,40}token", LIKELY),
    near(
        r"xgrammar|structured[ _]output|guided[ _]decod|grammar",
        r"reject\w* .{0,20}token|cannot accept|special token|FSM rejects|FSM fail|FSM error|FSM corrupt|拒绝",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"assert grammar\.accept_tokens|accept_tokens?\(.{0,40}(?:returned False|failed)"
        r"|grammar (?:matcher )?(?:rejects?|rejected|did not accept|refuses) (?:the |a )?token",
        LIKELY,
    ),
)
FIX = (
    (
        "leave out strict tool_choice or response_format for this client, or lower strictness: "
        "VLLM_ENFORCE_STRICT_TOOL_CALLING=false where it is known"
    ),
    (
        "with speculative decoding: test without --speculative-config; vLLM pull requests 46272 and 52805 repair "
        "roll-back"
    ),
    '--structured-outputs-config \'{{"backend": "guidance"}}\' to compare',
)
EXPLAINS = ()
