"""The combination that the compatibility table looks up: engine, version, model, formats, chip, switches."""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from sparkwright.domain.check import Context
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass, field

GB10 = "sm_121"
_NAMES = tomllib.loads((files("sparkwright.checks.compat") / "names.toml").read_text(encoding="utf-8"))
_ON = ("1", "true", "yes", "on")


@dataclass(frozen=True, slots=True)
class Combination:
    """formats: of weights and experts, and the name of the quantization method. pull_requests: built into the image."""

    engine: str
    version: str
    recipe: Recipe
    architecture: str = ""
    formats: frozenset[str] = frozenset()
    chip: str = GB10
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> int:
        return self.recipe.nodes

    @property
    def image(self) -> str:
        return self.recipe.engine.image

    @property
    def model(self) -> str:
        return self.recipe.model.label

    @property
    def kv(self) -> str:
        return self.recipe.serving.kv_dtype

    @property
    def drafts(self) -> str:
        return self.recipe.speculation.method

    @property
    def pull_requests(self) -> tuple[int, ...]:
        build = self.recipe.build
        return tuple(source.pull_request for source in build.sources) if build else ()

    def flag(self, name: str) -> str:
        return flag_text(self.recipe, name)


def combination(context: Context) -> Combination | None:
    """The combination of the context's recipe; None without a recipe, and for a simulated model."""
    recipe = context.recipe
    if recipe is None or recipe.model.simulated:
        return None
    shape = shape_of(context)
    engine, label = recipe.engine, recipe.model.label
    named = next(
        (name for pattern, name in _NAMES["architectures"].items() if re.search(pattern, label, re.IGNORECASE)), ""
    )
    architecture, chip = (shape.architecture if shape else "") or named, _chip(context.facts)
    formats = _formats(shape, label)
    return Combination(engine.name, engine.version, recipe, architecture, formats, chip, variables(context))


def _formats(shape: ModelShape | None, label: str) -> frozenset[str]:
    if shape and (shape.format or shape.quantization):
        return frozenset(filter(None, (shape.format, shape.expert_format, shape.quantization)))
    low, known_names = label.lower(), _NAMES["formats"]
    named = {word for word in known_names["words"] if word in low}
    makers = next((formats for pattern, formats in known_names["makers"].items() if re.search(pattern, low)), ())
    return frozenset(named or makers)


def _chip(facts: Mapping[str, NodeFacts]) -> str:
    """The chip of the first GPU that reports one; else a GB10's: these are the machines that this program is for."""
    for one in facts.values():
        for gpu in known_or_none(one.gpus) or ():
            if isinstance(gpu.compute_capability, str) and re.fullmatch(r"\d+\.\d", gpu.compute_capability):
                return f"sm_{gpu.compute_capability.replace('.', '')}"
    return GB10


def flag_text(recipe: Recipe, name: str) -> str:
    """The value of a flag, '' where it is not given. `compilation-config.cudagraph_mode` looks into a JSON option."""
    flags = {_dashed(key): value for key, value in recipe.flags.items()}
    if name in flags:
        return _text(flags[name])
    head, *path = name.split(".")
    value = flags.get(head)
    for key in path:
        value = _mapping(value).get(key)
    return _text(value)


def is_switched_on(recipe: Recipe, name: str) -> bool:
    """True if a switch is set."""
    return flag_text(recipe, name).lower() in _ON


def _dashed(name: str) -> str:
    head, dot, rest = name.lstrip("-").partition(".")
    return head.replace("_", "-") + dot + rest


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = read_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    if value is None or isinstance(value, Mapping):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def variables(context: Context) -> Mapping[str, str]:
    """The first rank's environment, with the launcher's own variables; without a plan the recipe's."""
    if context.specs:
        return context.specs[0].env
    return {name: str(value) for name, value in context.recipe.env.items()} if context.recipe else {}


def shape_of(context: Context) -> ModelShape | None:
    """The shape in the files on a node, whole copies first; without them the recipe's."""
    copies = [c for c in context.checkpoints.values() if isinstance(c, Checkpoint)]
    shapes = (c.shape for c in sorted(copies, key=lambda c: not c.complete))
    found = next((shape for shape in shapes if isinstance(shape, ModelShape)), None)
    return found or (context.recipe.model.shape if context.recipe else None)
