"""vLLM's own recipes (vllm-project/recipes, models/*.yaml): one model, variants by precision, overrides by hardware."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparkwright.recipes.importers.draft import Draft, ImportOptions, Tree, put_engine, put_env, put_nodes, recipe_slug
from sparkwright.recipes.importers.flags import put_command
from sparkwright.recipes.importers.settle import Told, settle
from sparkwright.recipes.importers.stated import put_stated

HARDWARE = "dgx_spark_gb10"
_SITE = "https://github.com/vllm-project/recipes"


def is_vllm(tree: Mapping[str, Any]) -> bool:
    model = tree.get("model")
    return isinstance(model, Mapping) and "model_id" in model


def from_vllm(tree: Mapping[str, Any], options: ImportOptions) -> Draft:
    """The default variant is the base; each other variant becomes a profile with what it changes."""
    variants = dict(tree.get("variants") or {"default": {}})
    first = "default" if "default" in variants else next(iter(variants))
    draft = _variant(tree, variants.pop(first) or {}, options)
    profiles: Tree = {}
    for name, variant in variants.items():
        other = _variant(tree, variant or {}, options)
        profiles[recipe_slug(str(name))] = _change(draft.tree, other.tree)
        for note in other.notes:
            draft.note(note if note in draft.notes else f"profile {recipe_slug(str(name))}: {note}")
    if profiles:
        draft.put("profiles", profiles)
    _leave(draft, tree)
    return draft


def _variant(tree: Mapping[str, Any], variant: Mapping[str, Any], options: ImportOptions) -> Draft:
    draft, model, meta = Draft(), tree["model"], tree.get("meta") or {}
    here = (variant.get("hardware_overrides") or {}).get(HARDWARE) or {}
    wide = (tree.get("hardware_overrides") or {}).get(HARDWARE) or {}
    version = str(options.version or variant.get("min_vllm_version") or model.get("min_vllm_version") or "")
    numbered = re.fullmatch(r"v?\d+(\.\d+)+\S*", version)
    image = _ours(draft, "docker_image", variant.get("docker_image") or model.get("docker_image"), ("nvidia", "cuda"))
    if not image and numbered:
        image = f"vllm/vllm-openai:v{version.removeprefix('v')}"
        draft.note(f"image: none is named; {image} is vLLM's own for the oldest version that the source allows")
    elif not image:
        image = "vllm/vllm-openai:nightly"
        draft.note(f"image: none is named and the source asks for {version or 'no version'}; {image} is written")
    put_engine(draft, "vllm", str(image))
    draft.put("title", str(meta.get("title") or model["model_id"]))
    draft.put("name", recipe_slug(str(meta.get("slug") or meta.get("title") or "")))
    draft.put("model.id", str(variant.get("model_id") or model["model_id"]))
    for words in (model.get("base_args"), *_features(tree, draft), wide.get("extra_args"), variant.get("extra_args"),
                  here.get("extra_args")):  # fmt: skip
        put_command(draft, "vllm", _flat(words or ()), model="known")
    for env in (model.get("base_env"), wide.get("extra_env"), variant.get("extra_env"), here.get("extra_env")):
        put_env(draft, env or {})
    split = _ours(draft, "tp", variant.get("tp"), (HARDWARE, "default"))
    if isinstance(split, int) and draft.get("parallelism.tp") is None:
        draft.put("parallelism.tp", split)
    put_stated(draft, {**meta, **model, **variant}, "the vLLM recipe")
    put_nodes(draft, options.nodes)
    settle(draft, Told(options.version, (("min_vllm_version", version if numbered else ""),)))
    return draft


def _ours(draft: Draft, name: str, value: Any, keys: Sequence[str]) -> Any:
    """A value that may differ by vendor or hardware: the one that is for a GB10."""
    if not isinstance(value, Mapping):
        return value
    found = next((value[key] for key in keys if key in value), None)
    if found is None:
        draft.note(f"{name}: the source has values for {', '.join(map(str, value))} and none for a GB10; left out")
    return found


def _flat(words: Sequence[Any]) -> list[str]:
    """Entries are words, but `--flag value` in one entry occurs, too."""
    parts = [str(word).split(" ", 1) if str(word).startswith("--") else [str(word)] for word in words]
    return [word for part in parts for word in part]


def _features(tree: Mapping[str, Any], draft: Draft) -> list[Sequence[Any]]:
    """The arguments of all features that are on unless they are switched off."""
    opt_in, found = set(tree.get("opt_in_features") or ()), []
    for name, feature in (tree.get("features") or {}).items():
        args = feature.get("args") or next((m.get("args") for m in (feature.get("modes") or {}).values()), None) or ()
        if name in opt_in:
            draft.note(f"feature {name} is off as in the source; its words: {' '.join(str(a) for a in args)}")
        else:
            found.append(args)
    return found


def _change(base: Mapping[str, Any], other: Mapping[str, Any]) -> Tree:
    """The overlay that turns base into other; null removes."""
    changed: Tree = {key: None for key in base if key not in other}
    for key, value in other.items():
        was = base.get(key)
        if isinstance(value, Mapping) and isinstance(was, Mapping):
            deep = _change(was, value)
            changed |= {key: deep} if deep else {}
        elif was != value:
            changed[key] = value
    return changed


def _leave(draft: Draft, tree: Mapping[str, Any]) -> None:
    meta = tree.get("meta") or {}
    seen = (meta.get("hardware") or {}).get(HARDWARE)
    draft.put("references", [_SITE])
    draft.note(f"hardware: the source {f'calls {HARDWARE} {seen}' if seen else f'does not mention {HARDWARE}'}")
    longest = tree["model"].get("context_length")
    if longest and draft.get("serving.context") is None:
        why = "no limit is written, so the engine takes what it finds"
        draft.note(f"context: the model can do {longest} tokens; {why}")
    for key in ("strategy_overrides", "dependencies"):
        if tree.get(key):
            draft.note(f"{key}: left out, it belongs to other machines or installations")
