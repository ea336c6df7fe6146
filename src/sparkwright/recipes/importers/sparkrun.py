"""sparkrun's recipes, versions 1 and 2 (RECIPES.md of spark-arena/sparkrun): a command template over defaults."""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import prod
from typing import Any

from sparkwright.domain.errors import RecipeError
from sparkwright.recipes.importers.draft import Draft, ImportOptions, put_engine, put_env, put_nodes, slug
from sparkwright.recipes.importers.flags import parse, put_flags, with_negatives

_RUNTIMES = {
    "vllm": "vllm", "vllm-distributed": "vllm", "vllm-ray": "vllm-ray", "eugr-vllm": "vllm-ray", "sglang": "sglang",
    "llama-cpp": "llama-cpp", "trtllm": "trtllm",
}  # fmt: skip
# How a command line begins -> engine; the words behind it are model and flags.
_STARTS = (
    (("vllm", "serve"), "vllm"),
    (("vllm.entrypoints.openai.api_server",), "vllm"),
    (("sglang.launch_server",), "sglang"),
    (("sglang", "serve"), "sglang"),
    (("llama-server",), "llama-cpp"),
    (("trtllm-serve", "serve"), "trtllm"),
    (("trtllm-serve",), "trtllm"),
)
_READ = (
    "recipe_version name description model model_revision runtime runtime_version container defaults env command "
    "metadata min_nodes max_nodes mode solo_only cluster_only executor_config benchmark min_sparkrun_version"
)
_HOLE = re.compile(r"\{(?:config\.)?(\w+)\}")


def is_sparkrun(tree: Mapping[str, Any]) -> bool:
    return isinstance(tree.get("model"), str) and bool({"recipe_version", "defaults", "runtime", "command"} & set(tree))


def from_sparkrun(tree: Mapping[str, Any], options: ImportOptions) -> Draft:
    """Raises RecipeError for an engine that sparkwright does not drive."""
    draft = Draft()
    values = {**{key: tree[key] for key in ("model", "model_revision") if key in tree}, **tree.get("defaults", {})}
    command = _filled(str(tree.get("command") or ""), values, draft)
    words = _words(command, draft)
    starts = ((engine, _behind(words, begin)) for begin, engine in _STARTS)
    started, given = next((start for start in starts if start[1] is not None), ("", None))
    engine = _engine(tree, started, command)
    if engine == "vllm-ray":
        draft.note("engine: sparkrun runs this one on Ray; vLLM's own multi-node mode is engine.name vllm")
    version = str(tree.get("runtime_version") or "")
    version = options.version or (version if re.match(r"\d", version) else "")
    put_engine(draft, engine, version, str(tree.get("container") or ""))
    model, _, quant = str(tree["model"]).partition(":")
    draft.put("model.path" if model.startswith("/") else "model.id", model)
    draft.put("model.revision", tree.get("model_revision") or "")
    if quant:
        draft.note(f"model: of {model} only the {quant} files are meant; put that GGUF's place into model.path")
    if engine == "llama-cpp" and not model.startswith("/"):
        draft.note("model: llama.cpp serves one GGUF file; give its place on the nodes in model.path")
    if given is not None:
        put_flags(draft, engine, {k: v for k, v in parse(given, engine)[1].items() if k not in _MODEL_FLAGS})
    else:
        if command:
            draft.note("command: no engine that sparkwright drives is started in it; the defaults were read instead")
        defaults = {k: _text(v, values) for k, v in tree.get("defaults", {}).items()}
        put_flags(draft, engine, dict(with_negatives(defaults)))
    _put_rest(draft, tree, values)
    put_nodes(draft, options.nodes or _nodes(tree, draft))
    return draft


_MODEL_FLAGS = {"model", "model-path", "model_path", "hf_repo", "hf-repo"}


def _filled(text: str, values: Mapping[str, Any], draft: Draft) -> str:
    """The template with its `{key}`s; a doubled brace is version 1's word for a literal one."""
    for _ in range(5):
        text = _HOLE.sub(lambda hole: str(values.get(hole[1], hole[0])), text)
    for hole in dict.fromkeys(match[0] for match in _HOLE.finditer(text)):
        draft.note(f"{hole} in the command has no default and stays as it is")
    return text.replace("{{", "{").replace("}}", "}") if "{{" in text else text


