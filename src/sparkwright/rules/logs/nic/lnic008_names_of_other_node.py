"""One node's device names are forced on another node.

Detects: vLLM that overwrites NCCL, Gloo or UCX device variables on a worker, or a cable between unequal ports.
Why: the cable joins port 0 of one node to port 1 of the other, so names differ per node; Ray copies the head's
  variables to all workers and replaces the right values there.
Evidence: `Overwriting environment variable NAME from ... to ...`.
Remedy: the same port on all nodes, or keep those variables out of what Ray copies.
References: field guide B1, B5; https://github.com/spark-arena/sparkrun/issues/135
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LNIC008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "device names of one node are used on another"
CAUSE = "asymmetric-cabling-env-propagated"
SIGNS = (
    line(
        r"overwriting environment variable (?P<name>NCCL_IB_HCA|NCCL_SOCKET_IFNAME|UCX_NET_DEVICES|GLOO_SOCKET_IFNAME"
        r"|TP_SOCKET_IFNAME|NCCL_IB_GID_INDEX|VLLM_HOST_IP) from",
        LIKELY,
    ),
    near(
        r"asymmetric(?:al)? cabl|port 0.{0,40}port 1|port 1.{0,40}port 0|cage 0.{0,40}cage 1"
        r"|different (?:qsfp )?(?:ports?|cages?)",
        r"NCCL_IB_HCA|IFNAME|UCX_NET|interface name|environment|propagat",
        sure=LIKELY,
        within=3,
    ),
    near(r"f0np0", r"f1np1", r"other node|second node|propagat|asymmetric|head's", sure=POSSIBLE, within=2),
    line(r"Ray (?:copies|propagates|overwrites|pushes).{0,60}(?:NCCL|UCX|GLOO|env)", LIKELY),
)
FIX = (
    "plug the cable into the same port on both nodes",
    'or: echo \'["NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "UCX_NET_DEVICES"]\''
    " > ~/.config/vllm/ray_non_carry_over_env_vars.json   # on the head",
)
EXPLAINS = ("gloo-interface-name-missing-on-node", "nccl-socket-ifname-wrong", "ucx-net-devices-wrong")
