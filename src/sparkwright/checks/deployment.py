"""Checks of the recipe as a whole, and of what runs on its nodes already."""

from collections.abc import Iterator, Sequence

from sparkwright.checks.reading import running
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import Listener, NodeFacts
from sparkwright.domain.finding import BLOCK, INFO, OVERRIDE
from sparkwright.domain.plan import Advice, RankSpec, split_text
from sparkwright.domain.recipe import RecipeState
from sparkwright.domain.unknown import known_or_none

_ANY = ("::", "*")
_ANY_IPV4 = "0.0.0.0"


def recipe_refused(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    if recipe and recipe.state is RecipeState.REFUSED:
        remedy = f"sparkwright up {recipe.instead}" if recipe.instead else "sparkwright recipes list   # what is ready"
        yield Found(recipe.state_reason or f"state: {recipe.state}", fix=remedy, subject=recipe.name)


def recipe_untested(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    if recipe and recipe.state is RecipeState.DOCUMENTED:
        yield Found(recipe.state_reason or (", ".join(recipe.references[:2]) or "no references"), subject=recipe.name)


def split_impossible(context: Context) -> Iterator[Found]:
    advice = context.advice
    if context.recipe is None or advice is None or advice.chosen is None or advice.chosen.possible:
        return
    yield Found(
        "; ".join(advice.chosen.refused) + (f" ({advice.source})" if advice.source else ""),
        title=f"{split_text(advice.chosen.parallelism)} is not possible for this model",
        cause=f"{context.recipe.engine.name} would refuse it after the ranks have started",
        fix=_other_split(advice),
        subject=context.recipe.name,
    )


def _other_split(advice: Advice) -> str:
    if advice.nearest:
        p = advice.nearest.parallelism
        return f"parallelism: {{tp: {p.tp}, pp: {p.pp}, dp: {p.dp}, ep: {str(p.ep).lower()}}}"
    counts = " or ".join(str(count) for count in advice.other_nodes[:2])
    return f"no split works on as many nodes; one does on {counts}" if counts else "no split of this model works here"


def node_in_use(context: Context) -> Iterator[Found]:
    if context.recipe is None or not context.deployment:
        return
    known = (context.deployment, *context.beside)
    for facts in context.facts.values():
        others = {r.deployment: r for r in running(facts) or () if r.deployment not in known}
        for name, rank in others.items():
            yield Found(
                f"rank {rank.rank} of {rank.world} ({rank.recipe or rank.engine}), {rank.runtime} {rank.handle}",
                title=f"deployment {name} runs on this node",
                fix="wait until it serves (sparkwright status), "
                f"sparkwright down {name}, or `up` with `--replace {name}`",
                subject=facts.node,
            )


def planned_next_to(context: Context) -> Iterator[Found]:
    for facts in context.facts.values() if context.recipe and context.deployment else ():
        others = sorted({r.deployment for r in running(facts) or () if r.deployment in context.beside})
        if others:
            ports = ", ".join(
                str(port) for spec in context.specs if spec.node == facts.node for _, port in spec.listens
            )
            yield Found(
                f"{', '.join(others)}: what it uses is in use in the plan; ports of this one: {ports or 'none'}",
                title=f"planned next to {', '.join(others)}",
                subject=facts.node,
            )


def port_taken(context: Context) -> Iterator[Found]:
    for spec in context.specs:
        facts = context.facts.get(spec.node)
        if facts is None:
            continue
        for address, port in spec.listens:
            listeners = known_or_none(facts.listeners) or ()
            found = [entry for entry in listeners if entry.port == port and overlap(address, entry.address)]
            holder = next((entry for entry in found if entry.process), found[0] if found else None)
            if holder and not _is_replaced(context, facts, port):
                yield _finding(context, spec, f"{address}:{port}", holder)


def overlap(wanted: str, taken: str) -> bool:
    """True if two listening addresses overlap. `::` takes IPv4 too (bindv6only is off unless somebody sets it)."""
    wanted, taken = wanted.removeprefix("::ffff:"), taken.removeprefix("::ffff:")
    if wanted == taken or wanted in _ANY or taken in _ANY:
        return True
    return _ANY_IPV4 in (wanted, taken) and ":" not in wanted + taken


def _is_replaced(context: Context, facts: NodeFacts, port: int) -> bool:
    """Held by our running rank: its port is known (SGLang's workers answer on it, too), and what else a head listens on
    has the same recipe."""
    own = [rank for rank in running(facts) or () if rank.deployment == context.deployment]
    api = context.recipe.serving.port if context.recipe else 0
    return any(rank.port == port or (rank.rank == 0 and port != api) for rank in own)


def _finding(context: Context, spec: RankSpec, wanted: str, holder: Listener) -> Found:
    facts = context.facts[spec.node]
    other = next((rank for rank in running(facts) or () if rank.port == holder.port), None)
    near = sorted({rank.deployment for rank in running(facts) or () if rank.deployment != context.deployment})
    who = holder.process or "a process of another user"
    if near and not other:
        who += f"; deployment {', '.join(near)} runs here and may be its holder"
    if other:
        who = f"{other.deployment}, a deployment of sparkwright"
    return Found(
        f"ss: {holder.address}:{holder.port} {holder.process or '(unknown process)'}; expected: {wanted}",
        title=f"port {holder.port} is in use by {who}",
        fix=_free_port(context, spec, holder.port, other.deployment if other else "", near),
        subject=f"rank {spec.rank} on {spec.node}",
    )


def _free_port(context: Context, spec: RankSpec, port: int, other: str, near: Sequence[str]) -> str:
    serving = context.recipe.serving if context.recipe else None
    stop = f"sparkwright down {other}" if other else f"stop it (on {spec.node}: sudo ss -ltnp 'sport = :{port}')"
    if serving and port == serving.master_port and near and not other:
        # Deployments of one recipe meet at the same port: what holds it is most likely their rendezvous.
        stop = f"sparkwright down {near[0]}, if it is the rendezvous of its ranks (else {stop})"
    names = {serving.port: "serving.port", serving.master_port: "serving.master_port"} if serving else {}
    return f"{stop}, or set another {names[port]}" if port in names else stop


CHECKS = explained(
    __file__,
    Check("REC001", BLOCK, "recipe is refused: known not to work", recipe_refused),
    Check("REC002", INFO, "recipe not yet tested on hardware", recipe_untested),
    Check("PAR001", OVERRIDE, "parallelism not possible for this model", split_impossible),
    Check("RANK001", OVERRIDE, "another deployment is not serving yet", node_in_use),
    Check("RANK002", INFO, "planned next to another deployment", planned_next_to),
    Check("PORT001", BLOCK, "port already in use", port_taken),
)
