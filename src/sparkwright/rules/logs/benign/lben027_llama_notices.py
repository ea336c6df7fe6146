"""Notices of llama.cpp at load.

Detects: notices about the context below the trained one, token types, and open access on this machine.
Why: the context was chosen so, token types are corrected while loading.
Evidence: the notice.
Remedy: none.
References: https://github.com/ggml-org/llama.cpp/blob/master/src/llama-context.cpp; our own start of llama-server
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN027"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "notices of llama.cpp at load"
CAUSE = "benign-llamacpp-notices"
SIGNS = (
    line(r"the full capacity of the model will not be utilized", HINT),
    line(r"was not control-type; this is probably a bug in the model", HINT),
    line(r"is not in special_eog_ids", HINT),
    line(r"warming up the model with an empty run", HINT),
    line(r"no api key is set and cors allows all origins", HINT),
    line(r"failed to initialize RPC cache|embeddings required but some input tokens", HINT),
)
FIX = ()
EXPLAINS = ()
