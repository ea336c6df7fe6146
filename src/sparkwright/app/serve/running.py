"""The ranks that run already, and what an `up` would do to them."""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sparkwright.app.lease import removed_text
from sparkwright.app.plan.planning import same_ranks
from sparkwright.app.queries import status, unknown
from sparkwright.app.ranks import listed, reached, require_nodes
from sparkwright.app.serve.stop import old_ranks
from sparkwright.app.services import ClusterState, LaunchRequest, Services
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.errors import Unreachable, UsageError
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.live import OVER, SERVING, DeploymentState, Desired, Supervised, phase_text
from sparkwright.domain.plan import Plan
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import dataclass
from sparkwright.facts.store import supervised_fact
from sparkwright.remote import service as commands

# A supervisor shows what it sees every 2 s.
_SILENT, _LOOK_AGAIN, _RECENT = 30.0, 0.5, 600.0
_UNVERIFIED = 60.0
_SHOWN = 6
_NOT_SETTINGS = ("source", "hash", "title", "notes", "references", "published", "conditions", "profiles")


@dataclass(frozen=True, slots=True)
class Old:
    """The deployment to be replaced. desired: the plan it was started from, None if unknown. serves: it serves, or its
    supervisor restarts it."""

    name: str
    ranks: tuple[RankStatus, ...]
    supervised: Supervised | None = None
    desired: Desired | None = None
    serves: bool = True

    @property
    def label(self) -> str:
        if self.desired:
            return f"recipe {self.desired.recipe.label} {self.desired.recipe.hash[:8]}".strip()
        return f"recipe {self.ranks[0].recipe}" if self.ranks else "an unknown recipe"


async def replaced(services: Services, launch_request: LaunchRequest, ranks: Sequence[RankStatus]) -> Old | None:
    """ranks: there are of the same name. Raises UsageError for a name that is not there, or where two would go."""
    name = launch_request.replaces or launch_request.deployment
    if name != launch_request.deployment and any(rank.running for rank in ranks):
        said = f"{launch_request.deployment} runs already: it can be changed, not take the place of {name}"
        raise UsageError(said, f"`sparkwright down {name}` ends that one")
    old = await find_running(services, name)
    if old is None and launch_request.replaces:
        raise await missing(services, name)
    return old


async def the_only_one(services: Services, verb: str) -> str:
    """Its name. Raises UsageError, which names them, unless there is exactly one; NodeError for a lost node."""
    found, troubles = await status(services, probe=False)
    names = list(dict.fromkeys(one.replica_of or one.name for one in found))
    if troubles and len(names) < 2:
        reached(await listed(services, services.cluster.names))
    if len(names) == 1 and not troubles:
        return names[0]
    where = ", ".join(services.cluster.names)
    if not names:
        why = f" ({troubles[0]})" if troubles else ""
        raise UsageError(f"no deployment on {where}{why}", "see `sparkwright status`")
    raise UsageError(f"which deployment? On {where}: {', '.join(names)}", f"`sparkwright {verb} {names[0]}`")


async def serving(services: Services, names: Collection[str]) -> tuple[str, ...]:
    """The names of those deployments that serve, by their supervisors: what they use of memory and ports is in use
    now."""
    found, _ = await status(services, probe=False)
    lives = {one.name: one.supervised.current for one in found if one.supervised}
    return tuple(name for name in sorted(names) if (live := lives.get(name)) and live.phase in SERVING)


async def missing(services: Services, name: str) -> UsageError:
    """The error for a name that `find_running` has not found. Raises NodeError: it may be on a node that does not
    answer."""
    reached(await listed(services, services.cluster.names))
    found, _ = await status(services, probe=False)
    return unknown(services, name, (one.name for one in found))


async def find_running(services: Services, name: str) -> Old | None:
    """None where nothing of it is on any node that answers."""
    found, _ = await status(services, probe=False)
    one = next((one for one in found if one.name == name), None)
    if one is None:
        return None
    node = one.supervised.node if one.supervised else next((r.node for r in one.ranks if r.rank == 0), "")
    desired = None
    if node:
        state = state_of(services, one.supervised) if one.supervised else services.state_on(node)
        told = await services.run(node, commands.read_desired(state, name))
        with suppress(Unreadable):
            desired = from_json(Desired, told.stdout)
    return Old(name, one.ranks, one.supervised, desired, _serves(one.supervised, one.ranks))


def state_of(services: Services, supervised: Supervised) -> str:
    """The state folder with the supervisor's own: the standby has one apart for what it has taken over."""
    return supervised.folder if supervised.taken else services.state_on(supervised.node)


