"""`sparkwright recipes inventory`: every checkpoint on every node's disk, and which recipes can use it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from sparkwright.adapters.files import open_recipe, recipe_names
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.cluster_state import Inventory, inventory
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned, echo_text, fold_line, simulated_mark
from sparkwright.cli.kinds import renamed_option
from sparkwright.domain.checkpoint import Stored, Usability, Use
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import counted, gib
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.planner.usable import list_uses
from sparkwright.wiring import places

_SHOWN = 3
_HEADS = ("CHECKPOINT", "REVISION", "FORMAT", "SIZE", "STATE", "NODES", "RECIPES")


@dataclass(frozen=True, slots=True)
class _Seen:
    """The inventory with what it is shown with. apart: a line for each node."""

    cluster: Cluster
    found: Inventory
    recipes: tuple[Recipe, ...]
    apart: bool

    def uses(self, one: Stored) -> tuple[Use, ...]:
        return list_uses(one, self.recipes, self.found.stored)

    def lacking(self, one: Stored) -> tuple[str, ...]:
        return self.found.lacking(one, self.cluster.names)


@click.command(name="inventory", short_help="List the checkpoints on all nodes' disks.")
@renamed_option(
    "--by-node", "apart", was="--nodes", is_flag=True, help="Print each copy on a line of its own, node by node."
)
@shared.cluster_options
@shared.json_option
def inventory_command(apart: bool, where: ClusterOptions, as_json: bool) -> None:
    """List the checkpoints on all nodes' disks (hub cache, folders, GGUF files) and the recipes that can use them.

    \b
    Examples:
      sparkwright recipes inventory
      sparkwright recipes inventory --by-node --cluster lab.yaml
    """
    opened, recipes = shared.open_cluster(where), tuple(_recipes())
    found = shared.drive_on(opened, where, lambda services: inventory(services, opened.nodes, recipes), quiet=True)
    seen = _Seen(opened, found, recipes, apart)
    shared.answer(as_json, _json(seen), _text(seen))
    for why in found.lost.values():
        echo_text(click.style(f"error: {why}", fg="red"), err=True)
    if found.lost:
        raise click.exceptions.Exit(3)


def _recipes() -> Iterator[Recipe]:
    """All that can be loaded, each with those of its profiles that serve another model."""
    for name in recipe_names(places()):
        try:
            base = open_recipe(name, places())
            variants = [open_recipe(name, places(), profile) for profile in base.profiles]
        except RecipeError:  # `recipes list` says what is wrong with it
            continue
        yield replace(base, profile="")  # asked for by its bare name
        yield from (one for one in variants if one.model != base.model)


def _text(seen: _Seen) -> str:
    groups, answered = _groups(seen), len(seen.cluster.names) - len(seen.found.lost)
    what = counted(len(groups), "checkpoint") if groups else "no checkpoint"
    head = f"{simulated_mark(seen.cluster.simulated)}{what} on {counted(answered, 'node')}"
    if not groups:
        return head
    table = aligned([_HEADS, *(_row(seen, group) for group in groups)])
    return "\n".join([head, table, *(line for group in groups for line in _notes(seen, group))])


def _groups(seen: _Seen) -> list[list[Stored]]:
    """Copies of one checkpoint together, complete or not; each for itself with --nodes."""
    if seen.apart:
        return [[one] for one in seen.found.stored]
    groups: dict[object, list[Stored]] = {}
    for one in seen.found.stored:
        groups.setdefault((*one.same, one.complete), []).append(one)
    return list(groups.values())


def _row(seen: _Seen, group: Sequence[Stored]) -> tuple[str, ...]:
    one = group[0]
    names = [use.recipe for use in seen.uses(one) if use.how is Usability.YES]
    state = "complete" if one.complete else "incomplete"
    nodes = " ".join(s.node for s in group)
    return one.label, one.checkpoint.revision[:8], one.format, gib(one.size), state, nodes, " ".join(names) or "-"


def _notes(seen: _Seen, group: Sequence[Stored]) -> Iterator[str]:
    """Notes for which the table has no room."""
    one, uses = group[0], seen.uses(group[0])
    lacking = seen.lacking(one)
    usable = any(use.how is not Usability.NO for use in uses)
    if not one.complete:
        more = f" and {len(one.missing) - _SHOWN} more" if len(one.missing) > _SHOWN else ""
        yield _note(one, f"incomplete on {' '.join(s.node for s in group)}: {', '.join(one.missing[:_SHOWN])}{more}")
    elif lacking and usable:
        yield _note(one, f"not on {' '.join(lacking)}: `up` copies it there over the fabric")
    for use in (use for use in uses if use.how is Usability.COULD):
        change = ", ".join(f"{key}: {value}" for key, value in use.change)
        yield _note(one, f"{use.recipe} could use it with {change}" + (f" ({use.why})" if use.why else ""))
    if not usable:
        yield from (_note(one, f"not for {use.recipe}: {use.why}") for use in uses[:_SHOWN])


def _note(one: Stored, text: str) -> str:
    return fold_line(f"{one.label}: {text}", 4)


def _json(seen: _Seen) -> dict[str, Any]:
    return {
        "cluster": seen.cluster.name,
        "simulated": seen.cluster.simulated,
        "unreachable": dict(seen.found.lost),
        "checkpoints": [_entry(seen, one) for one in seen.found.stored],
    }


def _entry(seen: _Seen, one: Stored) -> Mapping[str, Any]:
    return {
        "node": one.node,
        "id": one.id,
        "place": one.place,
        "path": one.checkpoint.path,
        "revision": one.checkpoint.revision,
        "format": one.format,
        "bytes": one.checkpoint.bytes,
        "weights": one.size,
        "complete": one.complete,
        "missing": list(one.missing),
        "lacking": list(seen.lacking(one)),
        "recipes": [asdict(use) | {"change": dict(use.change)} for use in seen.uses(one)],
    }