def _text(value: Any, values: Mapping[str, Any]) -> Any:
    return _HOLE.sub(lambda hole: str(values.get(hole[1], hole[0])), value) if isinstance(value, str) else value


def _words(command: str, draft: Draft) -> list[str]:
    try:
        return shlex.split(re.sub(r"^[ \t]*#.*\n", "", re.sub(r"\\[ \t]*\n", " ", command), flags=re.M))
    except ValueError as error:
        draft.note(f"command: cannot be read as shell words ({error})")
        return []


def _behind(words: Sequence[str], begin: Sequence[str]) -> Sequence[str] | None:
    """The words behind `begin`, up to the end of that command; None when it is not in there."""
    for at in range(len(words)):
        if tuple(words[at : at + len(begin)]) == tuple(begin):
            return list(takewhile(lambda word: word not in ("&&", "||", "|", ";", "&"), words[at + len(begin) :]))
    return None


def _engine(tree: Mapping[str, Any], started: str, command: str) -> str:
    """The runtime as sparkrun resolves it: an explicit one wins, version 1 is Ray's, and so is a Ray backend."""
    runtime = str(tree.get("runtime") or "")
    old = str(tree.get("recipe_version", "2")) == "1"
    ray = tree.get("defaults", {}).get("distributed_executor_backend") == "ray" or "executor-backend ray" in command
    if runtime and runtime not in _RUNTIMES:
        why = f"runtime: {runtime!r} is not an engine that sparkwright drives"
        raise RecipeError(why, hint=f"known: {', '.join(_RUNTIMES)}")
    if runtime in ("", "vllm") and started in ("", "vllm"):
        many = not tree.get("solo_only") and _ranks(tree) > 1
        return "vllm-ray" if ray or (old and runtime == "" and many) else "vllm"
    return _RUNTIMES.get(runtime) or started


def _ranks(tree: Mapping[str, Any]) -> int:
    defaults = tree.get("defaults", {})
    sizes = (defaults.get(key, 1) for key in ("tensor_parallel", "pipeline_parallel", "data_parallel"))
    return prod(size for size in sizes if isinstance(size, int))


def _nodes(tree: Mapping[str, Any], draft: Draft) -> int:
    """llama.cpp's nodes are nowhere else; for the others the ranks of the command line count."""
    if draft.get("engine.name") == "llama-cpp":
        draft.tree.pop("parallelism", None)
        return int(tree.get("min_nodes") or (2 if tree.get("cluster_only") else 1))
    return 0


def _put_rest(draft: Draft, tree: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    meta = tree.get("metadata") or {}
    title = tree.get("name") or meta.get("description") or tree.get("description") or tree["model"]
    draft.put("title", " ".join(str(title).split()))
    draft.put("name", slug(str(tree.get("name") or "")))
    draft.put("license", str(meta.get("license") or ""))
    links = [str(meta[key]) for key in ("source", "model_url") if meta.get(key)]
    if links:
        draft.put("references", links)
    put_env(draft, {k: _text(v, values) for k, v in (tree.get("env") or {}).items()})
    for key, value in (tree.get("executor_config") or {}).items():
        if key == "shm_size":
            # Docker's `gb` is binary, ours is decimal.
            draft.put("shm", re.sub(r"(?i)([kmg])b$", r"\1", str(value)))
        else:
            draft.note(f"executor_config.{key}: left out; containers are started in one way")
    for key in tree:
        if key not in _READ.split() and tree[key]:
            draft.note(f"{key}: left out; {_WHY.get(key, 'sparkwright has no key for it')}")


_WHY = {
    "mods": "it patches the container before the start; build an image with the patch instead (`sparkwright build`)",
    "build_args": "it is about how the image is built; name a built image, or use `sparkwright build`",
    "pre_exec": "nothing is run in the container before the engine",
    "post_exec": "nothing is run in the container after the start",
    "post_commands": "nothing is run on your machine after the start",
    "containers": "all ranks run one image",
}
