"""Does this version of the engine have this flag, and does it take this value? Asked of data read from its wheel.

Findings: ENG001 unknown flag, ENG002 value not among those allowed, ENG003 value missing or of the wrong kind,
ENG004 unknown key in a JSON option, ENG005 data of a neighbouring version used, ENG006 no data for this version,
ENG007 deprecated, ENG008 environment variable that the engine does not read, ENG009 name not among the built-in ones.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from itertools import pairwise
from typing import Any

from sparkwright.domain.finding import Finding, Severity
from sparkwright.engines.flag_values import Option, Problem, problems
from sparkwright.engines.options import option_name

# The twin takes vLLM's flags.
DATA_OF = {"twin": "vllm"}
# Variables that an engine's own prefix claims; others belong to libraries.
ENV_PREFIX = {"vllm": "VLLM_", "llama-cpp": "LLAMA_"}
# Read by the program around the engine, not through its list of variables.
ENV_BESIDES = frozenset({"VLLM_NCCL_SO_PATH"})
_SHORT = re.compile(r"-[A-Za-z]")
_LEVEL = re.compile(r"-O=?(\d?)$")  # vLLM's parser turns -O3 into --optimization-level 3
# Where the right option is spelled quite differently: other engines' words, and options that were replaced.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "mem-fraction-static": "--gpu-memory-utilization",
        "context-length": "--max-model-len",
        "ctx-size": "--max-model-len",
        "max-running-requests": "--max-num-seqs",
        "tp": "--tensor-parallel-size",
        "tp-size": "--tensor-parallel-size",
        "dist-init-addr": "--master-addr",
        "disable-cuda-graph": "--enforce-eager",
        "disable-log-requests": "--no-enable-log-requests",
        "kv-cache-memory": "--kv-cache-memory-bytes",
    },
    "llama-cpp": {
        "no-mmap": "--load-mode none",
        "mmap": "--load-mode mmap",
        "mlock": "--load-mode mlock",
        "max-model-len": "--ctx-size",
        "max-num-seqs": "--parallel",
        "served-model-name": "--alias",
    },
}


@dataclass(frozen=True, slots=True)
class FlagData:
    """Options of one engine version. options: name without dashes -> Option; names: every spelling -> that name."""

    engine: str
    version: str
    wheel: str
    sha256: str
    options: Mapping[str, Option]
    names: Mapping[str, str]
    env: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Given:
    """One option as written: the word itself, its option if known, dotted key ('' if none), values, and `--no-`."""

    word: str
    option: Option | None
    key: str = ""
    values: tuple[str, ...] = ()
    negated: bool = False


def load_flags(text: str) -> FlagData:
    """Parses a data file. Raises ValueError or KeyError on a file that scripts/engine_data.py did not write."""
    raw = json.loads(text)
    options = {name: _option(name, row) for name, row in raw["options"].items()}
    names = {spelling: option.name for option in options.values() for spelling in option.spellings}
    return FlagData(
        raw["engine"], raw["version"], raw["wheel"], raw["sha256"], options, names, frozenset(raw.get("env", ()))
    )


def _option(name: str, row: Mapping[str, Any]) -> Option:
    listed = {key: tuple(row.get(key, ())) for key in ("choices", "known", "aliases", "negatives")}
    return Option(
        name,
        row["kind"],
        type=row.get("type", "str"),
        choices=listed["choices"],
        known=listed["known"],
        aliases=listed["aliases"],
        negatives=listed["negatives"],
        deprecated="deprecated" if row.get("deprecated") is True else row.get("deprecated", ""),
        folded=row.get("folded", False),
        limits=row.get("range", {}),
        keys=row.get("keys", {}),
    )


def versions(engine: str) -> tuple[str, ...]:
    """Versions that have data, oldest first."""
    stem = f"{DATA_OF.get(engine, engine)}-"
    names = (entry.name for entry in (files("sparkwright.engines") / "data").iterdir())
    found = (name.removeprefix(stem).removesuffix(".json") for name in names if name.startswith(stem))
    return tuple(sorted(found, key=_numbers))


def flag_data(engine: str, version: str) -> tuple[FlagData | None, tuple[Finding, ...]]:
    """The data to use, and what must be said about that choice: same minor series, else none at all."""
    known = versions(engine)
    if version in known:
        return _read(engine, version), ()
    series = [v for v in known if _numbers(v)[:2] == _numbers(version)[:2]]
    if not series:
        return None, (_no_data(engine, version, known),)
    near = min(series, key=lambda v: abs(_patch(v) - _patch(version)))
    return _read(engine, near), (_neighbour(engine, version, near),)


def _read(engine: str, version: str) -> FlagData:
    path = files("sparkwright.engines") / "data" / f"{DATA_OF.get(engine, engine)}-{version}.json"
    return load_flags(path.read_text(encoding="utf-8"))


def check_flags(engine: str, version: str, argv: Sequence[str]) -> tuple[Finding, ...]:
    """Findings over a rank's words; those before the first option (program, `serve`, model) are skipped."""
    data, said = flag_data(engine, version)
    return (*said, *(check_against(data, argv, exact=not said) if data else ()))


