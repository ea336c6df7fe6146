"""Workload text -> domain Workload; every error with file and line."""

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.workload import Api, Search, Slo, Workload
from sparkwright.recipes.overlay import clean
from sparkwright.recipes.problems import Complaint, report, valid_keys, validated
from sparkwright.recipes.values import plain, shown
from sparkwright.recipes.workload_levels import complaints, plans
from sparkwright.recipes.workload_schema import WorkloadPart
from sparkwright.recipes.yaml_lines import Problem, read_yaml

_HINT = "`sparkwright bench --profiles` lists workloads that ship; docs/guides/workloads.md explains every key"


def load_workload(text: str, source: str) -> Workload:
    """The workload in `text`. source: the file's name as messages show it.

    Raises RecipeError: one line per mistake, each beginning with `FILE:LINE:`.
    """
    document = read_yaml(text, source)
    if not isinstance(document.value, Mapping):
        seen = shown(document.value)
        raise RecipeError(f"{source}:1: found {seen}; a workload is a mapping with `title:` and `levels:`", _HINT)
    part, found = validated(clean(document.value), WorkloadPart, _keys())
    if part and not found:
        found = tuple(_checks(part))
    problems = [*document.problems, *(Problem(document.line(path), text) for path, text in found)]
    if problems or part is None:
        raise RecipeError(report(problems, source), hint=_HINT)
    return _workload(part, source)


def _keys() -> tuple[str, ...]:
    """As they are written: a length's `from` and `to` are low and high inside."""
    return tuple(key.replace(".low", ".from").replace(".high", ".to") for key in valid_keys(WorkloadPart))


def _workload(part: WorkloadPart, source: str) -> Workload:
    return Workload(
        name=part.name or PurePath(source).stem or "workload",
        title=part.title,
        levels=tuple(plan for level in part.levels for plan in plans(level)),
        version=int(part.version),
        api=Api(part.api),
        seed=int(part.seed),
        repeats=int(part.repeats),
        thinking=None if part.thinking == "unset" else part.thinking,
        ignore_eos=part.ignore_eos,
        temperature=float(part.temperature),
        slo=Slo(**plain(part.slo.model_dump())) if part.slo else None,
        search=Search(**plain(part.search.model_dump())) if part.search else None,
        deadline=float(part.deadline),
    )


def _checks(part: WorkloadPart) -> Iterator[Complaint]:
    """What no single key shows; only of a file whose keys are all good."""
    if not part.levels:
        yield ("levels",), "`levels`: found an empty list; a workload has at least one level"
    for index, level in enumerate(part.levels):
        yield from ((("levels", index, *path), text) for path, text in complaints(level))
    if part.search and not part.slo:
        yield ("search",), "`search` finds the highest rate that meets `slo:`, which is missing"
    if part.search and part.search.low >= part.search.high:
        yield ("search",), f"`search`: found low {part.search.low:g}, high {part.search.high:g}; low is the smaller"
    yield from _twice(part)


def _twice(part: WorkloadPart) -> Iterator[Complaint]:
    seen: set[str] = set()
    for index, level in enumerate(part.levels):
        names = [] if list(complaints(level)) else [plan.name for plan in plans(level)]
        for name in names:
            if name in seen:
                yield ("levels", index), f"two levels are called {shown(name)}; give one of them a `name:` of its own"
            seen.add(name)
