"""A plan: pure composition of fabric, placement, engine, ledger and rules. `plan`, `up` and `up --dry-run` share it."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from itertools import chain

from sparkwright.app.cluster_state import model_path, nodes_for
from sparkwright.app.plan.gate import judge_of, weighed
from sparkwright.app.services import ClusterState, LaunchRequest, Services
from sparkwright.checks.attention import attention
from sparkwright.domain.check import Context
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.errors import UsageError
from sparkwright.domain.facts import FabricChoice, NodeFacts, Unknown
from sparkwright.domain.finding import Finding
from sparkwright.domain.homes import expand_home, home_of, resolved_paths
from sparkwright.domain.plan import Keeper, Placement, Plan, RankSpec, stopping
from sparkwright.domain.recipe import Expose, Recipe, Runtime
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.verdict import Action, Remedy
from sparkwright.engines.catalog import engine_of, rehearse, review, simulator
from sparkwright.engines.engine import RenderContext, served_name
from sparkwright.engines.flag_data import FlagLibrary
from sparkwright.engines.identity import as_installed, check_identity, check_quantization
from sparkwright.engines.mods import with_mods
from sparkwright.planner.fabric import choose_fabrics
from sparkwright.planner.judge import RealJudge, facts_after
from sparkwright.planner.parallelism import advise
from sparkwright.planner.remedies import Refusal
from sparkwright.planner.usable import with_published
from sparkwright.recipes.vocabulary import in_recipe

_EVERYWHERE, _LOOPBACK = "0.0.0.0", "127.0.0.1"
_NOT_INSIDE = ("PATH", "HOME")
_OF_MEMORY = ("MEM001", "MEM002", "MEM003")
_NOTHING = "no limit, KV type or number of nodes up to 8 makes it fit: a smaller checkpoint or another model is needed"
_OBSTACLE = "nothing that fits passes all checks; the first obstacle is"


def make_plan(services: Services, request: LaunchRequest, cluster_state: ClusterState, seek: bool = True) -> Plan:
    """Make the plan for this state of the cluster. Findings do not raise: the caller checks them (`stopping`).

    seek: search remedies, estimate speeds and what other splits cost, and label the ranks, too. False judges only: of
    the checks it has what stops a start.
    """
    from sparkwright.checks.catalog import check_all, worst_first  # loaded after the nodes were asked

    request = replace(request, recipe=with_published(request.recipe, cluster_state.published, cluster_state.draft))
    cluster_state, wanted = _count_replaced_as_ours(request, cluster_state), request.recipe
    request = replace(request, recipe=as_installed(wanted, cluster_state.engines))
    recipe, nodes = request.recipe, nodes_for(services, request.recipe)
    library = cluster_state.flags.for_builds([build for build, _ in cluster_state.images.values()])
    placement, findings = _choose_placement(nodes, cluster_state)
    complete = len(placement.fabric) == len(nodes) == recipe.parallelism.world_size
    specs = _specs(services, request, cluster_state, placement, labelled=seek) if complete else ()
    findings += (in_recipe(finding, recipe.engine.name) for finding in review(recipe, specs, library))
    findings += check_identity(wanted, cluster_state.engines, cluster_state.facts, _pythons(services), library)
    advice = advise(recipe, cluster_state.checkpoints, priced=seek)
    refusal = _refusal(services, request, cluster_state) if seek else None
    found = weighed(services, request, cluster_state, nodes, refusal)
    context = Context(
        cluster=services.cluster,
        facts=cluster_state.facts,
        recipe=recipe,
        deployment=request.deployment,
        beside=(*request.beside, *_newcomers(request, cluster_state)),
        specs=specs,
        ledgers=found.ledgers,
        checkpoints=cluster_state.checkpoints,
        images={n.name: cluster_state.images.get(n.name, ("", 0))[1] for n in nodes},
        advice=advice,
        published=cluster_state.published,
    )
    unknown = check_quantization(recipe, advice.quantization, library)
    checked = check_all(context, stopping=not seek)
    findings += (
        *unknown,
        *(with_remedy(f, found.remedies, found.obstacles, found.elsewhere) if found.sought else f for f in checked),
    )
    heeded = attention(worst_first(findings), {}, services.cluster.ignore)
    return Plan(
        deployment=request.deployment,
        recipe=recipe,
        cluster=services.cluster,
        placement=placement,
        specs=specs,
        ledgers=found.ledgers,
        findings=heeded.findings,
        ignored=heeded.ignored,
        bind=bind_address(request, placement.fabric.get(nodes[0].name)),
        replica=request.replica,
        port=recipe.serving.port,
        served_name=served_name(recipe),
        advice=advice,
        verdict=found.verdict,
        remedies=found.remedies,
        speeds=found.speeds,
        loaders=found.loaders,
    )


def _choose_placement(nodes: Sequence[Node], state: ClusterState) -> tuple[Placement, list[Finding]]:
    """The nodes in rank order with the fabric interface of each, and what is wrong with their fabrics."""
    decisions = choose_fabrics(nodes, state.facts)
    choices = {name: decision.choice for name, decision in decisions.items() if decision.choice}
    return Placement(tuple(n.name for n in nodes), choices), [f for d in decisions.values() for f in d.findings]


def _count_replaced_as_ours(request: LaunchRequest, cluster_state: ClusterState) -> ClusterState:
    """The state with the replaced deployment's ranks counted as ours: they stop before anything starts and free memory
    and ports."""
    if not request.replaces:
        return cluster_state

    def ours(facts: NodeFacts) -> NodeFacts:
        if isinstance(facts.ranks, Unknown):
            return facts
        old, new = request.replaces, request.deployment
        ranks = (replace(rank, deployment=new) if rank.deployment == old else rank for rank in facts.ranks)
        return replace(facts, ranks=tuple(ranks))

    return replace(cluster_state, facts={name: ours(facts) for name, facts in cluster_state.facts.items()})


def _newcomers(request: LaunchRequest, cluster_state: ClusterState) -> tuple[str, ...]:
    """Deployments that were forced onto the nodes of one that was there before them: it may come back."""
    ranks = [rank for facts in cluster_state.facts.values() for rank in known_or_none(facts.ranks) or ()]
    if all(rank.deployment != request.deployment for rank in ranks):
        return ()
    return tuple({rank.deployment for rank in ranks if rank.forced and rank.deployment != request.deployment})


def _refusal(services: Services, request: LaunchRequest, cluster_state: ClusterState) -> Refusal:
    """Plan a changed recipe as `plan` would the next time, and name the first check that refuses it.

    Findings about a node that the recipe as it is has, too, do not count: a change of the recipe leaves the node as it
    is (another driver, an engine that is not installed), and each is shown with its own fix.
    """
    here = nodes_for(services, request.recipe)
    names = {node.name for node in services.cluster.nodes}
    elsewhere = RecipeRefusal(services.cluster, cluster_state.flags)

    def stops(asked: LaunchRequest, state: ClusterState) -> list[Finding]:
        return list(stopping(make_plan(services, asked, state, seek=False), request.force))

    @cache
    def of_nodes() -> frozenset[tuple[str, str]]:
        return frozenset(
            (one.code, one.subject)
            for one in stops(request, cluster_state)
            if names.issuperset(one.subject.split(", ")) and one.code not in _OF_MEMORY
        )

    def refused(recipe: Recipe, actions: Sequence[Action]) -> str:
        after = replace(cluster_state, facts=facts_after(cluster_state.facts, actions))
        asked = replace(request, recipe=recipe)
        judge = judge_of(request, after, here)
        if recipe.nodes > len(here):  # on nodes that are not there, or were not asked
            return elsewhere(recipe, judge)
        if recipe.model.label != request.recipe.model.label:
            after = replace(after, checkpoints=judge.ground.of(recipe))
        return _named([one for one in stops(asked, after) if (one.code, one.subject) not in of_nodes()])

    return refused


class RecipeRefusal:
    """Names a check of the recipe alone that refuses it, '' if none does: for nodes that are not there yet.

    families: prefixes of the codes that count, () for all. What refused one variant of a recipe is checked first for
    the next one: most often no change helps against it.
    """

    def __init__(self, cluster: Cluster, library: FlagLibrary, families: tuple[str, ...] = ()) -> None:
        self._cluster, self._library, self._families = cluster, library, families
        self._before = ""

    def __call__(self, recipe: Recipe, judge: RealJudge) -> str:
        from sparkwright.checks.catalog import STOPPING, check_all

        checkpoints = judge.ground.of(recipe)
        advice, counted = advise(recipe, checkpoints, priced=False), judge.ground.ledgers(recipe)
        context = Context(cluster=self._cluster, recipe=recipe, ledgers=counted, checkpoints=checkpoints, advice=advice)
        again = (one for check in STOPPING if check.code == self._before for one in check.findings(context))
        if found := self._stopping(again):
            return _named(found)
        of_engine = rehearse(recipe, self._library), check_quantization(recipe, advice.quantization, self._library)
        found = self._stopping(chain(*of_engine, check_all(context, stopping=True)))
        self._before = found[0].code if found else self._before
        return _named(found)

    def _stopping(self, found: Iterable[Finding]) -> list[Finding]:
        counts = self._families
        return [one for one in found if one.severity.stops and (not counts or one.code.startswith(counts))]


def _named(found: Sequence[Finding]) -> str:
    return f"{found[0].code} ({found[0].title})" if found else ""


def with_remedy(finding: Finding, remedies: Sequence[Remedy], obstacles: Sequence[str], elsewhere: str = "") -> Finding:
    """Put the cheapest remedy that the search found, or that there is none, in place of what a rule alone can guess."""
    if finding.code not in _OF_MEMORY:
        return finding
    none = f"{_OBSTACLE} {obstacles[0]}" if obstacles else _NOTHING
    none = f"{none}; {elsewhere}" if elsewhere else none
    return replace(finding, remedy=remedies[0].change if remedies else none)


def _specs(
    services: Services, request: LaunchRequest, cluster_state: ClusterState, placement: Placement, labelled: bool
) -> tuple[RankSpec, ...]:
    """The ranks of the plan; without labels, which hash all of it, where nobody launches them."""
    nodes = [services.cluster.node(name) for name in dict.fromkeys(placement.nodes)]
    recipe = request.recipe
    context = RenderContext(
        paths={n.name: resolved_paths(n, cluster_state.facts[n.name]) for n in nodes},
        models={n.name: _model(n, recipe, cluster_state) for n in nodes},
        from_hub=bool(recipe.model.id) and not recipe.model.path,
        bind=bind_address(request, placement.fabric[placement.head]),
        port=recipe.serving.port,
        api_key=request.api_key,
        simulated=services.cluster.simulated or simulator(recipe),
        pythons=_pythons(services),
        deployment=request.deployment,
        launch_key=services.launch_key,
    )
    specs = with_mods(recipe, engine_of(recipe).render(recipe, placement, context))
    homes = {name: home_of(facts) for name, facts in cluster_state.facts.items()}
    placed = (_at_home(spec, services.cluster.node(spec.node), homes[spec.node]) for spec in specs)
    if not labelled:
        return tuple(placed)
    return tuple(_label_rank(spec, services, request, context) for spec in placed)


def _pythons(services: Services) -> dict[str, str]:
    return {node.name: services.python_on(node) for node in services.cluster.nodes}


def _at_home(spec: RankSpec, node: Node, home: str) -> RankSpec:
    """The rank with its node's own environment, which is the last word; a container has paths of its own.

    Docker takes `~` for a part of a name, and no shell expands a rank's words: the node's home is filled in here.
    """
    if spec.runtime is Runtime.PROCESS:
        entrypoint = spec.entrypoint and tuple(expand_home(word, home) for word in spec.entrypoint)
        spec = replace(spec, argv=tuple(expand_home(word, home) for word in spec.argv), entrypoint=entrypoint)
    own = {name: value for name, value in node.env if spec.runtime is Runtime.PROCESS or name not in _NOT_INSIDE}
    mounts = tuple(replace(mount, host=expand_home(mount.host, home)) for mount in spec.mounts)
    kept = spec.keeper and replace(spec.keeper, spec=_at_home(spec.keeper.spec, node, home))
    return replace(spec, env={**spec.env, **own}, mounts=mounts, keeper=kept)


def _model(node: Node, recipe: Recipe, cluster_state: ClusterState) -> str:
    """The present or future folder of the weights: staging uses the same place below each node's own folders."""
    facts = cluster_state.facts[node.name]
    there = {name: c for name, c in cluster_state.checkpoints.items() if isinstance(c, Checkpoint) and c.path}
    if node.name in there:
        return there[node.name].path
    if recipe.model.path:
        return expand_home(model_path(node, recipe), home_of(facts)) if there else ""
    where = next(iter(there.values()), None)
    revision = where.revision if where else recipe.model.revision or "main"
    root = f"{resolved_paths(node, facts).hub}/models--{recipe.model.id.replace('/', '--')}"
    return "" if recipe.model.simulated and not where else f"{root}/snapshots/{revision}"


