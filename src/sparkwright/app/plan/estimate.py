"""A plan for nodes that nobody has asked: of a recipe, or of any model of the hub or of a folder on this machine."""

import re
from collections.abc import Iterator, Sequence

from sparkwright.app.cluster_state import HUB_ID
from sparkwright.app.plan.planning import RecipeRefusal, bind_address, with_remedy
from sparkwright.app.services import LaunchRequest, Services
from sparkwright.checks.catalog import check_all, worst_first
from sparkwright.domain.check import Context
from sparkwright.domain.checkpoint import Checkpoint, Defect
from sparkwright.domain.cluster import Cluster, Node, NodePaths
from sparkwright.domain.command import Completed, Secret
from sparkwright.domain.errors import UsageError
from sparkwright.domain.facts import FabricChoice, Unknown
from sparkwright.domain.ledger import Fit
from sparkwright.domain.model import ModelShape
from sparkwright.domain.plan import Placement, Plan
from sparkwright.domain.recipe import EngineChoice, Model, Recipe, Runtime, Serving
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.verdict import Remedy
from sparkwright.engines.catalog import ENGINES, engine_of, rehearse, simulator, traits
from sparkwright.engines.engine import RenderContext, served_name
from sparkwright.engines.flag_data import SHIPPED, FlagLibrary, versions
from sparkwright.engines.identity import check_quantization
from sparkwright.engines.traits import Claim
from sparkwright.facts import checkpoint
from sparkwright.facts.tensor_shape import inferred
from sparkwright.planner.judge import Ground, RealJudge, speeds, verdict
from sparkwright.planner.knobs import Surroundings, context_of, contexts, kv_dtypes, splits_for, tables_elsewhere
from sparkwright.planner.ledger import memory_fraction
from sparkwright.planner.parallelism import advise
from sparkwright.planner.parts import main, missing
from sparkwright.planner.remedies import first_good, remedies
from sparkwright.planner.stock import NodeType, node_types, stock_node
from sparkwright.planner.usable import with_published
from sparkwright.planner.weights import holds_too_little, whole_size
from sparkwright.recipes.vocabulary import in_recipe
from sparkwright.remote import staging

_GGUF = ".gguf"
_SEQUENCES, _BATCHED = 8, 8192  # of a few agents, where nobody gives limits
_CONTEXT = 131072
_FRACTION = 0.8  # 97.4 GiB, which are free on all published nodes but one (planner/nodes.toml)
_OF_MODELS = ("COMPAT", "MEM", "MODEL", "PAR")
_LONG = 120  # characters of a name
_NARROWER = ((8, 0.53), (4, 0.32))  # of 16 bits, with scales and what quantizers leave as it was
_STOCK_PATHS = NodePaths("/home/user/models", "/home/user/hub", "/home/user/cache", "/home/user/state")
HERE = Cluster("here", (Node("here", "local"),), "here")


@dataclass(frozen=True, slots=True)
class EstimateRequest:
    """model: a hub id or a folder of this machine, '' where there is a recipe. kind: of the nodes; free: bytes each.

    What is 0 or '' is left to the recipe, or chosen.
    """

    recipe: Recipe | None = None
    model: str = ""
    folder: str = ""
    engine: str = ""
    nodes: int = 0
    tp: int = 0
    context: int = 0
    kv_dtype: str = ""
    kind: str = "gb10"
    free: int = 0


@dataclass(frozen=True, slots=True)
class Estimated:
    """longest: tokens of the longest context that surely fits, 0 where none does or it is not known. assumed: lines.

    others: quantizations of the model that the hub lists, with their bytes and whether the same plan fits with them.
    """

    plan: Plan
    longest: int
    assumed: tuple[str, ...]
    others: tuple[tuple[str, int, Fit], ...] = ()


