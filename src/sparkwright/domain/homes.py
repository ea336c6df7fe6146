"""Paths that begin with `~`: the only place that knows how a home directory is put in."""

from sparkwright.domain.cluster import Node, NodePaths
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.unknown import Unknown


def expand_home(path: str, home: str) -> str:
    """The path with a leading `~` replaced; `~user` stays, for nobody here knows that home."""
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def home_of(facts: NodeFacts) -> str:
    """The ssh user's home on the node; `~` when it could not be read (then scripts expand it there)."""
    return "~" if isinstance(facts.identity, Unknown) else facts.identity.home


def resolved_paths(node: Node, facts: NodeFacts) -> NodePaths:
    """Node.paths with `~` replaced by the home on the node."""
    home, paths = home_of(facts), node.paths
    return NodePaths(*(expand_home(p, home) for p in (paths.models, paths.hub, paths.cache, paths.state)))
