"""NCCL_IB_HCA names a device that the node does not have or that has no link, or none at all.

Detects: NCCL_IB_HCA of a node's entry in the cluster file against the node's RDMA devices; an empty value. NCCL takes
beginnings of names, unless the value begins with `=`.
Why: without a usable device NCCL falls back to TCP or waits without a line; one owner reports a silent deadlock when it
is not pinned. The launcher pins it per rank; only a value of one's own can be wrong.
Evidence: the value, and the devices with their state.
Remedy: leave it out, or give `fabric.hcas` of the node.
References: field guide B4, B5; https://conselara.dev/tags/vllm/ (`NCCL_IB_HCA set explicitly`)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import environments, names
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "RCP002"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "NCCL_IB_HCA names no usable device of the node"


def check(context: Context) -> Iterator[Finding]:
    for spec, value in environments(context, "NCCL_IB_HCA") if len(context.specs) > 1 else ():
        facts = context.facts_of(spec)
        ports = known(facts.rdma) if facts else None
        active = [port.device for port in ports or () if port.active]
        dead = [name for name in names(value) if not any(_is(device, name, value) for device in active)]
        if ports and dead:
            yield Finding(
                CODE,
                SEVERITY,
                spec.node,
                f"NCCL_IB_HCA={value}: " + (f"no link on {', '.join(dead)}" if dead != [""] else "names no device"),
                ", ".join(f"{port.device} {port.state}" for port in ports),
                "the ranks would fall back to TCP, or wait for each other without a line",
                "leave NCCL_IB_HCA out (it is filled in per rank), or name the node's devices in `fabric.hcas`",
            )


def _is(device: str, name: str, value: str) -> bool:
    return device == name or bool(name and not value.startswith("=") and device.startswith(name))
