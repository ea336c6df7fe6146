"""Rules across the keys of one recipe. Each names the keys that it reads: it is left out where one of them is wrong."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from difflib import get_close_matches

from sparkwright.domain.engine import CUSTOM
from sparkwright.domain.errors import UsageError
from sparkwright.domain.recipe import Build, GatewayTls, Recipe, Runtime
from sparkwright.domain.values import dataclass
from sparkwright.engines.catalog import known_names
from sparkwright.engines.options import is_fitting
from sparkwright.engines.variants import variant_names, variants_for
from sparkwright.loadgen.gate_lines import parse
from sparkwright.recipes.cluster_file import env_complaints
from sparkwright.recipes.engine_schema import definition_complaints
from sparkwright.recipes.problems import Complaint
from sparkwright.recipes.values import has_control, is_secret_name, looks_secret, shown_value
from sparkwright.recipes.vocabulary import PER_RANK_ENV, flag_word, key_of_flag
from sparkwright.recipes.yaml_lines import Path, dotted

_FREE = {"env", "flags"}  # a wrong entry there leaves the others readable


@dataclass(frozen=True, slots=True)
class CrossCheck:
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
        yield ("model", "path"), f"`model.path`: found {shown_value(recipe.model.path)}; `..` is not allowed in it"


def _on_disk(recipe: Recipe) -> Iterator[Complaint]:
    size, stays = recipe.model.size, recipe.model.on_disk
    if stays and stays >= size:
        allowed = f"less than `model.size`, which is {size or 'not given'}"
        yield ("model", "on_disk"), f"`model.on_disk`: found {stays} bytes; allowed: {allowed}"


def _simulated(recipe: Recipe) -> Iterator[Complaint]:
    place, simulates = ("model", "simulated"), recipe.engine.name == "simulator"
    if simulates and not recipe.model.simulated:
        hint = "write `simulated: true`, so that nobody takes its figures for real"
        yield place, f"`model.simulated`: found false; engine {recipe.engine.name} simulates: {hint}"
    if recipe.model.simulated and not simulates:
        yield place, f"`model.simulated`: found true; engine {recipe.engine.name} is real: leave it out"


def _runtime(recipe: Recipe) -> Iterator[Complaint]:
    engine = recipe.engine
    if not engine.version and engine.name == "simulator":
        yield ("engine", "version"), "`engine.version` is missing: the simulator plays the version that it is given"
    if engine.runtime is Runtime.PROCESS and engine.image:
        hint = "leave it out (a profile removes it with `image: null`)"
        yield ("engine", "image"), f"`engine.image`: runtime process starts no container; {hint}"
    if engine.runtime is not Runtime.DOCKER:
        return
    if engine.venv:
        yield ("engine", "venv"), "`engine.venv`: belongs to `runtime: process`; with docker the engine is in the image"
    if not engine.image:
        yield ("engine",), "`engine.image` is missing: runtime docker needs one, best by digest (`name@sha256:...`)"


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
        why = "tp 1, dp 1, ep false: llama.cpp splits layers over nodes (pp) and nothing else"
        yield path, f"`parallelism`: found tp {p.tp}, dp {p.dp}, ep {shown_value(p.ep)}; allowed: {why}"
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


def _disk_cache(recipe: Recipe) -> Iterator[Complaint]:
    folder, size = recipe.serving.disk_cache, recipe.serving.disk_cache_size
    if bool(folder) != bool(size):
        name, other = ("disk_cache_size", "disk_cache") if folder else ("disk_cache", "disk_cache_size")
        yield ("serving", other), f"`serving.{other}` needs `serving.{name}`, too: a folder and how large it may be"


def _gateway(recipe: Recipe) -> Iterator[Complaint]:
    s, gateway = recipe.serving, recipe.serving.gateway
    path = ("serving", "gateway")
    taken = {s.port: "serving.port", s.master_port: "serving.master_port"}
    for port, what in ((gateway.port, "`serving.gateway.port`"), (gateway.port + 1, "the port after it, for metrics,")):
        if port in taken:
            yield (*path, "port"), f"`serving.gateway.port`: found {gateway.port}; {what} is `{taken[port]}`"
    if gateway.answer_tokens and gateway.answer_tokens >= s.context:
        allowed = f"less than `serving.context`, which is {s.context or 'not given'}"
        yield (*path, "answer_tokens"), f"`serving.gateway.answer_tokens`: found {gateway.answer_tokens}; {allowed}"
    files = gateway.tls is GatewayTls.FILES
    for name, value in (("certificate", gateway.certificate), ("key", gateway.key)):
        if files != bool(value):
            why = (
                f"expected with `serving.gateway.tls: files`, found {shown_value(gateway.tls.value)} and "
                f"{shown_value(value)}"
            )
            yield (*path, name), f"`serving.gateway.{name}`: a path is {why}"


def _replicas(recipe: Recipe) -> Iterator[Complaint]:
    count, length = recipe.serving.replicas, len(recipe.name) + len(f"-r{recipe.serving.replicas}")
    path = ("serving", "replicas")
    if count > 1 and recipe.serving.on_demand:
        why = "replicas share the load of a model that always serves; leave out one of the two"
        yield path, f"`serving.replicas`: found {count} with `serving.on_demand: true`; {why}"
    if count > 1 and length > _LONGEST_NAME:
        why = f"its replicas are called {recipe.name}-r1 and so on, and a name has at most {_LONGEST_NAME} characters"
        yield ("name",), f"`name`: found {len(recipe.name)} characters; {why}"


_LONGEST_NAME = 63


def _mounts(recipe: Recipe) -> Iterator[Complaint]:
    count = Counter(mount.split(":")[1] for mount in recipe.mounts)
    for index, mount in enumerate(recipe.mounts):
        if count[mount.split(":")[1]] > 1:
            why = "another mount has the same place in the container"
            yield ("mounts", index), f"`mounts[{index}]`: found {shown_value(mount)}; {why}"


_MOD_FILE = re.compile(r"(?!/)(?!.*\.\.)[\w./+@-]{1,200}")
_MOST_IN_MODS = 256 * 1024


def _mods(recipe: Recipe) -> Iterator[Complaint]:
    count = Counter(mod.name for mod in recipe.mods)
    size = sum(len(text) for mod in recipe.mods for text in mod.files.values())
    if size > _MOST_IN_MODS:
        yield ("mods",), f"`mods`: found {size} characters in their files; allowed: {_MOST_IN_MODS}"
    for index, mod in enumerate(recipe.mods):
        if count[mod.name] > 1:
            yield (
                ("mods", index, "name"),
                f"`mods[{index}].name`: found {shown_value(mod.name)}; another mod has it, too",
            )
        for name in mod.files:
            if not _MOD_FILE.fullmatch(name):
                why = "allowed: a path inside the mod, without `..`"
                yield ("mods", index, "files", name), f"`mods[{index}].files`: found {shown_value(name)}; {why}"
        if mod.files and mod.script and mod.script not in mod.files:
            yield ("mods", index, "script"), f"`mods[{index}].script`: {shown_value(mod.script)} is not among its files"
        if mod.files and recipe.engine.runtime is not Runtime.DOCKER:
            why = "a mod changes the container, and runtime process has none"
            yield ("mods", index), f"`mods[{index}]`: {why}"


def _published(recipe: Recipe) -> Iterator[Complaint]:
    for index, figure in enumerate(recipe.published):
        if not figure.source.strip():
            path = ("published", index, "source")
            yield path, f"`{dotted(path)}` is empty; a figure without its source is not published"


def _gates(recipe: Recipe) -> Iterator[Complaint]:
    """They are judged after a start, when there is no baseline."""
    for index, line in enumerate(recipe.gates):
        try:
            bad = any(gate.of_baseline for gate in parse(line, "gates"))
            why = "compares with a baseline, and a start has none" if bad else ""
        except UsageError as error:
            why = error.message.partition(": ")[2].splitlines()[0]
        if why:
            yield ("gates", index), f"`gates[{index}]`: found {shown_value(line)}: {why}"


_FETCHES = re.compile(r"\bgit\s+(clone|pull|fetch)\b|\b(curl|wget)\b(?!.*sha\d+sum)|\bADD\s+https?:")
_BY_DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")
_SOMEBODY = re.compile(r"://[^/\s]*@")  # https://NAME:KEY@host/...


def build_checks(recipe: Recipe) -> Iterator[Complaint]:
    if recipe.build:
        yield from _named(recipe.build)
        yield from _base(recipe.build)
        yield from _python(recipe.build)
        yield from _commands(recipe.build)
        for name, value in recipe.build.env.items():
            path = ("build", "env", name)
            if is_secret_name(name) or looks_secret(value):
                yield path, f"`build.env.{name}`: a key would stay in the image for everybody who has it; leave it out"
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or "\n" in value or has_control(value):
                yield path, f"`build.env`: found {shown_value(name)}; allowed: NAME to a text of one line"
        yield from _addresses(recipe.build)


def _named(build: Build) -> Iterator[Complaint]:
    """Complaints about values that the schema lets be empty, because they may be elsewhere."""
    if not build.base:
        yield ("build", "base"), "`build.base` is empty; it names the image to begin with"
    names = Counter(source.name for source in build.sources)
    for index, source in enumerate(build.sources):
        place: Path = ("build", "sources", index)
        for key in ("name", "repository", "commit"):
            if not getattr(source, key):
                yield (*place, key), f"`{dotted((*place, key))}` is empty; without it nothing can be built"
        if names[source.name] > 1:
            yield (
                (*place, "name"),
                f"`{dotted(place)}.name`: found {shown_value(source.name)}; another source has it too",
            )


def _base(build: Build) -> Iterator[Complaint]:
    if build.unpinned:
        return
    if build.base and not _BY_DIGEST.fullmatch(build.base):
        hint = "give its digest (NAME@sha256:...), or explain in `build.unpinned` why it has none"
        yield ("build", "base"), f"`build.base`: found {shown_value(build.base)}, a tag, which can move; {hint}"
    if loose := ", ".join(name for name in build.packages if "=" not in name):
        hint = "write name=version, or explain in `build.unpinned` why not"
        yield ("build", "packages"), f"`build.packages`: found {shown_value(loose)}, without a version; {hint}"


def _python(build: Build) -> Iterator[Complaint]:
    for index, group in enumerate(build.python):
        path, of = ("build", "python", index, "packages"), len(group.packages)
        count = sum("--hash=" in word for word in group.packages)
        if not all(group.packages):
            yield path, f"`{dotted(path)}` holds an empty text; expected `name==version`"
        if count and count != of:
            why = "pip wants hashes of all or of none; put them into two groups"
            yield path, f"`{dotted(path)}`: found {count} of {of} with hashes; {why}"


def _commands(build: Build) -> Iterator[Complaint]:
    """Complaints about commands: their automatic downloads are not pinned."""
    lines: list[Complaint] = [(("build", "steps", n), line) for n, line in enumerate(build.steps)]
    for index, source in enumerate(build.sources):
        lines += [(("build", "sources", index, "prepare", n), line) for n, line in enumerate(source.prepare)]
    for path, line in lines:
        if found := _FETCHES.search(line):
            hint = "name code in `build.sources`, wheels in `build.python`, and check a download with sha256sum"
            yield path, f"a command of `build` fetches what nothing pins: {shown_value(found[0].strip())}; {hint}"


def _addresses(build: Build) -> Iterator[Complaint]:
    """They go into the image's labels, its scripts and the record on the nodes."""
    found: list[Complaint] = [(("sources", n, "repository"), s.repository) for n, s in enumerate(build.sources)]
    found += [(("python", n, "index"), group.index) for n, group in enumerate(build.python)]
    why = "a user or a key in an address stays in the image; use a public one"
    yield from ((("build", *path), f"`build.{dotted(path)}`: {why}") for path, url in found if _SOMEBODY.search(url))


