"""Figures from an engine's own log (`plan --from-log`), read and printed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import click

from sparkwright.domain.calibration import Calibration
from sparkwright.domain.errors import UsageError
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.engines.catalog import engine, engine_of
from sparkwright.engines.tables import SEPARATE
from sparkwright.facts.engine_log import LogStory, read_log
from sparkwright.planner.calibrate import conditions, measured, source_of, without_pool
from sparkwright.planner.ledger import simulated

_LONGEST = 65536
_MEMORY = {"weights_gib", "weights_mib", "kv_gib", "kv_mib"}
_HINT = "give the log of a start that ended well: of rank 0, from its first line"


def from_logs(recipe: Recipe, logs: Sequence[str], rank: int | None) -> tuple[Calibration, ...]:
    """The figures of each file, by rank. Raises UsageError for a file without memory figures."""
    if rank is not None and len(logs) != 1:
        raise UsageError("--rank goes with one --from-log", "without --rank several files are of rank 0, 1, ...")
    return tuple(_from_log(recipe, log, number) for number, log in enumerate(logs, rank or 0))


def _from_log(recipe: Recipe, log: str, rank: int) -> Calibration:
    """Figures of the log, without those that hold for its own limits only. Raises UsageError, also for another number
    of ranks."""
    story = _story(recipe, log, recipe.engine.name)
    facts = dict(story.facts)
    under = conditions(recipe, simulated(recipe), rank=rank)
    phases = tuple((str(phase), after) for phase, after in story.phases)
    found = measured(facts, under, source=log, differs=_differences(recipe, facts), phases=phases)
    if found.is_empty:
        said = f"{log}: holds no line of {recipe.engine.name} about weights or KV cache"
        raise UsageError(f"{said}{_instead(recipe, log)}", _HINT)
    split, world = recipe.parallelism, facts.get("world", "")
    ranks = split.tp * split.pp  # vLLM counts those of dp or does not, from version to version
    if world not in ("", str(ranks), str(ranks * split.dp)):
        said = f"{log}: is of a start with {world} rank(s), the recipe has {ranks}"
        raise UsageError(said, "give a log of its split")
    if _other_context(recipe, facts):  # tokens of a hybrid model's pool hang on it
        found = replace(found, kv_tokens=None)
    fraction, wanted = facts.get("fraction", ""), recipe.serving.memory_fraction
    other = fraction and wanted and fraction.rstrip("0") != f"{wanted:g}"
    return without_pool(found, f"memory fraction {fraction}") if other else found


def _other_context(recipe: Recipe, facts: Mapping[str, str]) -> str:
    """The log's context where it is not the recipe's, '' where it is or one of the two is unknown."""
    given, wanted = facts.get("context", ""), recipe.serving.context
    return given if wanted and given != str(wanted) else ""


def _story(recipe: Recipe, log: str, dialect: str) -> LogStory:
    speaker = engine_of(recipe) if dialect == recipe.engine.name else engine(dialect)
    return read_log(_lines(log, simulated(recipe)), speaker.read)


def _lines(log: str, simulated: bool) -> Iterator[str]:
    """Never more than a piece of the file at once. Raises UsageError for a log of the simulator, unless `simulated`."""
    from sparkwright.simulator.boot import MARK  # with a web server: only where a log is read

    with click.open_file(log, encoding="utf-8", errors="replace") as file:
        for line in iter(lambda: file.readline(_LONGEST), ""):
            if MARK in line and not simulated:
                why = "is a log of the simulator; a real engine is not planned with simulated figures"
                raise UsageError(f"{log}: {why}", _HINT)
            yield line


def _instead(recipe: Recipe, log: str) -> str:
    """The reason why the log has no figures: it is another engine's, or the start was incomplete."""
    if log == "-":
        return ""
    for name in SEPARATE:
        if name != recipe.engine.name and _MEMORY & dict(_story(recipe, log, name).facts).keys():
            return f": it is a log of {name}"
    root = _story(recipe, log, recipe.engine.name).root
    return f"; its start failed: {root}" if root else ""


def _differences(recipe: Recipe, facts: Mapping[str, str]) -> tuple[str, ...]:
    """Conditions in the log that differ from the recipe's."""
    version, context = facts.get("version", ""), _other_context(recipe, facts)
    found = ["a log given by hand"]
    if version and not version.startswith(recipe.engine.version):
        found.append(f"version {version}")
    if context:
        found.append(f"a context of {context} tokens")
    model, name = facts.get("model", "").lower(), recipe.model.label.rstrip("/").rpartition("/")[2].lower()
    if model and name not in model:
        found.append(f"model {facts['model']}")
    return tuple(found)


def measured_text(found: Mapping[str, Calibration]) -> str:
    """The figures that the plan takes as measured, a line for each node; '' for none."""
    lines = [f"  {node}: {_figures(one)} ({source_of(one)})" for node, one in found.items()]
    return "\n".join(["measured at an earlier start", *lines]) if lines else ""


def _figures(one: Calibration) -> str:
    sizes = {"weights": one.weights, "KV cache": one.kv, "CUDA graphs": one.graphs}
    found = [f"{gib(size)} {name}" for name, size in sizes.items() if size is not None]
    return ", ".join([*found, f"{one.kv_tokens:,} tokens"] if one.kv_tokens is not None else found)
