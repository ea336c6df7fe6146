"""A variable names an interface that the node does not have, or loopback.

Detects: GLOO_SOCKET_IFNAME, TP_SOCKET_IFNAME or NCCL_SOCKET_IFNAME, given in the cluster file, with a name that no
interface of that node has (NCCL takes beginnings of names), or `lo`.
Why: Gloo on loopback says `Connection refused` at 127.0.0.1 or hangs without a line; with a name that is not there the
rank ends. Interface names differ between two units of one maker.
Evidence: the variable with its value, and the node's interfaces.
Remedy: leave it out; the launcher fills in each node's own fabric interface.
References: https://al-engr.com/sglang-deepseek-spark-pivot.html (GLOO_SOCKET_IFNAME); field guide B4, B5
"""

from collections.abc import Iterator

from sparkwright.domain.facts import Interface
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import environments, names
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "RCP001"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "an interface variable names an interface that is not there"
_LOOPBACK = "lo"


def check(context: Context) -> Iterator[Finding]:
    for variable in ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        for spec, value in environments(context, variable) if len(context.specs) > 1 else ():
            facts = context.facts_of(spec)
            links = known(facts.interfaces) if facts else None
            wrong = _wrong(variable, value, links)
            if wrong:
                yield Finding(
                    CODE,
                    SEVERITY,
                    spec.node,
                    f"{variable}={value}: {wrong}",
                    "interfaces: " + (", ".join(link.name for link in links) if links else "not known"),
                    "the ranks would wait for each other at an address where nobody is",
                    f"leave {variable} out: it is filled in with each node's fabric interface",
                )


def _wrong(variable: str, value: str, links: tuple[Interface, ...] | None) -> str:
    """What is wrong with the value; '' when nothing is, or when it cannot be told."""
    given = names(value)
    if _LOOPBACK in given:
        return "that is loopback"
    begins = variable.startswith("NCCL") and not value.startswith("=")
    there = [link.name for link in links or ()]
    lost = [name for name in given if not any(link == name or (begins and link.startswith(name)) for link in there)]
    # NCCL takes what it finds of a list; Gloo needs each of its names.
    bad = len(lost) == len(given) if begins else bool(lost)
    return f"the node has no {', '.join(lost)}" if there and given and bad else ""