def with_specs(plan: Plan, first: int = 1) -> Plan:
    """The plan with the command lines of its stock nodes, for files that are edited before anything starts.

    first: number of its first node, more than 1 for a further group of nodes. Addresses, devices and folders are those
    of a node as NVIDIA sells it, and placeholders where nobody can know them.
    Raises UsageError for an endpoint that would be open to everybody.
    """
    recipe, numbers = plan.recipe, range(first, first + len(plan.placement.nodes))
    nodes = tuple(f"node-{n}" for n in numbers)
    fabric = {
        node: FabricChoice(f"192.168.100.{n}", "enp1s0f0np0", ("rocep1s0f0",))
        for n, node in zip(numbers, nodes, strict=True)
    }
    placement = Placement(nodes, fabric)
    request = LaunchRequest(recipe, plan.deployment, supervised=False)
    secret = Secret("placeholder")
    model = recipe.model
    root = f"{_STOCK_PATHS.hub}/models--{model.id.replace('/', '--')}/snapshots/{model.revision or 'main'}"
    path = model.path if model.path.startswith("/") else f"{_STOCK_PATHS.models}/{model.path.removeprefix('~/')}"
    context = RenderContext(
        paths=dict.fromkeys(nodes, _STOCK_PATHS),
        models=dict.fromkeys(nodes, path if model.path else root),
        from_hub=not model.path,
        bind=bind_address(request, fabric[placement.head]),
        port=recipe.serving.port,
        api_key=secret if recipe.serving.api_key_env else None,
        simulated=simulator(recipe),
        deployment=plan.deployment,
        launch_key=secret,
    )
    specs = engine_of(recipe).render(recipe, placement, context)
    return replace(plan, placement=placement, specs=specs, bind=context.bind)


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One row of a comparison. name: of the recipe or model; trouble: why there is no plan.

    replicas: groups that the nodes are divided into; the plan is that of one of them.
    """

    name: str
    nodes: int
    plan: Plan | None = None
    trouble: str = ""
    replicas: int = 1


_Read = tuple[Checkpoint | None, tuple[tuple[str, int], ...]]


async def estimate(services: Services, asked: EstimateRequest) -> Estimated:
    """Raises UsageError for a model that cannot be read, with what would be needed."""
    kind = _kind(asked)
    read = await _read(services, asked)
    recipe, judge = await _judged(services, asked, read[0])
    plan = _plan(recipe, judge, _library(services), asked.recipe)
    assumed = (_assumed(kind, asked, recipe), *_chosen(asked, recipe))
    longest = 0 if traits(recipe).opaque else _longest(recipe, judge)
    return Estimated(plan, longest, assumed, tuple(_others(recipe, judge, read[1])))


async def compare(services: Services, every: Sequence[EstimateRequest]) -> tuple[ComparisonRow, ...]:
    """Plan each of them, without a search for remedies. The files of each model are read once."""
    files: dict[tuple[str, str, str], _Read] = {}
    rows = []
    for asked in every:
        recipe = asked.recipe
        name = recipe.label if recipe else asked.model or asked.folder
        nodes = asked.nodes or (recipe.nodes if recipe else 1)
        try:
            _kind(asked)
            key = (name, asked.model, asked.folder)
            if key not in files:
                files[key] = await _read(services, asked)
            made, judge = await _judged(services, asked, files[key][0])
            plan = _plan(made, judge, _library(services), recipe, seek=False)
            rows.append(ComparisonRow(name, made.nodes, plan))
        except UsageError as error:
            rows.append(ComparisonRow(name, nodes, trouble=error.message))
    return tuple(rows)


def _kind(asked: EstimateRequest) -> NodeType:
    kind = node_types().get(asked.kind)
    if kind is None:
        raise UsageError(f"--node-type {asked.kind}: not known", f"known are {', '.join(node_types())}")
    if asked.free > kind.total * GIB:
        message = f"--free {gib(asked.free)}: more than the {kind.total:.1f} GiB of a {kind.title}"
        raise UsageError(message, f"--free {kind.free:.0f}GiB is usual; leave it out to assume that")
    return kind


def _library(services: Services) -> FlagLibrary:
    return services.flags.load() if services.flags else SHIPPED


async def _judged(services: Services, asked: EstimateRequest, found: Checkpoint | None) -> tuple[Recipe, RealJudge]:
    """The recipe as asked for, and who judges it on stock nodes."""
    recipe = _with_limits(asked.recipe or _drafted(asked, found), asked, found)
    recipe = await _with_draft(services, recipe)
    if asked.kv_dtype and (known := kv_dtypes(recipe)) and asked.kv_dtype not in known:
        raise UsageError(f"--kv {asked.kv_dtype}: not a type of {recipe.engine.name}", f"it takes {', '.join(known)}")
    names = tuple(f"node-{n + 1}" for n in range(recipe.nodes))
    facts = {name: stock_node(name, _kind(asked), asked.free) for name in names}
    checkpoints = {names[0]: found} if found else {}
    return recipe, RealJudge(Ground(names, recipe.deployment, facts, checkpoints))


async def _read(services: Services, asked: EstimateRequest) -> _Read:
    """The model's files, of a recipe's model only where the recipe does not describe it; its quantizations' sizes."""
    recipe = asked.recipe
    if asked.folder:
        found = checkpoint.parse(await services.run("here", staging.list_path(asked.folder)))
        return _sound(found, asked.folder), ()
    name, revision = (recipe.model.id, recipe.model.revision) if recipe else (asked.model, "")
    if recipe and (not name or (recipe.model.shape and recipe.model.size)):
        return None, ()
    text = await services.headers(name, revision) if services.headers else None
    if isinstance(text, str):
        rows = (line.split("\t") for line in text.splitlines() if line.startswith("variant\t"))
        return _sound(checkpoint.parse(Completed(0, text, "")), name), tuple((row[1], int(row[2])) for row in rows)
    if recipe:
        return None, ()
    if text is None:
        why = "the hub cannot be reached" if services.headers else "HF_HUB_OFFLINE is set"
        raise UsageError(f"{name}: {why}", "give the folder with its config.json in place of the name: ./FOLDER")
    raise UsageError(f"{name}: {text.why}", "a private hub: export HF_ENDPOINT; or give a folder: plan ./FOLDER")


