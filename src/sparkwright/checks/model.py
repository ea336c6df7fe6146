"""Checks of the recipe against the model on the nodes."""

from collections.abc import Iterator

from sparkwright.checks.reading import node_of, played
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.checkpoint import Checkpoint, Defect
from sparkwright.domain.finding import BLOCK, INFO, OVERRIDE, WARN
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.engines.catalog import traits

_FILES_SHOWN = 3
_OTHER_CHECKS = frozenset({Defect.SHORT, Defect.POINTER, Defect.REF})  # MODEL005, MODEL006
_DIFFERENCES_SHOWN = 4
_OWN_DRAFTS = ("mtp", "nextn")  # by layers of the model itself
_LONGER_BY_ENV = ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
_LONGER_BY_FLAG = (
    *("hf-overrides", "rope-scaling", "rope-parameters", "json-model-override-args"),
    *("rope-scale", "rope-freq-base", "rope-freq-scale", "yarn-orig-ctx", "override-kv"),
)


def model_incomplete(context: Context) -> Iterator[Found]:
    if context.recipe is None or played(context.recipe):
        return
    model = context.recipe.model
    found = {name: c for name, c in context.checkpoints.items() if isinstance(c, Checkpoint)}
    if any(checkpoint.complete for checkpoint in found.values()):
        return
    for name, checkpoint in found.items():
        if missing := _missing(checkpoint):
            more = f" and {len(missing) - _FILES_SHOWN} more" if len(missing) > _FILES_SHOWN else ""
            yield Found(
                f"{checkpoint.root or checkpoint.path}: {', '.join(missing[:_FILES_SHOWN])}{more}",
                title=f"{model.label} is incomplete: files are missing",
                fix=f"copy the missing files into {checkpoint.path} on one node"
                if model.path
                else f"nothing to do: `up` fetches the rest; by hand: hf download {model.id}",
                severity=BLOCK if model.path else WARN,
                subject=name,
            )


