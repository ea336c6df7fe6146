"""RDMA is switched off though the nodes have it.

Detects: NCCL_IB_DISABLE=1, or NCCL_NET=Socket, given in the recipe or in a node's entry, with an active RDMA device.
Why: recipes set it to get past a hang; the traffic then takes TCP, which was measured at less than 60 % of RDMA's.
Evidence: the variable, and the node's active devices.
Remedy: remove it, and mend what hangs; for TCP on purpose write `hcas: []` in the node's entry, which says so.
References: field guide B5 (CHE, R0B); https://conselara.dev/tags/vllm/ (`NCCL_IB_DISABLE=0`)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import environments
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "RCP003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "RDMA is switched off though the nodes have it"
_OFF = {"NCCL_IB_DISABLE": "1", "NCCL_NET": "socket"}


def check(context: Context) -> Iterator[Finding]:
    for variable, off in _OFF.items():
        for spec, value in environments(context, variable) if len(context.specs) > 1 else ():
            facts = context.facts_of(spec)
            active = [port.device for port in (known(facts.rdma) or () if facts else ()) if port.active]
            if value.lower() == off and active:
                yield Finding(
                    CODE,
                    SEVERITY,
                    spec.node,
                    f"{variable}={value} leaves RDMA unused",
                    f"active: {', '.join(active)}",
                    "the exchanges between nodes take TCP, at well under the fabric's speed",
                    f"remove {variable}; for TCP on purpose write `hcas: []` in the node's entry",
                )
