"""RDMA ports are up and programs cannot use them.

Detects: an ACTIVE RDMA port, and no /dev/infiniband/uverbs* on the node.
Why: NCCL finds no HCA and falls back to sockets without a word (a third of the speed), and `docker run --device
  /dev/infiniband` fails.
Evidence: the ports, and the empty folder.
Remedy: load the module; rdma-core loads it at boot.
References: https://github.com/luisefigueroa/pulsar-gb10-vllm-stack (silent fall-back to sockets)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import nics
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "RDMA004"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "RDMA ports without device nodes for programs"


def check(context: Context) -> Iterator[Finding]:
    for facts, nic in nics(context):
        active = [port.device for port in known(facts.rdma) or () if port.active]
        if active and nic.verbs == ():
            yield Finding(
                CODE,
                SEVERITY if context.recipe else Severity.WARN,
                facts.node,
                "no /dev/infiniband: RDMA cannot be used",
                f"{', '.join(active)} ACTIVE; no /dev/infiniband/uverbs*",
                "the module ib_uverbs is not loaded, or udev made no nodes",
                f"on {facts.node}: sudo modprobe ib_uverbs; at every boot: sudo apt install rdma-core",
            )
