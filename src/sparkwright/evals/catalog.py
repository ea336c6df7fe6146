"""The probes: their texts from probes.toml, read strictly, and their functions."""

import tomllib
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from sparkwright.domain.errors import UsageError
from sparkwright.domain.evaluation import ProbeOutcome, ProbeState
from sparkwright.domain.values import dataclass, fields, replace
from sparkwright.evals import context, structured, text, tools
from sparkwright.evals.probe import Probe

PROBES: Mapping[str, Probe] = {
    "follows": text.follows,
    "tool-call": tools.probe_call,
    "tool-count": tools.probe_count,
    "tool-choice": structured.choice,
    "tool-parallel": tools.parallel,
    "tool-arguments": tools.arguments,
    "tool-stream": tools.stream,
    "tool-turns": tools.probe_turns,
    "thinking": text.thinking,
    "stream": text.stream,
    "json-schema": structured.schema,
    "choices": structured.choices,
    "stop": text.stop,
    "logprobs": text.logprobs,
    "usage": text.probe_usage,
    "length": text.length,
    "responses": tools.responses,
    "messages": tools.messages,
    "long-context": context.probe_keys,
    "batch": context.probe_batch,
    "cached": context.cached,
}


@dataclass(frozen=True, slots=True)
class ProbeEntry:
    """One probe of probes.toml. quick: of the subset that takes seconds; slow: takes minutes."""

    name: str
    checks: str
    means: str
    hint: str
    needs: tuple[str, ...] = ()
    quick: bool = False
    slow: bool = False

    def explained(self, outcome: ProbeOutcome) -> ProbeOutcome:
        return replace(outcome, means=self.means, hint=self.hint) if outcome.state is ProbeState.FAILED else outcome


def parse(source: str) -> tuple[ProbeEntry, ...]:
    """Raises ValueError, naming the entry."""
    kinds = {field.name: field for field in fields(ProbeEntry)}
    entries: list[ProbeEntry] = []
    for name, table in tomllib.loads(source).items():
        if unknown := set(table) - set(kinds) | set(table) & {"name"}:
            raise ValueError(f"[{name}]: unknown key {sorted(unknown)[0]}")
        if missing := {"checks", "means", "hint"} - set(table):
            raise ValueError(f"[{name}]: {sorted(missing)[0]} is missing")
        found = ProbeEntry(name, **{**table, "needs": tuple(table.get("needs", ()))})
        if later := [one for one in found.needs if one not in {entry.name for entry in entries}]:
            raise ValueError(f"[{name}]: needs {later[0]}, which is not before it")
        entries.append(found)
    return tuple(entries)


@cache
def entries() -> tuple[ProbeEntry, ...]:
    """The entries in the order in which they are run."""
    return parse(Path(__file__).with_name("probes.toml").read_text(encoding="utf-8"))


def chosen(only: Collection[str], quick: bool = False) -> tuple[ProbeEntry, ...]:
    """The probes of these names with what they need; all without names. Raises UsageError."""
    known = {entry.name: entry for entry in entries()}
    for name in only:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"probes: {', '.join(known)}"
            raise UsageError(f"unknown probe {name!r}", hint)
    wanted = set(only) or {entry.name for entry in entries() if entry.quick or not quick}
    for entry in reversed(entries()):  # what one needs is before it
        wanted |= set(entry.needs) if entry.name in wanted else set()
    return tuple(entry for entry in entries() if entry.name in wanted)