def flags_and_env(recipe: Recipe) -> Iterator[Complaint]:
    yield from env_complaints(recipe.env, ("env",))
    for name in recipe.env:
        if name in PER_RANK_ENV:
            hint = "leave it out; a node's interface and HCAs can be given in the cluster file"
            why = f"differs from node to node and is filled in by the launcher: {hint}"
            yield ("env", name), f"`env.{name}` {why}"
        elif name == "NCCL_IB_GID_INDEX":
            why = "names an index that differs between nodes and moves when a link bounces"
            hint = "leave it out; with NCCL_IB_ROCE_VERSION_NUM=2 NCCL finds the entry on each node"
            yield ("env", name), f"`env.{name}` {why}: {hint}"
    for name, value in recipe.flags.items():
        if why := _flag_name(name) or _owned_flag(recipe, name, value) or _flag_value(value):
            yield ("flags", name), f"`flags.{name}`{why}"


def _flag_name(name: str) -> str:
    bare = name.lstrip("-")
    if name != bare or not bare:
        return f": write flags without dashes, as in `{bare or 'block-size'}`"
    if any(c in name for c in " =\t\n") or not name.isascii():
        return ": a flag's name is one word; its value comes after the colon"
    if is_secret_name(name):
        return ": a key on the command line is seen by every user of the node; use `serving.api_key_env`"
    return ""


