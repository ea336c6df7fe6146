"""Nodes as they are sold: what a plan assumes where nobody has asked any."""

import tomllib
from functools import cache
from importlib.resources import files

from sparkwright.domain.facts import Gpu, Memory, NodeFacts, Unknown
from sparkwright.domain.units import GIB
from sparkwright.domain.values import dataclass


@dataclass(frozen=True, slots=True)
class NodeType:
    """GiB: of the whole pool, of it free at the start of an engine, either way of that."""

    title: str
    total: float
    free: float
    unsure: float
    discrete: bool = False


@cache
def node_types() -> dict[str, NodeType]:
    """nodes.toml. Raises TypeError for a key of another name."""
    text = (files("sparkwright.planner") / "nodes.toml").read_text(encoding="utf-8")
    return {name: NodeType(**row) for name, row in tomllib.loads(text).items()}


def stock_node(name: str, kind: NodeType, free: int = 0) -> NodeFacts:
    """A node with nothing else on it. free: bytes that are free, 0: what such nodes usually have, within a range."""
    total, unsure = int(kind.total * GIB), 0 if free else int(kind.unsure * GIB)
    there = min(free, total) or int(kind.free * GIB)
    memory = Memory(total, there, there, 0, 0, 0, 0, unsure=unsure)
    size: int | Unknown = total if kind.discrete else Unknown("[N/A]", "shared with the CPU")
    gpu = Gpu(kind.title, "", "", size, memory_reserved=0)  # as CUDA counts
    return NodeFacts(name, 0.0, memory=memory, gpus=(gpu,), gpu_processes=(), ranks=())
