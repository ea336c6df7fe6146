"""`preload`, as of vLLM 0.33.0: a process that keeps weights for ranks. This one only says so and waits for its end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from itertools import pairwise

from sparkwright.simulator.boot import SIMULATED
from sparkwright.simulator.log import LogVoice
from sparkwright.simulator.settings import PREFIX

FAIL = f"{PREFIX}PRELOAD_FAILS"
_READY = "===== Weight cache daemon READY: node {}/{} serving 1 local rank(s) x 1 role(s) in {} ====="
_REFUSED = (
    "vllm.model_executor.model_loader.weight_cache.protocol.UnsupportedPlatformForIPCError: platform 'cpu' does not "
    "support CUDA IPC weight sharing; only CUDA and ROCm are supported. Use the default --load-format for this "
    "platform."
)


def preload(argv: list[str], env: Mapping[str, str] = os.environ) -> int:
    """Exit codes as vLLM's: 1 where the platform has no CUDA IPC, which a variable asks for."""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    given = dict(pairwise(argv))
    said = LogVoice("", os.getpid(), sys.stdout)
    said.warning("twin.py:1", SIMULATED)
    if env.get(FAIL):
        said.bare(_REFUSED)
        return 1
    node, nodes = given.get("--node-rank", "0"), given.get("--nnodes", "1")
    said.info("preload.py:418", _READY.format(node, nodes, given.get("--weight-cache-socket-dir", "?")))
    signal.sigwait(signals)
    return 0
