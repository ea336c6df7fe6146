"""What a rank of vLLM on Ray prints: lines of engines/launchers/ray_launch.py, Ray's prefixes, and vLLM's own log.

Ray sends what the workers on all nodes print to the head's log, `(RayWorkerProc pid=12, ip=10.0.0.2) text`; a worker
rank's own log ends when its node has joined. Facts: as in vllm_log.
"""

import re

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.engines.dialect import first, most_telling, pieces, says
from sparkwright.engines.vllm_log import read_vllm

_OF_A_WORKER = re.compile(r"\((?:[A-Za-z]\w*|\w+\.\w+)? ?pid=\d+(?:, ip=[\d.]+)?\) ")
_REPEATED = re.compile(r" \[repeated \d+x across cluster\].*$")
_OURS = (
    says(Phase.START, r"^ray: (?P<d>\d+) of (?P<t>\d+) nodes active, \d+ of \d+ GPUs", "{d} of {t} nodes in Ray",
         done="d", total="t", unit="nodes"),
    says(Phase.START, r"^ray: (?P<w>cluster is complete.*)", "{w}"),
    says(Phase.START, r"^ray: waits for the head's Ray at (?P<a>\S+)", "waits for Ray at {a}"),
    # The last line of a worker: from here on the head tells how far all are.
    says(Phase.SERVER, r"^ray: joined the cluster at (?P<a>\S+);", "joined Ray at {a}"),
    says(Phase.START, r"^ray: (?P<w>warning: .*|stopping)", "{w}", alive=True),
)  # fmt: skip
_FAILED = re.compile(r"^ray: error: (?P<why>.*)|^(?P<sick>\[[^\]]*\] .*Unauthenticated: .*)")


def read_vllm_ray(line: str) -> LogEvent | None:
    return most_telling(e for piece in pieces(line, _OF_A_WORKER) if (e := _piece(piece)))


def _piece(piece: str) -> LogEvent | None:
    if found := _FAILED.match(piece):
        return LogEvent(Phase.START, f"Ray: {found['why'] or found['sick']}"[:500], error=True)
    if piece.startswith("ray: "):
        return first(_OURS, piece)
    return read_vllm(_REPEATED.sub("", _bare(piece)))


def _bare(piece: str) -> str:
    """Without Ray's prefix; vLLM's own `(Worker pid=1) ` looks alike and is understood by vLLM's dialect as well."""
    prefix = _OF_A_WORKER.match(piece)
    return piece[prefix.end() :] if prefix else piece
