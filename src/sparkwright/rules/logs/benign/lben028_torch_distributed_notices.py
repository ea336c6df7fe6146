"""Notices of torch.distributed.

Detects: names that cannot be looked up in IPv6, guessed devices, Gloo's count of peers.
Why: the connection is made by address anyway, and a process with one GPU guesses right.
Evidence: the notice.
Remedy: none.
References: https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/socket.cpp
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN028"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "notices of torch.distributed"
CAUSE = "benign-torch-distributed-notices"
SIGNS = (
    line(r"ipv6 network addresses of .{0,80}cannot be retrieved", HINT),
    line(r"hostname of the client socket cannot be retrieved", HINT),
    line(r"guessing device id based on global rank|device used by this process is currently unknown", HINT),
    line(r"\[gloo\] rank \d+ is connected to \d+ peer ranks", HINT),
    line(r"barrier\(\): using the device under current context", HINT),
)
FIX = ()
EXPLAINS = ()
