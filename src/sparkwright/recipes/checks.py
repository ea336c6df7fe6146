"""Rules across the keys of one recipe. Each names the keys that it reads: it is left out where one of them is wrong."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sparkwright.domain.recipe import EngineChoice, GatewayTls, Recipe, Runtime
from sparkwright.recipes.checks_build import build_checks
from sparkwright.recipes.checks_environment import flags_and_env
from sparkwright.recipes.problems import Complaint
from sparkwright.recipes.values import shown
from sparkwright.recipes.yaml_lines import Path, dotted

_FREE = {"env", "flags"}  # a wrong entry there leaves the others readable


@dataclass(frozen=True, slots=True)
class Check:
    needs: tuple[str, ...]
    run: Callable[[Recipe], Iterator[Complaint]]


def cross_check(recipe: Recipe, broken: frozenset[Path]) -> tuple[Complaint, ...]:
    """Complaints of all rules whose keys are sound; broken: paths that were already complained about."""
    dead = {
        dotted(path[:n]) for path in broken for n in range(1, len(path) + 1) if n == len(path) or path[0] not in _FREE
    }
    return tuple(c for check in CHECKS if not dead & set(check.needs) for c in check.run(recipe))


def _model(recipe: Recipe) -> Iterator[Complaint]:
    if not recipe.model.label:
        yield ("model",), "`model`: neither `id` (hub id, `organisation/name`) nor `path` (on the nodes) is given"
    if ".." in recipe.model.path.split("/"):
        yield ("model", "path"), f"`model.path`: found {shown(recipe.model.path)}; `..` is not allowed in it"


def _on_disk(recipe: Recipe) -> Iterator[Complaint]:
    size, stays = recipe.model.size, recipe.model.on_disk
    if stays and stays >= size:
        allowed = f"less than `model.size`, which is {size or 'not given'}"
        yield ("model", "on_disk"), f"`model.on_disk`: found {stays} bytes; allowed: {allowed}"


def _simulated(recipe: Recipe) -> Iterator[Complaint]:
    place, twin = ("model", "simulated"), recipe.engine.name == "twin"
    if twin and not recipe.model.simulated:
        why = "so that nobody takes its figures for real"
        yield (
            place,
            f"`model.simulated`: found false; engine {recipe.engine.name} simulates: write `simulated: true`, {why}",
        )
    if recipe.model.simulated and not twin:
        yield place, f"`model.simulated`: found true; engine {recipe.engine.name} is real: leave it out"


def _runtime(recipe: Recipe) -> Iterator[Complaint]:
    engine = recipe.engine
    if engine.runtime is Runtime.PROCESS and engine.image:
        hint = "leave it out (a profile removes it with `image: null`)"
        yield ("engine", "image"), f"`engine.image`: runtime process starts no container; {hint}"
    if engine.runtime is Runtime.DOCKER:
        yield from _image(engine)


def _image(engine: EngineChoice) -> Iterator[Complaint]:
    if engine.venv:
        yield ("engine", "venv"), "`engine.venv`: belongs to `runtime: process`; with docker the engine is in the image"
    if not engine.image:
        yield ("engine",), "`engine.image` is missing: runtime docker needs one, best by digest (`name@sha256:...`)"
    elif "@sha256:" not in engine.image and not engine.image_note:
        hint = "give the digest (`docker inspect -f '{{index .RepoDigests 0}}' IMAGE`)"
        note = "or explain in `engine.image_note` why only a tag is known"
        text = f"`engine.image`: found {shown(engine.image)}, a tag, which can move; {hint} {note}"
        yield ("engine", "image"), text


def _ranks(recipe: Recipe) -> Iterator[Complaint]:
    p, nodes = recipe.parallelism, recipe.nodes
    if p.world_size != nodes:
        observed = f"tp {p.tp} x pp {p.pp} x dp {p.dp} = {p.world_size} ranks on `nodes: {nodes}`"
        why = "each rank needs a GPU, and a GB10 node has one"
        yield ("parallelism",), f"`parallelism`: found {observed}; allowed: a product of {nodes}, for {why}"


def _parallelism(recipe: Recipe) -> Iterator[Complaint]:
    p, path = recipe.parallelism, ("parallelism",)
    if p.ep and p.tp * p.dp == 1:
        why = "experts are spread over tp x dp ranks, so one of the two must be 2 or more"
        yield (*path, "ep"), f"`parallelism.ep`: found true with tp 1 and dp 1; {why}"
    if recipe.engine.name == "llama-cpp" and (p.tp > 1 or p.dp > 1 or p.ep):
        why = "llama.cpp splits layers over nodes (pp) and nothing else"
        yield (
            path,
            f"`parallelism`: found tp {p.tp}, dp {p.dp}, ep {shown(p.ep)}; allowed: tp 1, dp 1, ep false: {why}",
        )
    if p.pp > 1 and recipe.speculation.method == "mtp":
        why = "the draft layer works on the last hidden state, which only the last stage has"
        yield (*path, "pp"), f"`parallelism.pp`: found {p.pp} with `speculation.method: mtp`; allowed: 1: {why}"


def _limits(recipe: Recipe) -> Iterator[Complaint]:
    s = recipe.serving
    if s.port == s.master_port:
        why = "the same as `serving.port`; the ranks' rendezvous needs a port of its own"
        yield ("serving", "master_port"), f"`serving.master_port`: found {s.port}, {why}"
    if 0 < s.batched_tokens < s.sequences:
        why = f"{s.sequences} (`serving.sequences`) or more, for one step must hold a token of each sequence"
        yield ("serving", "batched_tokens"), f"`serving.batched_tokens`: found {s.batched_tokens}; allowed: {why}"


def _gateway(recipe: Recipe) -> Iterator[Complaint]:
    s, gateway = recipe.serving, recipe.serving.door
    path = ("serving", "door")
    taken = {s.port: "serving.port", s.master_port: "serving.master_port"}
    for port, what in ((gateway.port, "`serving.door.port`"), (gateway.port + 1, "the port after it, for metrics,")):
        if port in taken:
            yield (*path, "port"), f"`serving.door.port`: found {gateway.port}; {what} is `{taken[port]}`"
    files = gateway.tls is GatewayTls.FILES
    for name, value in (("certificate", gateway.certificate), ("key", gateway.key)):
        if files != bool(value):
            why = f"expected with `serving.door.tls: files`, found {shown(gateway.tls.value)} and {shown(value)}"
            yield (*path, name), f"`serving.door.{name}`: a path is {why}"


def _mounts(recipe: Recipe) -> Iterator[Complaint]:
    count = Counter(mount.split(":")[1] for mount in recipe.mounts)
    for index, mount in enumerate(recipe.mounts):
        if count[mount.split(":")[1]] > 1:
            why = "another mount has the same place in the container"
            yield ("mounts", index), f"`mounts[{index}]`: found {shown(mount)}; {why}"


def _published(recipe: Recipe) -> Iterator[Complaint]:
    for index, figure in enumerate(recipe.published):
        if not figure.source.strip():
            path = ("published", index, "source")
            yield path, f"`{dotted(path)}` is empty; a figure without its source is not published"


CHECKS = (
    Check(("model", "model.id", "model.path"), _model),
    Check(("model.size", "model.on_disk"), _on_disk),
    Check(("model.simulated", "engine.name"), _simulated),
    Check(("engine.runtime", "engine.image", "engine.image_note", "engine.venv"), _runtime),
    Check(("nodes", "parallelism", "parallelism.tp", "parallelism.pp", "parallelism.dp"), _ranks),
    Check(("engine.name", "parallelism", "speculation"), _parallelism),
    Check(("serving.port", "serving.master_port", "serving.batched_tokens", "serving.sequences"), _limits),
    Check(("serving.port", "serving.master_port", "serving.door"), _gateway),
    Check(("env", "flags", "engine.name"), flags_and_env),
    Check(("mounts",), _mounts),
    Check(("published",), _published),
    Check(("build",), build_checks),
)
