"""The nodes run different builds of the engine.

Detects: Notes that image, commit or engine version differ from node to node, and objects of one rank that another
  cannot read.
Why: ranks exchange pickled objects and expect the same fields; a node with an older image fails at the first message.
Evidence: The note, or an unpickling error in a worker.
Remedy: The same image digest on every node.
References: field guide C0
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line

CODE = "LVER022"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "the nodes run different builds of the engine"
CAUSE = "engine-version-differs-between-nodes"
SIGNS = (
    line(
        r"(?:vllm|sglang|image|engine|container|commit)s? (?:versions? |digests? |tags? )?(?:mismatch"
        r"|differ)\w* (?:between|across|on) (?:the |both |two )*(?:nodes|ranks|hosts|sparks)",
        LIKELY,
    ),
    line(
        r"different (?:images?|image digests?|engine versions?|vllm versions?|sglang versions?"
        r"|commits) on (?:the |each |both )*(?:two )?(?:nodes?|ranks?|hosts?|sparks?)",
        LIKELY,
    ),
    line(r"AttributeError: Can't get attribute '\w+' on <module '(?:vllm|sglang)", LIKELY),
    line(r"(?:_pickle\.UnpicklingError|ModuleNotFoundError).{0,80}(?:vllm|sglang)\.\S.{0,60}\bip=", POSSIBLE),
    line(r"NIXL compatibility hash mismatch", LIKELY),
)
FIX = (
    "on every node: docker image inspect -f '{{{{index .RepoDigests 0}}}} {{{{.Id}}}}' <image>",
    "docker pull <image>@<digest>   # the same on every node, or: docker save <image> | ssh {peer} docker load",
)
EXPLAINS = ()