def bind_address(request: LaunchRequest, choice: FabricChoice | None) -> str:
    """The engine's address. Under supervision only the gateway is open to all. Raises UsageError for an open engine."""
    expose, name = request.recipe.serving.expose, request.recipe.name
    if request.replica and request.replica.listen:
        return request.replica.listen
    if expose is Expose.ALL and not request.supervised and not request.recipe.serving.api_key_env:
        raise UsageError(
            f"{name}: serving.expose: all without a gateway and without serving.api_key_env: anybody on the network "
            "could use the engine",
            hint="leave it to `sparkwright up` with its gateway, name the variable that holds a key, or use fabric",
        )
    if expose is Expose.ALL:
        return _LOOPBACK if request.supervised else _EVERYWHERE
    return choice.address if expose is Expose.FABRIC and choice else _LOOPBACK


def _label_rank(spec: RankSpec, services: Services, request: LaunchRequest, context: RenderContext) -> RankSpec:
    recipe = request.recipe
    labels = {
        **spec.labels,
        "deployment": request.deployment,
        "rank": str(spec.rank),
        "world": str(recipe.parallelism.world_size),
        "recipe": f"{recipe.name}@{recipe.profile}" if recipe.profile else recipe.name,
        "recipe-hash": recipe.hash,
        "spec-hash": spec_hash(spec),
        "engine": recipe.engine.label,
        "cluster": services.cluster.name,
        "port": str(context.port),
        "bind": context.bind,
        "served-name": served_name(recipe),
        "key-env": recipe.serving.api_key_env,
        "forced": request.force,
        "simulated": "true" if context.simulated or recipe.model.simulated else "false",
    }
    if request.replica:
        labels["replica-of"] = request.replica.of
    return replace(spec, labels=labels, keeper=_label_keeper(spec.keeper, request, labels["simulated"]))


def _label_keeper(found: Keeper | None, request: LaunchRequest, simulated: str) -> Keeper | None:
    """Its labels name no deployment: it is none of its ranks."""
    if found is None:
        return None
    mark = spec_hash(found.spec)
    own = {"keeper": request.deployment, "rank": str(found.spec.rank), "keeper-hash": mark, "simulated": simulated}
    return replace(found, spec=replace(found.spec, labels=own))


def spec_hash(spec: RankSpec) -> str:
    """12 hex digits over all that makes the rank what it is; labels and the values of secrets are left out.

    So is the process that keeps its weights: it has a hash of its own.
    """
    public = replace(spec, labels={}, secrets={}, keeper=None, files=tuple(replace(f, secret=None) for f in spec.files))
    content = asdict(public) | {"secrets": sorted(spec.secrets)}
    del content["keeper"]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:12]


def same_ranks(plan: Plan, running: Sequence[Mapping[str, str] | str]) -> bool:
    """True if the hashes (rank order) are those of the plan."""
    return [spec.labels["spec-hash"] for spec in plan.specs] == list(running)