async def _with_draft(services: Services, recipe: Recipe) -> Recipe:
    """The recipe with the dimensions of its separate draft model, if the hub has its configuration."""
    name = str(recipe.speculation.options.get("model") or "")
    text = await services.headers(name, "") if services.headers and HUB_ID.fullmatch(name) else None
    found = checkpoint.parse(Completed(0, text, "")) if isinstance(text, str) else None
    draft = found.shape if isinstance(found, Checkpoint) else None
    return with_published(recipe, None, draft if isinstance(draft, ModelShape) else None)


def _sound(found: Checkpoint | Unknown, name: str) -> Checkpoint:
    if isinstance(found, Unknown):
        raise UsageError(f"{name}: {found.why}")
    if name.endswith(_GGUF) and isinstance(found.shape, Unknown) and not found.flaws:
        raise UsageError(f"{name}: {found.shape.why}", "llama.cpp reads that header, too: get the file again")
    if found.weights and not isinstance(found.shape, ModelShape):
        return _inferred(found)
    if found.shape is None and not found.files:
        raise UsageError(f"{name}: nothing is there", "give a hub id, org/model, or a folder with a config.json")
    if isinstance(found.shape, Unknown):
        raise UsageError(f"{name}: {found.shape.why}", _mended(found.shape.why))
    if found.shape is None:
        raise UsageError(f"{name}: neither config.json nor weights", "give a hub id or folder that has them")
    return found


def _mended(why: str) -> str:
    """A hint for a config.json that nobody can plan with."""
    if "neither" in why:
        return "it needs at least layers, heads and hidden size"
    if "not known here" in why:
        return "a newer sparkwright may know it; else plan a recipe that gives model.size and model.shape"
    return "correct it, or get the model's own again"


def _inferred(found: Checkpoint) -> Checkpoint:
    """The checkpoint with dimensions inferred from the tensors' sizes; the config adds at most the context and the
    heads."""
    shape = inferred(found.tensors, "" if any(flaw.defect is Defect.CONFIG for flaw in found.flaws) else found.config)
    why = found.shape.why if isinstance(found.shape, Unknown) else "there is no config.json"
    doubt = f"{why}; dimensions are estimated from the tensors' sizes alone, in a wide range" if shape else why
    return replace(found, shape=shape or found.shape, doubts=(doubt, *found.doubts[1:]))


