"""sparkrun's recipes, versions 1 and 2 (RECIPES.md of spark-arena/sparkrun): a command template over defaults."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from sparkwright.domain.engine import CUSTOM
from sparkwright.domain.errors import RecipeError
from sparkwright.engines.definitions import shipped_definitions
from sparkwright.engines.written import read_words
from sparkwright.recipes.importers.commands import KNOWN, Started, starts_in
from sparkwright.recipes.importers.container import put_mounts
from sparkwright.recipes.importers.described import put_ranks
from sparkwright.recipes.importers.draft import (
    Draft,
    ImportOptions,
    put_engine,
    put_env,
    put_nodes,
    put_program,
    recipe_slug,
)
from sparkwright.recipes.importers.flags import as_words, has_key, put_command, put_model, put_options
from sparkwright.recipes.importers.mods import mod_name
from sparkwright.recipes.importers.settle import Told, settle
from sparkwright.recipes.importers.shell import Growth, Script
from sparkwright.recipes.importers.sparkrun_layers import merged, with_overrides
from sparkwright.recipes.importers.stated import put_stated

_RUNTIMES: Mapping[str, str] = KNOWN["sparkrun"]
_READ = (
    "recipe_version name description model model_revision runtime runtime_version container defaults env command "
    "metadata min_nodes max_nodes mode solo_only cluster_only executor_config benchmark min_sparkrun_version include "
    "overrides maintainer mods pre_exec volumes builder build_args"
)
# Keys that sparkrun reads and we do not; it launches without a word about any other.
_THEIRS = (
    "runtime_config builder_config post_exec post_commands stop_after_post distribution_config containers executor "
    "scheduler layout readiness pull_image"
)
_HOLE = re.compile(r"\{(?:config\.)?([A-Za-z_][\w.-]*)\}")
# What sparkwright does for every container, too.
_ALWAYS = ("gpus", "ipc", "network", "ulimit", "auto_remove", "restart_policy")
Beside = Callable[[str], str | None]


def is_sparkrun(tree: Mapping[str, Any]) -> bool:
    keys = {"recipe_version", "defaults", "runtime", "command", "include"} & set(tree)
    return bool(keys) and (isinstance(tree.get("model"), str) or "include" in tree)


def from_sparkrun(tree: Mapping[str, Any], source: str, options: ImportOptions, beside: Beside) -> Draft:
    """The draft of a sparkrun recipe. beside: text of a file next to it, for `include`. Raises RecipeError for an
    unknown engine."""
    draft = Draft()
    tree = merged(tree, source, beside)
    tree = with_overrides(tree, draft)
    defaults = dict(tree.get("defaults") or {})
    values = {**{key: tree[key] for key in ("model", "model_revision") if key in tree}, **defaults, **options.values}
    command = _filled(str(tree.get("command") or ""), values)
    started = _started(command, source) or _any_start(command, source)
    engine = _engine(tree, started, command, draft)
    put_engine(draft, engine, str(tree.get("container") or ""))
    put_model(draft, _filled(str(tree["model"]), values))
    draft.put("model.revision", tree.get("model_revision") or "")
    if started:
        put_program(draft, started)
        put_env(draft, {name: value for name, value in started.env if name != "PATH"})
        put_command(draft, engine, started.words, model="known")
    else:
        _put_defaults(draft, engine, {k: _text(v, values) for k, v in defaults.items() if k not in _NOT_FLAGS})
    if engine == "llama-cpp" and not draft.get("model.path"):
        draft.note("model: llama.cpp serves one GGUF file; give its place on the nodes in model.path")
    _put_rest(draft, tree, values)
    put_stated(draft, _metadata(tree), f"the sparkrun recipe {source}")
    put_nodes(draft, options.nodes or _nodes(tree, draft))
    settle(draft, Told(options.version, _told(tree)))
    return draft


_NOT_FLAGS = ("model", "model_path", "model-path")


def _filled(text: str, values: Mapping[str, Any]) -> str:
    """The template with its `{key}`s; a doubled brace is version 1's word for a literal one."""
    grown = Growth("the command")
    for _ in range(5):
        text = _HOLE.sub(lambda hole: grown.by(_shown(values[hole[1]])) if hole[1] in values else hole[0], text)
    return text.replace("{{", "{").replace("}}", "}") if "{{" in text else text


