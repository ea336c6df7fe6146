"""Ray or Python differ between the nodes.

Detects: Ray's comparison of its own and Python's version with those of the cluster it joins.
Why: Ray pickles between processes; it refuses nodes whose Ray or Python differs, Python even in the patch number. The
  other cluster may be an old one that still runs on the address.
Evidence: The two version blocks that Ray prints.
Remedy: The same image on every node; stop an old cluster first.
References: https://docs.ray.io/en/latest/cluster/faq.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, POSSIBLE, line

CODE = "LVER002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Ray or Python differ between the nodes"
CAUSE = "ray-or-python-version-mismatch"
SIGNS = (
    line(r"Version mismatch: The cluster was started with", CERTAIN),
    line(r"This process on node .{0,120}was started with", CERTAIN),
    line(r"(?:Python minor versions differ between|Client Ray installation incompatible with server)", CERTAIN),
    line(
        r"\bray\b.{0,80}version.{0,60}(?:mismatch|differ\w*|incompatible|does not match)|(?:mismatch\w*"
        r"|differ\w+) (?:ray|python) versions?\b",
        LIKELY,
    ),
    line(r"\bray versions? (?:mismatch|differ)|python (?:minor |patch )?versions? (?:mismatch|differ)", LIKELY),
    line(r"\b(?:ray 版本|python 版本).{0,10}(?:不一致|不匹配|不同)", LIKELY),
    line(r"Failed to register worker \w+ to Raylet.{0,60}Unable to register worker with raylet", HINT),
    line(
        r"SystemError: unknown opcode|TypeError: code\(\) (?:argument|takes|expected)"
        r"|code expected at most \d+ arguments",
        POSSIBLE,
    ),
    line(
        r"Can't get attribute '\w+' on <module 'ray\.|Changing the Ray Client server's Python"
        r"|Failed to unpickle serialized exception",
        LIKELY,
    ),
)
FIX = (
    "on every node: docker exec <container> sh -c 'ray --version; python3 --version'",
    "ray stop --force   # on every node, also an old cluster on {head}:6379",
    "start all nodes from one image (compare: docker image inspect -f '{{{{.Id}}}}' <image>)",
)
EXPLAINS = ()
