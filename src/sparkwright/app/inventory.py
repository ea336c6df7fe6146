"""Every checkpoint on every node's disk, asked of all nodes at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sparkwright.app.services import Services
from sparkwright.app.tasks import together
from sparkwright.domain.checkpoint import Stored
from sparkwright.domain.cluster import Node
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import Unknown
from sparkwright.domain.recipe import Recipe
from sparkwright.facts import inventory as commands
from sparkwright.facts import inventory as facts
from sparkwright.facts.fact import Fact


@dataclass(frozen=True, slots=True)
class Inventory:
    """stored: node by node. lost: nodes that could not be asked or understood, and why."""

    stored: tuple[Stored, ...]
    lost: dict[str, str] = field(default_factory=dict)

    def lacking(self, one: Stored, nodes: Sequence[str]) -> tuple[str, ...]:
        """Nodes that answered and have no complete copy of it."""
        have = {s.node for s in self.stored if s.complete and s.same == one.same}
        return tuple(node for node in nodes if node not in have and node not in self.lost)


async def inventory(services: Services, nodes: Sequence[Node], recipes: Iterable[Recipe]) -> Inventory:
    """recipes: their model paths show where else models may lie. Changes nothing."""
    # The parents of models that recipes look for at absolute paths or below home
    paths = (recipe.model.path.rstrip("/") for recipe in recipes)
    folders = tuple(dict.fromkeys(path.rpartition("/")[0] or "/" for path in paths if path.startswith(("/", "~/"))))
    answers = await together(_ask(services, node, folders) for node in nodes)
    found = dict(zip((node.name for node in nodes), answers, strict=True))
    lost = {name: answer for name, answer in found.items() if isinstance(answer, str)}
    return Inventory(tuple(s for a in found.values() if not isinstance(a, str) for s in a), lost)


async def _ask(services: Services, node: Node, folders: Sequence[str]) -> tuple[Stored, ...] | str:
    fact = Fact(
        commands.inventory(node.paths.hub, node.paths.models, folders), lambda done: facts.parse(done, node.name)
    )
    try:
        found = fact.read(await services.hosts[node.name].run(fact.command))
    except NodeError as error:
        return error.message
    return f"{node.name}: {found.why} {found.raw}".rstrip() if isinstance(found, Unknown) else found