def answers_clients(old: Old) -> bool:
    """True if it serves now, as far as known: by its supervisor's report if fresh, else by its ranks."""
    live = old.supervised.current if old.supervised else None
    return live.phase in SERVING if live else old.serves


async def require_its_nodes(services: Services, old: Old) -> None:
    """Raise Unreachable if it serves and one of its nodes cannot be asked: what would be stopped could not return."""
    if not answers_clients(old):
        return
    known = {rank.node for rank in old.ranks} | ({old.supervised.node} if old.supervised else set())
    known |= set(old.desired.cluster.names if old.desired else services.cluster.names)
    nodes = [name for name in services.cluster.names if name in known]
    await require_nodes(services, old.name, nodes)


def _serves(supervised: Supervised | None, ranks: tuple[RankStatus, ...]) -> bool:
    if supervised and supervised.live:
        return supervised.live.phase not in OVER
    return bool(ranks) and sum(rank.running for rank in ranks) == ranks[0].world


def differences(old: Recipe, new: Recipe) -> tuple[str, ...]:
    """`key: old -> new`, sorted."""
    before, after = (dict(_leaves(json.loads(to_json(one)))) for one in (old, new))
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return tuple(f"{key}: {_value(before.get(key))} -> {_value(after.get(key))}" for key in keys)


def _leaves(tree: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in tree.items():
        if above or key not in _NOT_SETTINGS:
            found += _leaves(value, f"{above}{key}.") if isinstance(value, dict) else [(f"{above}{key}", value)]
    return found


def _value(value: Any) -> str:
    return "none" if value in (None, "", [], 0) else str(value)[:60]


def replaced_text(old: Old, new: Recipe) -> str:
    """The effect of an `up` of `new` on it, as text."""
    state = "serves" if old.serves else "does not serve"
    found = differences(old.desired.recipe, new) if old.desired else ()
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    changed = f" ({'; '.join(found[:_SHOWN])}{more})" if found else ""
    return f"{old.name} {state} ({old.label}); it is replaced by recipe {new.label}{changed}"


def is_running(plan: Plan, found: Sequence[RankStatus]) -> bool:
    """True if exactly the plan's ranks run, on its nodes."""
    alive = _alive(found)
    placed = [r.node for r in alive] == list(plan.placement.nodes)
    return bool(plan.specs) and placed and same_ranks(plan, [r.spec_hash for r in alive])


def describe_running(plan: Plan, cluster_state: ClusterState, old: Old | None = None) -> str:
    """The effect of `up` on the ranks that run already; '' if none run."""
    found = old_ranks(plan, cluster_state)
    if old and old.ranks:
        return replaced_text(old, plan.recipe)
    if is_running(plan, found):
        return f"{plan.deployment} runs already, as planned here: `up` would start nothing"
    count = len(_alive(found))
    changed = f"runs, but not as planned here: `up` would stop its {count} rank(s) and start it again"
    return f"{plan.deployment} {changed}" if count else ""


def _alive(found: Sequence[RankStatus]) -> list[RankStatus]:
    return sorted((r for r in found if r.running), key=lambda r: r.rank)


async def watched(services: Services, node: str, name: str) -> Supervised | None:
    """The present report of a deployment's supervisor; None without one, or if it cannot be read."""
    found = await services.read(node, supervised_fact(node, services.state_on(node)))
    return next((one for one in found if one.deployment == name), None) if isinstance(found, tuple) else None


async def until_serving(
    services: Services, node: str, name: str, request: str = "", goal: Collection[DeploymentState] = SERVING
) -> str:
    """'' once its supervisor has it serving, or why it does not. request: only what comes after it counts.

    Raises Unreachable if the supervisor refuses the request because it cannot ask a node.
    """
    heard, said, accepted = services.clock.monotonic(), "", not request
    while services.clock.monotonic() - heard < _SILENT:
        seen = await watched(services, node, name)
        if seen is None:
            return await removed_text(services, node, name, _RECENT) or f"its supervisor on {node} was removed"
        live = seen.current
        answer = live.answer_to(request) if live else None
        if answer and answer.refused:
            raise Unreachable(node, answer.refused, answer.cure)
        accepted = accepted or answer is not None
        if live and accepted:
            heard = services.clock.monotonic()
            if live.phase in goal:
                return ""
            if live.phase in OVER:
                return live.reason or str(live.phase)
            if live.phase in SERVING and request != live.request:
                return "somebody has asked for a restart since"
            if request and live.unverified and live.at - live.unverified > _UNVERIFIED * services.time_scale:
                return f"{live.reason}; its supervisor tries again when the node answers"
            if said != (said := f"{name}: {phase_text(live.phase)}: {live.reason}"):
                services.notice(said)
        await services.clock.sleep(_LOOK_AGAIN)
    return f"its supervisor on {node} does not answer"