def _drafted(asked: EstimateRequest, found: Checkpoint | None) -> Recipe:
    """A recipe for the model as somebody would begin it."""
    shape = found.shape if found and isinstance(found.shape, ModelShape) else None
    packed = shape.quantization == "gguf" if shape else asked.folder.endswith(_GGUF)
    name = asked.engine or next(name for name, engine in ENGINES.items() if engine.traits.gguf is packed)
    if name not in ENGINES:
        raise UsageError(f"--engine {name}: not known", f"known are {', '.join(sorted(ENGINES))}")
    if ENGINES[name].traits.gguf and shape and not packed:
        hint = "leave out --engine, or convert it first: llama.cpp's convert_hf_to_gguf.py"
        raise UsageError(f"{asked.model or asked.folder}: has no GGUF file, and {name} reads nothing else", hint)
    version = (versions(name) or ("",))[-1]
    whole = found and not (found.damaged or found.partial or holds_too_little(found))
    size = found.weights if found and whole else 0
    model = Model(id=asked.model, path=asked.folder, size=size, shape=shape)
    slug = re.sub(r"[^a-z0-9.]+", "-", model.label.rstrip("/").rpartition("/")[2].lower()).strip("-.")[:_LONG]
    made = Recipe(slug or "model", model.label, model, EngineChoice(name, version, Runtime.PROCESS))
    longest = min(_CONTEXT, context_of(made, shape) or _CONTEXT)
    fraction = 0.0 if traits(made).claim is Claim.NONE else min(_FRACTION, traits(made).proven[0])
    limits = Serving(context=longest, sequences=_SEQUENCES, batched_tokens=_BATCHED, memory_fraction=fraction)
    return replace(made, serving=limits)