def _owned_flag(recipe: Recipe, name: str, value: object) -> str:
    """The reason why a key or the launcher sets an option. vLLM's `auto` has no key: serving.context is a number."""
    if flag_word(name) == "max_model_len" and is_fitting(value) and recipe.engine.name.startswith("vllm"):
        context = recipe.serving.context
        return f": found {value}, and `serving.context: {context}`; leave one of them out" if context else ""
    why = key_of_flag(recipe.engine.name, name)
    return f" {why}; leave it out here" if why else ""


def _flag_value(value: object) -> str:
    if not isinstance(value, str):
        return ""
    if looks_secret(value):
        return ": a key must not be in a file (its value is not shown)"
    if has_control(value):
        return ": found control characters in the text; allowed: printable text"
    if "\n" in value.strip():
        hint = "for JSON write a mapping or a list, for long text use `>-`"
        return f": found a text of several lines; a flag takes one value: {hint}"
    return ""


def _engine(recipe: Recipe) -> Iterator[Complaint]:
    chosen, known = recipe.engine, known_names()
    if chosen.definition is None and chosen.name not in known:
        near = get_close_matches(chosen.name, known, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        why = f"{meant}known: {', '.join(known)}; another is described by a file (docs/guides/adding-an-engine.md)"
        yield ("engine", "name"), f"`engine.name`: found {shown_value(chosen.name)}; {why}"
    fitting = {one.name for one in variants_for(chosen.name)}
    for name in variant_names(chosen):
        if name not in fitting:
            known_here = f"known for {chosen.name}: {', '.join(sorted(fitting)) or 'none'}"
            yield ("engine", "variant"), f"`engine.variant`: found {shown_value(name)}; {known_here}"
    if chosen.definition and chosen.name != CUSTOM and chosen.definition.source == "engine":
        hint = f"write `name: {CUSTOM}`, or put the command into a file of its own"
        yield (
            ("engine", "name"),
            f"`engine.command`: belongs to `name: {CUSTOM}`; found {shown_value(chosen.name)}: {hint}",
        )
    elif chosen.definition and chosen.name == CUSTOM:
        for path, text in definition_complaints(chosen.definition, ("engine", "definition")):
            own = path[2:3] == ("command",)
            yield ("engine", "command") if own else path, text.replace("`command`", "`engine.command`", 1)


CHECKS = (
    CrossCheck(("engine.name", "engine.command", "engine.definition"), _engine),
    CrossCheck(("model", "model.id", "model.path"), _model),
    CrossCheck(("model.size", "model.on_disk"), _on_disk),
    CrossCheck(("model.simulated", "engine.name"), _simulated),
    CrossCheck(("engine.runtime", "engine.image", "engine.image_note", "engine.venv"), _runtime),
    CrossCheck(("nodes", "parallelism", "parallelism.tp", "parallelism.pp", "parallelism.dp"), _ranks),
    CrossCheck(("engine.name", "parallelism", "speculation"), _parallelism),
    CrossCheck(("serving.port", "serving.master_port", "serving.batched_tokens", "serving.sequences"), _limits),
    CrossCheck(("serving.disk_cache", "serving.disk_cache_size"), _disk_cache),
    CrossCheck(("serving.port", "serving.master_port", "serving.context", "serving.gateway"), _gateway),
    CrossCheck(("name", "serving.replicas", "serving.on_demand"), _replicas),
    CrossCheck(("env", "flags", "engine.name"), flags_and_env),
    CrossCheck(("mounts",), _mounts),
    CrossCheck(("mods", "engine.runtime"), _mods),
    CrossCheck(("published",), _published),
    CrossCheck(("gates",), _gates),
    CrossCheck(("build",), build_checks),
)