def _shown(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(value: Any, values: Mapping[str, Any]) -> Any:
    return _filled(value, values) if isinstance(value, str) else value


def _started(command: str, source: str) -> Started | None:
    """The last engine that the command starts; what runs before it belongs to the container."""
    found = starts_in(Script(re.sub(r"\\[ \t]+\n", "\\\n", command), f"{source}: command"), source)
    return found[-1] if found else None


def _put_defaults(draft: Draft, engine: str, defaults: Mapping[str, Any]) -> None:
    """sparkrun makes options of the defaults that it knows; others it drops, and so does this."""
    if engine in shipped_definitions():
        put_command(draft, engine, tuple(as_words(defaults)), model="known")
        return
    _, options = read_words(engine, tuple(as_words(defaults)))
    unknown = [one.name for one in options if one.option is None and not has_key(one.name)]
    if unknown:
        draft.note(f"defaults: {', '.join(unknown)}: left out, {engine} has no such option and there is no command")
    put_options(draft, engine, [one for one in options if one.name not in unknown], known_model=True)


def _engine(tree: Mapping[str, Any], started: Started | None, command: str, draft: Draft) -> str:
    """The runtime as sparkrun resolves it. Version 1 runs on Ray only when it is asked to: its own runner strips it."""
    runtime = str(tree.get("runtime") or "")
    if started and started.engine == CUSTOM:
        return _custom(tree, runtime)
    if runtime in shipped_definitions():
        return runtime
    if runtime and runtime not in _RUNTIMES:
        why = f"runtime: {runtime!r} is no engine that sparkwright knows, and the recipe gives no command to start it"
        raise RecipeError(why, hint=f"known: {', '.join((*_RUNTIMES, *shipped_definitions()))}; or give `command`")
    engine = _RUNTIMES.get(runtime) or (started.engine if started else "vllm")
    if started and _RUNTIMES.get(runtime, started.engine).removesuffix("-ray") != started.engine:
        draft.note(f"engine: the command starts {started.engine}, so that is written, not runtime {runtime}")
        engine = started.engine
    defaults = tree.get("defaults") or {}
    ray = defaults.get("distributed_executor_backend") == "ray" or "executor-backend ray" in command
    old = str(tree.get("recipe_version", "2")) == "1"
    if engine == "vllm" and ray and not old:
        draft.note("engine: sparkrun runs this one on Ray; vLLM's own multi-node mode is engine.name vllm")
        return "vllm-ray"
    if engine == "vllm" and ray:
        draft.note("engine: Ray is left out, vLLM connects the nodes itself; engine.name vllm-ray is Ray")
    return engine


def _custom(tree: Mapping[str, Any], runtime: str) -> str:
    """Raises RecipeError where several ranks would be needed: what tells them apart is in sparkrun's own runtime."""
    if int(tree.get("min_nodes") or 1) > 1 or tree.get("cluster_only"):
        why = f"command: starts no engine that sparkwright knows, on several nodes; what runtime {runtime!r} adds for "
        raise RecipeError(f"{why}each rank is not in the recipe", hint="describe it: docs/guides/adding-an-engine.md")
    return CUSTOM


def _any_start(command: str, source: str) -> Started | None:
    """A server that is not known: its words where the command is a single one, else all of the text for a shell."""
    if not command.strip():
        return None
    commands = Script(re.sub(r"\\[ \t]+\n", "\\\n", command), f"{source}: command").commands
    if len(commands) == 1 and not commands[0].redirected:
        return Started(CUSTOM, commands[0].words, env=tuple(commands[0].assigned.items()))
    return Started(CUSTOM, ("bash", "-c", command.strip()))


def _nodes(tree: Mapping[str, Any], draft: Draft) -> int:
    """llama.cpp's nodes are nowhere else; for the others the ranks of the command line count."""
    if draft.get("engine.name") == "llama-cpp":
        draft.tree.pop("parallelism", None)
        return int(tree.get("min_nodes") or (2 if tree.get("cluster_only") else 1))
    if definition := shipped_definitions().get(draft.get("engine.name")):
        put_ranks(draft, definition, int(tree.get("min_nodes") or (2 if tree.get("cluster_only") else 1)))
    return 0


def _metadata(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    found = tree.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _told(tree: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    places = ("runtime_version", "name", "description")
    found = [(place, str(tree.get(place) or "")) for place in places]
    found += [("build_args", " ".join(words)) for words in _build_words(tree)]
    return (*found, ("metadata.description", str(_metadata(tree).get("description") or "")))


def _build_words(tree: Mapping[str, Any]) -> list[list[str]]:
    """The words that the image was built with, which may name the engine's version."""
    settings = tree.get("runtime_config")
    places = (tree.get("build_args"), settings.get("build_args") if isinstance(settings, Mapping) else None)
    return [[str(word) for word in words] for words in places if isinstance(words, list)]


def _put_how_built(draft: Draft, tree: Mapping[str, Any]) -> None:
    """Kept as prose: a recipe names an image, and this tells how to make it again."""
    words = [f"builder {tree['builder']}"] if isinstance(tree.get("builder"), str) else []
    words += [f"arguments {' '.join(found)}" for found in _build_words(tree) if found]
    if words:
        draft.put("notes", [f"sparkrun built the image {tree.get('container', '')} with {', '.join(words)}"])


def _put_first_commands(draft: Draft, commands: Any) -> None:
    """Commands that run in the container before the engine are a mod; copies of files are not taken over."""
    lines = [command for command in commands if isinstance(command, str)]
    if lines:
        mod = {"name": "pre-exec", "origin": "pre_exec of the recipe", "files": {"run.sh": "\n".join(lines) + "\n"}}
        draft.put("mods", [*(draft.get("mods") or []), mod])
        draft.note("pre_exec: taken over as the mod pre-exec; it runs in the container before the engine")
    if len(lines) < len(commands):
        draft.note("pre_exec: copies of files into the container are left out; write them as a mod or a mount")


def _put_rest(draft: Draft, tree: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    meta = _metadata(tree)
    title = tree.get("name") or meta.get("description") or tree.get("description") or tree["model"]
    draft.put("title", " ".join(str(title).split()))
    draft.put("name", recipe_slug(str(tree.get("name") or "")))
    draft.put("license", str(meta.get("license") or ""))
    links = [str(meta[key]) for key in ("source", "model_url") if meta.get(key)]
    if links:
        draft.put("references", links)
    put_env(draft, {k: _text(v, values) for k, v in (tree.get("env") or {}).items()})
    _put_executor(draft, tree.get("executor_config") or {})
    if tree.get("mods"):
        draft.put("mods", [{"name": mod_name(str(ref)), "origin": str(ref)} for ref in tree["mods"]])
    if isinstance(tree.get("pre_exec"), list):
        _put_first_commands(draft, tree["pre_exec"])
    if isinstance(tree.get("volumes"), list):
        put_mounts(draft, [str(row) for row in tree["volumes"]])
    _put_how_built(draft, tree)
    _note_rest(draft, tree)


def _put_executor(draft: Draft, settings: Mapping[str, Any]) -> None:
    for key, value in settings.items():
        if key == "shm_size":
            # Docker's `gb` is binary, ours is decimal.
            draft.put("shm", re.sub(r"(?i)([kmg])b$", r"\1", str(value)))
        elif key == "entrypoint" and value and "entrypoint" not in draft.tree["engine"]:
            draft.note(f"executor_config.entrypoint: {value!r} is left out; the engine is started directly")
        elif key not in _ALWAYS and value not in (None, "", False, [], {}):
            draft.note(f"executor_config.{key}: left out; containers are started in one way")


def _note_rest(draft: Draft, tree: Mapping[str, Any]) -> None:
    for key, value in tree.items():
        settings = key == "runtime_config" and isinstance(value, Mapping) and set(value) <= {"build_args"}
        if value and key not in _READ.split() and not settings:
            other = "sparkwright has no key for it" if key in _THEIRS.split() else "sparkrun does not read it, either"
            draft.note(f"{key}: left out; {_WHY.get(key, other)}")


_WHY = {
    "post_exec": "nothing is run in the container after the start",
    "post_commands": "nothing is run on your machine after the start",
    "containers": "all ranks run one image",
}