def _with_limits(recipe: Recipe, asked: EstimateRequest, found: Checkpoint | None) -> Recipe:
    """The recipe with the user's limits in place of its own, split over the wanted nodes with the fewest changes."""
    serving = replace(
        recipe.serving,
        context=asked.context or recipe.serving.context,
        kv_dtype=asked.kv_dtype or recipe.serving.kv_dtype,
    )
    recipe = replace(recipe, serving=serving)
    count = asked.nodes or asked.tp or recipe.nodes
    if asked.tp:
        split = replace(recipe.parallelism, tp=asked.tp, pp=max(1, count // asked.tp), dp=1)
        return replace(recipe, nodes=count, parallelism=split)
    if count == recipe.nodes:
        return recipe
    shape = found.shape if found and isinstance(found.shape, ModelShape) else recipe.model.shape
    allowed = splits_for(recipe, shape, count)
    if not allowed:
        raise UsageError(f"{recipe.label}: no way to split it over {count} nodes", "give --nodes of another count")
    return replace(recipe, nodes=count, parallelism=allowed[0])


def _plan(recipe: Recipe, judge: RealJudge, library: FlagLibrary, file: Recipe | None, seek: bool = True) -> Plan:
    """file: the user's recipe as written; None: it was made for the question. seek: search remedies, too."""
    own = file is not None
    facts = judge.ground.facts
    counted = judge.ground.ledgers(recipe)
    found, checkpoints = verdict(counted, recipe.parallelism.dp), judge.ground.checkpoints
    world = Surroundings(
        nodes=len(facts),
        shape=judge.ground.shape(recipe),
        kv_dtypes=kv_dtypes(recipe),
        fraction=0.0 if traits(recipe).claim is Claim.NONE else memory_fraction(recipe),
        file_split=file.parallelism if file else None,
    )
    sought = seek and found.known and found.fit is not Fit.FITS
    cluster = Cluster("stock", tuple(Node(name, name) for name in facts), next(iter(facts)))
    advice = advise(recipe, checkpoints)
    proposed: tuple[Remedy, ...] = ()
    obstacles: tuple[str, ...] = ()
    elsewhere = tables_elsewhere(recipe, judge.ground.shape(recipe)) if sought else ""
    if sought:
        families = () if own else _OF_MODELS
        refusal = RecipeRefusal(cluster, library, families)
        proposed, obstacles = remedies(recipe, judge, world, lambda other, _: refusal(other, judge))
    context = Context(cluster=cluster, facts={}, recipe=recipe, ledgers=counted, checkpoints=checkpoints, advice=advice)
    about_engine = (in_recipe(one, recipe.engine.name) for one in rehearse(recipe, library)) if own else ()
    every = (*about_engine, *check_quantization(recipe, advice.quantization, library), *check_all(context))
    return Plan(
        deployment=recipe.deployment,
        recipe=recipe,
        cluster=cluster,
        placement=Placement(tuple(facts), {}),
        specs=(),
        ledgers=counted,
        findings=tuple(
            with_remedy(one, proposed, obstacles, elsewhere) if sought else one
            for one in worst_first(every)
            if own or one.code.startswith(_OF_MODELS)
        ),
        bind="",
        port=recipe.serving.port,
        served_name=served_name(recipe),
        advice=advice,
        verdict=found,
        remedies=proposed,
        speeds=speeds(recipe, judge, found),
        loaders=judge.loaders(recipe),
    )


def _others(recipe: Recipe, judge: RealJudge, variants: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int, Fit]]:
    """Fits of other quantizations by their bytes alone: the layers a quantizer kept are unknown before its files are
    read.

    Where the hub lists none, of checkpoints of eight and of four bits in place of one that was never quantized.
    """
    shape = judge.ground.shape(recipe)
    if shape is None:
        return
    whole = whole_size(recipe, shape, judge.ground.checkpoints.get(judge.ground.nodes[0])) or _count(shape)
    if not variants and shape.format == "bf16" and not shape.expert_format and whole:
        variants = [(f"a checkpoint of {bits} bits", int(whole * share)) for bits, share in _NARROWER]
    for name, size in variants:
        bare = replace(shape, quantization="", format="", expert_format="", group=0, rows=0, expert_group=0)
        made = replace(recipe, model=Model(id=name, size=size, shape=bare))
        yield name, size, verdict(replace(judge.ground, checkpoints={}).ledgers(made)).fit


def _count(shape: ModelShape) -> int:
    """Bytes of the weights by their dimensions; 0 where one of these is not known."""
    return 0 if missing(shape) else int(sum(part.bytes for part in main(shape)))


def _longest(recipe: Recipe, judge: RealJudge) -> int:
    """The longest context, of those that people use, of which one sequence surely fits; 0 if tokens are not counted."""
    shape = judge.ground.shape(recipe)
    most = shape.positions if shape else 0
    every = tuple(dict.fromkeys((most, *contexts(most)))) if most else ()

    def fits(index: int) -> bool:
        found = judge.verdict(replace(recipe, serving=replace(recipe.serving, context=every[index])))
        return found.known and found.fit is Fit.FITS and bool(found.kv) and found.sequences >= 1

    index = first_good(len(every), fits)
    return every[index] if index is not None else 0


def _assumed(kind: NodeType, asked: EstimateRequest, recipe: Recipe) -> str:
    free = f"{gib(asked.free)} free" if asked.free else f"{kind.free:.1f} GiB free, {kind.unsure:g} either way"
    return f"{recipe.nodes} x {kind.title}: {kind.total:.1f} GiB, {free}; no node was asked"


def _chosen(asked: EstimateRequest, recipe: Recipe) -> tuple[str, ...]:
    if asked.recipe:
        return ()
    s, engine = recipe.serving, recipe.engine
    limits = f"{s.context:,} tokens of context, {s.sequences} sequences, {s.batched_tokens:,} batched tokens"
    fraction = f", memory fraction {s.memory_fraction:g}" if s.memory_fraction else ""
    return (f"{engine.name} {engine.version}, {limits}{fraction}",)
