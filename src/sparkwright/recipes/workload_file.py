"""Workload text -> domain Workload; every error with file and line."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import PurePath

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.workload import (
    Agent,
    Arrival,
    Length,
    LevelPlan,
    Pace,
    Replay,
    Shape,
    Single,
    Text,
    Workload,
)
from sparkwright.recipes.problems import Complaint, drop_unset, problems_of, report, valid_keys, validated
from sparkwright.recipes.values import domain_value, plain_value, shown_value
from sparkwright.recipes.workload_schema import LevelPart, SinglePart, WorkloadPart
from sparkwright.recipes.yaml_lines import read_yaml

_HINT = "`sparkwright bench --workloads` lists workloads that ship; docs/reference/workloads.md explains every key"


def load_workload(text: str, source: str) -> Workload:
    """The workload in `text`. source: the file's name as messages show it.

    Raises RecipeError: one line per mistake, each beginning with `FILE:LINE:`.
    """
    document = read_yaml(text, source)
    if not isinstance(document.value, Mapping):
        seen = shown_value(document.value)
        raise RecipeError(f"{source}:1: found {seen}; a workload is a mapping with `title:` and `levels:`", _HINT)
    # As they are written: a length's `from` and `to` are low and high inside.
    keys = tuple(key.replace(".low", ".from").replace(".high", ".to") for key in valid_keys(WorkloadPart))
    part, found = validated(drop_unset(document.value), WorkloadPart, keys)
    if part and not found:
        found = tuple(_checks(part))
    problems = problems_of(document, found)
    if problems or part is None:
        raise RecipeError(report(problems, source), hint=_HINT)
    tree = plain_value(part.model_dump(exclude={"levels"})) | {
        "name": part.name or PurePath(source).stem or "workload",
        "levels": tuple(plan for level in part.levels for plan in plans_of_level(level)),
        "thinking": None if part.thinking == "unset" else part.thinking,
    }
    made: Workload = domain_value(Workload, tree)
    return made


def _checks(part: WorkloadPart) -> Iterator[Complaint]:
    """Complaints that no single key shows; only for a file whose keys are all good."""
    if not part.levels:
        yield ("levels",), "`levels`: found an empty list; a workload has at least one level"
    for index, level in enumerate(part.levels):
        yield from ((("levels", index, *path), text) for path, text in complaints(level))
    if part.search and not part.slo:
        yield ("search",), "`search` finds the highest rate that meets `slo:`, which is missing"
    if part.search and part.search.low >= part.search.high:
        yield ("search",), f"`search`: found low {part.search.low:g}, high {part.search.high:g}; low is the smaller"
    seen: set[str] = set()
    for index, level in enumerate(part.levels):
        for plan in () if any(complaints(level)) else plans_of_level(level):
            if plan.name in seen:
                text = f"two levels are called {shown_value(plan.name)}; give one of them a `name:` of its own"
                yield ("levels", index), text
            seen.add(plan.name)


def plans_of_level(level: LevelPart) -> Iterator[LevelPlan]:
    """A level without a name is called by what it sends, as llama-bench calls it: `pp1024 tg128 d4K c2`."""
    users: list[int] = level.concurrency or [0 if level.rate != [0.0] else 1]
    depths = level.single.depth if level.single else [0]
    for depth, concurrency, rate in product(depths, users, level.rate):
        shape, pace = _shape(level, int(depth)), _pace(level, int(concurrency), float(rate))
        requests = int(level.per_user) * max(pace.concurrency, 1) or int(level.requests)
        plan = LevelPlan("", shape, pace, requests, int(level.warmup), float(level.seconds), float(level.rest))
        plan = replace(plan, name=_name(level, plan, len(depths) > 1, len(users) > 1, len(level.rate) > 1))
        yield plan
        if level.agent and level.agent.cold_twin and isinstance(shape, Agent):
            yield replace(plan, name=f"{plan.name} cold", shape=replace(shape, cold=True))


def _shape(level: LevelPart, depth: int) -> Shape:
    parts = ((Single, level.single), (Agent, level.agent), (Replay, level.replay))
    kind, part = next((kind, part) for kind, part in parts if part)
    tree = plain_value(part.model_dump(exclude={"cold_twin"})) | ({"depth": depth} if level.single else {})
    made: Shape = domain_value(kind, tree)
    return made


def _pace(level: LevelPart, concurrency: int, rate: float) -> Pace:
    if level.replay and level.replay.timed:
        return Pace(Arrival.RECORDED, concurrency if level.concurrency else 0)
    arrival = Arrival(level.arrival or ("poisson" if rate else "closed"))
    return Pace(arrival, concurrency, rate, int(level.burst), float(level.to_rate))


def _name(level: LevelPart, plan: LevelPlan, depths: bool, users: bool, rates: bool) -> str:
    own = level.name
    shape, pace = plan.shape, plan.pace
    parts = [own or _called(shape)]
    if isinstance(shape, Single):
        parts += [f"d{short_tokens(shape.depth)}"] if depths or (shape.depth and not own) else []
        parts += ["warm"] if shape.warm and not own else []
    parts += [f"c{pace.concurrency}"] if users or (not own and pace.concurrency > 1) else []
    parts += [f"{pace.rate:g}/s"] if rates or (not own and pace.rate) else []
    return " ".join(parts)


def _called(shape: Shape) -> str:
    if isinstance(shape, Replay):
        return "replay"
    if isinstance(shape, Agent):
        return f"agent {shape.turns} turns"
    kind = "" if shape.text is Text.PROSE else f" {shape.text}"
    return f"pp{_span(shape.prompt)} tg{_span(shape.output)}{kind}"


def _span(length: Length) -> str:
    return f"{length.low}" if length.low == length.high else f"{length.low}-{length.high}"


def short_tokens(tokens: int) -> str:
    """`4K` of 4096, `240K` of 240000, `1M`: round in one of the two ways that people count."""
    if tokens and tokens % 1_000_000 == 0:
        return f"{tokens // 1_000_000}M"
    return next((f"{tokens // k}K" for k in (1000, 1024) if tokens and tokens % k == 0), str(tokens))


def complaints(level: LevelPart) -> Iterator[Complaint]:
    """Complaints that no single key shows. Paths are relative to the level."""
    given = [name for name in ("single", "agent", "replay") if getattr(level, name)]
    if len(given) != 1:
        seen = " and ".join(f"`{name}`" for name in given) or "none"
        yield (), f"found {seen}; a level has exactly one of `single`, `agent` and `replay`"
    yield from _paces(level)
    if level.single:
        yield from _single(level.single)


def _paces(level: LevelPart) -> Iterator[Complaint]:
    if level.replay and level.replay.timed and (level.arrival or level.rate != [0.0]):
        text = "`timed: true` takes the times of the file; `arrival` and `rate` have no place next to it"
        yield ("replay", "timed"), text
    if level.arrival not in (None, "closed") and 0.0 in level.rate:
        yield ("arrival",), f"`arrival: {level.arrival}` needs `rate:`, requests per second"
    if level.arrival == "closed" and level.rate != [0.0]:
        yield ("rate",), "`rate` has no meaning with `arrival: closed`, where a request begins when one ends"
    if (level.arrival == "bursts") != bool(level.burst):
        yield ("burst",) if level.burst else ("arrival",), "`burst:` and `arrival: bursts` belong together"
    if (level.arrival == "ramp") != bool(level.to_rate):
        yield ("to_rate",) if level.to_rate else ("arrival",), "`to_rate:` and `arrival: ramp` belong together"


def _single(part: SinglePart) -> Iterator[Complaint]:
    for name, length in (("prompt", part.prompt), ("output", part.output)):
        path = ("single", name)
        if length.low > length.high:
            yield path, f"`single.{name}`: found from {length.low} to {length.high}; `from` is the smaller one"
        elif length.median and not length.low < length.median < length.high:
            yield path, f"`single.{name}.median`: found {length.median}; it lies between `from` and `to`"
    if part.warm and 0 in part.depth:
        yield ("single", "warm"), "`warm: true` needs a `depth` above 0: it is the context that is sent before"