def _missing(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Missing files apart from those of other checks: damaged files, which fetching does not fix, and refs/main."""
    others = {str(flaw) for flaw in checkpoint.flaws if flaw.defect in _OTHER_CHECKS}
    return tuple(text for text in checkpoint.missing if text not in others)


def model_missing(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    if recipe is None or not recipe.model.path or played(recipe) or not context.checkpoints:
        return
    found = list(context.checkpoints.values())
    if any(not isinstance(entry, Checkpoint) or entry.files for entry in found):
        return
    nodes = ", ".join(context.checkpoints)
    where = _shown(context, recipe.model.path)
    yield Found(
        f"looked on {nodes}: nothing at {where}",
        title=f"{recipe.model.path} not found on any node",
        fix=f"put the model at {where} on one node, or change model.path in the recipe",
        subject=recipe.name,
    )


def _shown(context: Context, path: str) -> str:
    if path.startswith(("/", "~")):
        return path
    node = node_of(context, next(iter(context.checkpoints)))
    return f"{node.paths.models}/{path}" if node else path


def shape_differs(context: Context) -> Iterator[Found]:
    said = context.recipe.model.shape if context.recipe else None
    if said is None:
        return
    files = {node: c.shape for node, c in context.checkpoints.items() if isinstance(c, Checkpoint)}
    wrong = {node: _differences(said, file) for node, file in files.items() if isinstance(file, ModelShape)}
    node = next((node for node, differences in wrong.items() if differences), "")
    if node:
        yield Found("; ".join(wrong[node][:_DIFFERENCES_SHOWN]), subject=node)


def _differences(said: ModelShape, file: ModelShape) -> list[str]:
    """The dimensions that both define differently. 0 or '' in the recipe, and '' in the file, count as missing: a mixed
    checkpoint lists its formats elsewhere."""
    pairs = ((name, getattr(said, name), getattr(file, name)) for name in ModelShape.__slots__)
    return [
        f"{name} {mine} in the recipe, {theirs} in the file"
        for name, mine, theirs in pairs
        if mine and theirs not in (mine, "")
    ]


def shape_doubtful(context: Context) -> Iterator[Found]:
    if context.recipe is None or played(context.recipe):
        return
    files = {node: c for node, c in context.checkpoints.items() if isinstance(c, Checkpoint) and c.doubts}
    for node, checkpoint in list(files.items())[:1]:
        file = checkpoint.path if checkpoint.path.endswith(".gguf") else f"{checkpoint.path}/config.json"
        yield Found(
            f"{file}: {'; '.join(checkpoint.doubts)}",
            title=f"unsupported architecture details in {context.recipe.model.label}",
            subject=node,
        )


def planned_from_hub(context: Context) -> Iterator[Found]:
    told = context.published
    if told is None:
        return
    size = f"{gib(told.weights)} of weights" if told.weights else "no files that an engine loads"
    config = "its config.json was read" if told.config else "it has no config.json"
    yield Found(f"{told.model}@{told.revision}: {size}; {config}", subject=told.model)


def size_contradicted(context: Context) -> Iterator[Found]:
    if context.recipe is None or context.advice is None or played(context.recipe):
        return
    for found in context.advice.contradictions[:1]:
        yield Found(found, subject="model")


def files_too_small(context: Context) -> Iterator[Found]:
    """Files smaller than their config.json says; without a stated size the verdict says so: weights are not known."""
    recipe = context.recipe
    if recipe is None or context.advice is None or played(recipe) or not recipe.model.size:
        return
    for node, why in context.advice.too_small:
        yield Found(f"{why}; the plan counts model.size, {gib(recipe.model.size)}", subject=node)


_STARTS = "llama.cpp starts all the same, and gives no request more tokens than the model was trained for"


def context_over_model(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    if recipe is None or played(recipe) or not (traits(recipe).gguf or "MODEL013" in traits(recipe).faults):
        return
    if recipe.env.keys() & _LONGER_BY_ENV or recipe.flags.keys() & _LONGER_BY_FLAG:
        return
    longest, source = _longest(context, recipe)
    if 0 < longest < recipe.serving.context:
        yield Found(
            f"{longest:,} in {source}, {recipe.serving.context:,} in the recipe",
            title=f"the model supports {longest:,} tokens, not {recipe.serving.context:,}",
            cause=_STARTS if traits(recipe).gguf else f"{recipe.engine.name} refuses it after the ranks have started",
            severity=WARN if traits(recipe).gguf else None,
            fix=f"serving.context: {longest} or less; or the rope scaling that the model's card gives for longer ones",
            subject="serving.context",
        )


def _longest(context: Context, recipe: Recipe) -> tuple[int, str]:
    shape, source = _shape(context, recipe)
    return shape.positions if shape else 0, source


def _shape(context: Context, recipe: Recipe) -> tuple[ModelShape | None, str]:
    """The files' word before the recipe's, and whose it is."""
    for node, found in context.checkpoints.items():
        if isinstance(found, Checkpoint) and isinstance(found.shape, ModelShape):
            return found.shape, f"{'the file' if found.path.endswith('.gguf') else 'config.json'} on {node}"
    return recipe.model.shape, "model.shape of the recipe"


def drafts_missing(context: Context) -> Iterator[Found]:
    """Drafts by layers of the model itself (MTP), of which its dimensions name none."""
    recipe = context.recipe
    if recipe is None or played(recipe) or recipe.speculation.method.lower() not in _OWN_DRAFTS:
        return
    shape, source = _shape(context, recipe)
    if shape and not shape.inferred and not shape.mtp_layers:
        yield Found(f"no layers for drafts in {source}; the plan assumes one", subject="speculation.method")


CHECKS = explained(
    __file__,
    Check("MODEL001", BLOCK, "checkpoint is incomplete on every node", model_incomplete),
    Check("MODEL002", BLOCK, "model path not found on any node", model_missing),
    Check("MODEL003", WARN, "model.shape does not match config.json", shape_differs),
    Check("MODEL011", WARN, "unsupported model architecture details", shape_doubtful),
    Check("MODEL012", INFO, "model planned from hub metadata", planned_from_hub),
    Check("MODEL013", OVERRIDE, "context longer than the model supports", context_over_model),
    Check("MODEL014", WARN, "statements about the model's size contradict each other", size_contradicted),
    Check("MODEL015", WARN, "files on a node are too small for the model", files_too_small),
    Check("MODEL016", WARN, "model has no layers for the drafts that are asked for", drafts_missing),
)
