"""MemFree before a launch: page cache of model files is evicted where the plan needs more than is free."""

from sparkwright.app.services import ClusterState, Services, finish_all
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.homes import resolved_paths
from sparkwright.domain.host_facts import LARGE_BLOCK
from sparkwright.domain.ledger import Counts, MemoryLedger
from sparkwright.domain.plan import Plan
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass
from sparkwright.engines.catalog import traits
from sparkwright.engines.traits import Claim
from sparkwright.facts.memory import MEMORY, parse_cache
from sparkwright.planner.pool import own_memory
from sparkwright.remote import repair
from sparkwright.remote.programs import evict_pages

_WORTH = GIB // 2


@dataclass(frozen=True, slots=True)
class Need:
    """The memory a node should have free before its ranks start. free: bytes of MemFree. last: evicted only at the
    end."""

    node: str
    free: int
    last: str
    folders: tuple[str, ...]


def needed_free(ledger: MemoryLedger, plan: Plan) -> int:
    """Bytes of MemFree: what the engine takes at most, or all that is there where its pool is a share of MemFree."""
    engine = traits(plan.recipe)
    if engine.claim is Claim.FREE or engine.counts(plan.recipe) is Counts.FREE:
        return ledger.free
    loading = ledger.loading.bytes if ledger.loading else 0
    return min(max(ledger.claim, loading, ledger.free - ledger.left), ledger.free)


async def free_memory(services: Services, plan: Plan, state: ClusterState) -> None:
    """Frees memory on each node of the plan that lacks MemFree and notes the effect. Raises Unreachable.

    A GPU with memory of its own loads into that.
    """
    if not services.cluster.simulated:
        there = [one for one in plan.ledgers if one.node in state.facts and not own_memory(state.facts[one.node])]
        needs = [_need(services, plan, state, ledger) for ledger in there]
        await finish_all(_on_node(services, plan, need) for need in needs)


def _need(services: Services, plan: Plan, state: ClusterState, ledger: MemoryLedger) -> Need:
    paths, model = resolved_paths(services.cluster.node(ledger.node), state.facts[ledger.node]), plan.recipe.model
    found = state.checkpoints.get(ledger.node)
    last = found.path if isinstance(found, Checkpoint) else ""
    folders = (paths.hub, paths.models, *((model.path,) if model.path.startswith("/") else ()))
    return Need(ledger.node, needed_free(ledger, plan), last, folders)


async def _on_node(services: Services, plan: Plan, need: Need) -> None:
    before = known_or_none(await services.read(need.node, MEMORY))
    if before is None or before.free >= need.free:
        return
    found = known_or_none(parse_cache(await services.run(need.node, evict_pages(need.folders, need.free, need.last))))
    now = known_or_none(await services.read(need.node, MEMORY)) or before
    short = now.free < need.free - _WORTH or now.fragmented
    if short and plan.recipe.loading.drop_caches and (await services.run(need.node, repair.drop_caches())).ok:
        now = known_or_none(await services.read(need.node, MEMORY)) or now
    text = f"{need.node}: MemFree {gib(before.free)}, the load takes {gib(need.free)}: "
    if found is None:
        text += "page cache was not evicted (no python3 there)"
    else:
        text += f"{gib(found.cached - found.left)} of page cache of model files evicted, MemFree {gib(now.free)}"
        text += f"; {found.unread} files belong to another user" if found.unread else ""
    services.notice(text, warning=now.free < need.free - _WORTH)
    if now.fragmented:
        large = gib(now.in_blocks(LARGE_BLOCK))
        what = f"{need.node}: free memory is fragmented: {large} of {gib(now.free)} in blocks of 16 MiB or more"
        services.notice(f"{what}; only a reboot of this node restores them", warning=True)
