"""The client asks for a model name that is not served.

Detects: 404 answers that say that the model does not exist.
Why: the API knows a model by --served-model-name, or else by the path or repository that was given to the server,
  letter for letter. The status 404 reads like a missing route.
Evidence: the error object with the asked name.
Remedy: take the name from /v1/models, or serve under the name that clients use.
References: gb10.md G (API up);
  https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/models/serving.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LAPI006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "requested model name is not the served one"
CAUSE = "served-model-name-mismatch"
# A server's own line about one request: what ends the engine stands before it.
_SERVER = 0.7

SIGNS = (
    line(r"the model [`'\"\\]{1,3}[^`'\"]{1,200}[`'\"\\]{1,3} does not exist", _SERVER, unless=r"hugging|\bhub\b"),
    line(
        r"(\"code\"|error code): ?404.{0,300}the model .{0,200}does not exist"
        r"|the model .{0,200}does not exist.{0,200}\"code\": ?404",
        CERTAIN,
    ),
    line(
        r"\"message\": ?\"model [^\"]{1,120} not found|model '[^']{1,120}' (was )?not found\. available",
        LIKELY,
        unless=r"try pulling",
    ),
    near(
        r"served[-_]model[-_]name|/v1/models",
        r"http 404|answered 404|router 404|code: 404|status 404|\bNotFoundError|model does not exist",
        sure=LIKELY,
        within=3,
        unless=r"\" 200|INFO|served_model_name=",
    ),
    line(r"404:? (not found: )?model not found", LIKELY),
    line(r"NotFoundError: .{0,80}the model .{0,200}does not exist", CERTAIN),
    line(r"model \W{1,3}[\w.:/-]{1,100}\W{1,3}not found, try pulling it first", 0.7),
)
FIX = (
    'curl -s http://{head}:{port}/v1/models   # the id to send as "model"',
    "or serve with --served-model-name NAME [ALIAS ...]",
)
EXPLAINS = ()
