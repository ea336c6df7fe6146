"""The rpc-server speaks another protocol than this llama.cpp.

Detects: llama.cpp that finds another RPC version on the other node and skips it.
Why: the protocol changes with llama.cpp; both ends must come from one commit. An old rpc-server may still hold the
  port.
Evidence: The client's line with the server's version.
Remedy: Build one commit on all nodes and restart the rpc-server that really listens.
References: https://github.com/ggml-org/llama.cpp (ggml/src/ggml-rpc)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LVER016"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the rpc-server speaks another protocol than this llama.cpp"
CAUSE = "llamacpp-rpc-version-mismatch"
SIGNS = (
    line(r"RPC server version mismatch(?:: (?P<version>[\d.]+))?", CERTAIN),
    line(r"\brpc[ -].{0,60}version.{0,40}(?:mismatch|not supported|incompatib|differ)", LIKELY),
    line(r"RPC HELLO failed|RPC handshake failed", POSSIBLE),
    near(
        r"rpc-server",
        r"llama-(?:server|cli)|llama\.cpp",
        r"(?:different|another|other) (?:commit|build|version)|same (?:commit|build)",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "on every node: llama-server --version   # the same commit everywhere?",
    "on {peer}: ss -tlnp | grep 50052   # which rpc-server listens; stop that process",
    "build the same commit on every node and start rpc-server again",
)
EXPLAINS = ("llamacpp-rpc-server-unreachable",)