def check_variables(engine: str, version: str, env: Iterable[str]) -> tuple[Finding, ...]:
    """ENG008 for variables with the engine's prefix that this version does not read: it ignores them silently."""
    data, _ = flag_data(engine, version)
    prefix = ENV_PREFIX.get(DATA_OF.get(engine, engine), "\0")
    if data is None or not data.env:
        return ()
    unknown = [name for name in env if name.startswith(prefix) and name not in data.env | ENV_BESIDES]
    return tuple(_unread(data, name) for name in unknown)


def check_against(data: FlagData, argv: Sequence[str], exact: bool = True) -> tuple[Finding, ...]:
    """exact: the data is of this very version; otherwise an unknown flag may exist and only weighs as a warning."""
    severity = Severity.OVERRIDE if exact else Severity.WARN
    return tuple(finding for given in parse(data, argv) for finding in _check(data, given, severity))


def parse(data: FlagData, argv: Sequence[str]) -> Iterator[Given]:
    """The options of a command line, each with the words up to the next option that it takes."""
    if len(argv) > 2 and argv[1] == "-m" and "python" in argv[0]:
        argv = argv[3:]  # the interpreter's own option
    starts = [i for i, word in enumerate(argv) if _is_option(data, word)]
    for start, end in pairwise([*starts, len(argv)]):
        word, _, inline = argv[start].partition("=")
        rest = (inline,) if "=" in argv[start] else tuple(argv[start + 1 : end])
        yield _given(data, word, rest)


def _is_option(data: FlagData, word: str) -> bool:
    """`-1` is a value, `-x` an option, known or not."""
    return word.startswith("--") or bool(_SHORT.match(word))


def _given(data: FlagData, word: str, values: tuple[str, ...]) -> Given:
    if data.engine == "vllm" and (level := _LEVEL.match(word)):
        return Given(word, data.options["optimization-level"], "", (level[1],) if level[1] else values)
    name, _, key = (option_name(word) if word.startswith("--") else word).partition(".")
    spelled = f"--{name}" if word.startswith("--") else word
    if spelled in data.names:
        option = data.options[data.names[spelled]]
        return Given(word, option, key.rstrip("+"), values, negated=spelled in option.negations)
    return Given(word, None, key, values)


def _check(data: FlagData, given: Given, severity: Severity) -> Iterator[Finding]:
    if given.option is None:
        yield _unknown(data, given, severity)
        return
    if given.option.deprecated:
        yield _deprecated(data, given)
    found = () if given.negated else problems(given.option, given.key, given.values)
    yield from (_problem(data, given, problem, severity) for problem in found)


def _unknown(data: FlagData, given: Given, severity: Severity) -> Finding:
    name = option_name(given.word).partition(".")[0]
    near = [RENAMED[data.engine][name]] if name in RENAMED.get(data.engine, {}) else []
    near = near or get_close_matches(f"--{name}", data.names, 1, 0.6)
    return Finding(
        "ENG001", severity, given.word, f"{data.engine} {data.version} has no option {given.word}",
        evidence=" ".join((given.word, *given.values))[:200],
        cause="the engine would end at once with `unrecognized arguments`",
        remedy=f"did you mean {near[0]}?" if near else f"remove it, or take a version of {data.engine} that has it",
    )  # fmt: skip


def _problem(data: FlagData, given: Given, problem: Problem, severity: Severity) -> Finding:
    weight = Severity.WARN if problem.code == "ENG009" else severity
    return Finding(
        problem.code, weight, given.word, f"{data.engine} {data.version}: {given.word} {problem.what}",
        evidence=" ".join((given.word, *given.values))[:200],
        remedy=problem.remedy,
    )  # fmt: skip


def _deprecated(data: FlagData, given: Given) -> Finding:
    text = given.option.deprecated if given.option else ""
    severity = Severity.OVERRIDE if "removed" in text else Severity.WARN
    title = f"{given.word} is on its way out in {data.engine} {data.version}"
    return Finding("ENG007", severity, given.word, title, evidence=text, remedy="use what the engine names instead")


def _unread(data: FlagData, name: str) -> Finding:
    near = get_close_matches(name, data.env, 1, 0.75)
    return Finding(
        "ENG008", Severity.WARN, f"env.{name}", f"{data.engine} {data.version} does not read {name}",
        cause="it is ignored without a word, and what it should do does not happen (field guide E65)",
        remedy=f"did you mean {near[0]}?" if near else "keep it only if the image's own build reads it",
    )  # fmt: skip


def _neighbour(engine: str, version: str, near: str) -> Finding:
    return Finding(
        "ENG005", Severity.INFO, "engine.version", f"flags are checked against {engine} {near}",
        evidence=f"no flag data for {version}, but for {near} of the same series",
        remedy="a flag that only this build has is reported as a warning, not refused",
    )  # fmt: skip


def _no_data(engine: str, version: str, known: tuple[str, ...]) -> Finding:
    return Finding(
        "ENG006", Severity.OVERRIDE, "engine.version", f"no flag data for {engine} {version or '(no version given)'}",
        evidence=f"there is data for {', '.join(known) or 'no version'}",
        cause="its command line cannot be checked before the start",
        remedy="take one of those versions, or make the data: scripts/engine_data.py",
    )  # fmt: skip


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])


def _patch(version: str) -> int:
    return (*_numbers(version), 0, 0, 0)[2]
