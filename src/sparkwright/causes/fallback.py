"""The explanation of a failure that no mechanism fits: the kind of its error, or the last line of a log without any."""

import errno
import re
import signal
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.causes.ranking import Slots
from sparkwright.domain.deployment import PHASE_ORDER, Phase
from sparkwright.domain.diagnosis import Explanation, Proof
from sparkwright.engines.dialect import is_exit_noise
from sparkwright.engines.progress import LogOrigin, origin_of
from sparkwright.logscan.book import linear
from sparkwright.logscan.logline import is_settings, line_time, process_name

ENDS, WORKER_ENDS = "log-ends", "worker-log-ends"
_LONGEST = 600  # characters of the last line that are shown
_OF_A_WARNING = re.compile(r"\s|\S+\.py:\d+: \w+Warning: ")  # Python's warnings: a place, and the code there
_SEVERAL = re.compile(r"nnodes[=: ']{1,3}[2-9]|world_size=[2-9]")


@cache
def _texts() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("mechanisms").joinpath("endings.toml").read_text(encoding="utf-8"))


@cache
def kind_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(linear(pattern)) for pattern in _texts()["kind"].values())


def kind_of(line: str) -> str:
    """The exception's type, the name of the errno or signal, the exit code or HTTP status in a line, or ''."""
    found = next((match for kind in kind_patterns() if (match := kind.search(line))), None)
    return next((_spelt(slot, text) for slot, text in found.groupdict().items() if text), "") if found else ""


@cache
def contexts() -> tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...]:
    """(form, family, steps) of places that errors come from."""
    return tuple((re.compile(linear(one["when"])), one["family"], tuple(one["next"])) for one in _texts()["context"])


def context_of(phase: str, place: str, line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(families of causes of an error from there, steps)."""
    seen = f"phase={phase} in={place}\n{line}"
    of_place = next(((family, steps) for form, family, steps in contexts() if form.search(seen)), None)
    return ((of_place[0],), (*of_place[1], *_texts()["unknown"])) if of_place else ((), tuple(_texts()["unknown"]))


def _spelt(slot: str, text: str) -> str:
    if slot == "number":
        return errno.errorcode.get(int(text), f"errno {text}")
    if slot == "signal":
        return next((one.name for one in signal.Signals if one.value == int(text)), f"signal {text}")
    return {"code": f"exit code {text}", "status": f"HTTP {text}"}.get(slot, text)


def ending(logs: Mapping[str, Sequence[tuple[int, str]]], year: int, words: Mapping[str, str]) -> Explanation | None:
    """The last step of an engine's log that reports neither failure nor readiness; None once any of the logs is
    ready."""
    origins = {name: origin_of(name, lines) for name, lines in logs.items()}
    if any(whose.progress.served for whose in origins.values()):
        return None
    for name, whose in origins.items():
        plain = [line for line in logs[name] if line[1].strip() and not is_settings(line[1])]
        plain = [line for line in plain if not (is_exit_noise(line[1]) or _OF_A_WARNING.match(line[1]))] or plain
        if whose.progress.phases and plain:
            several = len(logs) == 1 and any(_SEVERAL.search(text) for _, text in logs[name])
            number, text = plain[-1]
            proof = Proof(name, number, text.strip()[:_LONGEST], line_time(text, year), process_name(text))
            return _explained(whose, proof, several, words)
    return None


def _explained(whose: LogOrigin, last: Proof, several: bool, words: Mapping[str, str]) -> Explanation:
    texts, phase = _texts(), whose.progress.at(last.number) or Phase.START
    done = whose.rank == "worker" and PHASE_ORDER.index(phase) >= PHASE_ORDER.index(Phase.WARMUP)
    title = texts["worker"] if done else texts["title"].format(phase=phase)
    steps = (*(texts["several"] if several else ()), *texts["phase"][phase], *texts["always"])
    told = tuple(step.format_map(Slots(words)) for step in steps)
    return Explanation(last, WORKER_ENDS if done else ENDS, title, (), "", phase.value, told)
