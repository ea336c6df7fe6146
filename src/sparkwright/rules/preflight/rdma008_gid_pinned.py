"""NCCL_IB_GID_INDEX names an entry that is not RoCE v2 over IPv4.

Detects: the recipe, or a file or session of a node, sets NCCL_IB_GID_INDEX to a number, and on an ACTIVE port of a
  node the entry at that index is empty, link-local or RoCE v1. Also: it is set and empty.
Why: the connection ends with `ibv_modify_qp failed ... local GID ::`, or goes through a link-local address that the
  peer does not know. Three owners found that an empty value is not the same as none.
Evidence: where it is set, and what stands at that index.
Remedy: do not set it: NCCL finds the entry from NCCL_IB_ROCE_VERSION_NUM=2 and NCCL_IB_ADDR_FAMILY=AF_INET.
References: https://github.com/nepenth/deepseek-v4-flash-gb10; https://github.com/bytebunkerlabs/dgx-spark-serve
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import rails, wired
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "RDMA008"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "NCCL_IB_GID_INDEX names a wrong entry"

_NAME = "NCCL_IB_GID_INDEX"


def check(context: Context) -> Iterator[Finding]:
    for facts in wired(context):
        for where, value in _pinned(context, facts):
            wrong = _wrong(facts, value)
            if wrong:
                by_recipe = where == "the recipe"
                yield Finding(
                    CODE,
                    SEVERITY if by_recipe else Severity.WARN,
                    facts.node,
                    f"{_NAME}={value} is wrong on this node",
                    f"{where}: {_NAME}={value}; {wrong}",
                    "the GID table was renumbered since, or the number is another node's",
                    f"take {_NAME} out of {where}; NCCL finds it by NCCL_IB_ROCE_VERSION_NUM=2",
                )


def _pinned(context: Context, facts: NodeFacts) -> Iterator[tuple[str, str]]:
    if context.recipe and _NAME in context.recipe.env:
        yield "the recipe", context.recipe.env[_NAME]
    settings = known(facts.settings)
    for setting in settings.communication if settings else ():
        if setting.name == _NAME:
            yield setting.where, setting.value


def _wrong(facts: NodeFacts, value: str) -> str:
    """What is at that index of the first port where it is not the right kind; '' where it is, or nobody can tell."""
    index = int(value) if value.isascii() and value.isdigit() and len(value) < 4 else None
    if value == "":
        return "set and empty, which is not the same as not set"
    for port in (rail.port for rail in rails(facts) if rail.link.addresses and rail.port.gids):
        entry = next((gid for gid in port.gids if gid.index == index), None)
        if index is not None and not (entry and entry.version.endswith("v2") and entry.ipv4):
            kind = f"RoCE {entry.version} {entry.ipv4 or 'link-local'}" if entry else "nothing"
            return f"{port.device} has {kind} at {index}"
    return ""
