"""The common parts of the engines' log dialects: pieces of a line, progress bars, rules that turn text into
LogEvents."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.engines.tables import DATA_OF, RUNS_AS_IT_IS, SEPARATE, engine_table
from sparkwright.engines.version import version_key
from sparkwright.logscan.envelope import is_json, plain_text

LONGEST = 4000
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# What the bar is of stands before it and is cut off afterwards: a pattern that looks for its beginning, too, takes
# seconds for a line that is padded with a thousand blanks.
_BAR = re.compile(r"\s\d{1,3}%(?: Completed \||\|[^|]*\|)\s*(?P<done>\S{1,12})/(?P<total>\S{1,12}) \[")
_WHAT = 160
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKMGT]?)B?$")
_SCALE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
# An exception's own line stands at the left margin after the logger's prefix; frames and code are indented.
EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?::|$)")
# vLLM repeats the place before each line of a message and traceback; requests and answers have their newlines escaped.
_CLIENTS = re.compile(
    r"Received request \S+:|Request \S+ details:|Generated response \S+|Receive(?: OpenAI request)?: obj=|Finish: obj="
    r"|\[(?:[\w/]{1,80}/)?(?:logger|serving\w{0,40}|preprocess|chat_utils|protocol)\.py:\d+\]"
    r"|log_server_r: re(?:quest|sponse):|\bcode (?:4\d\d|501|505), message "
    r'|"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) '
)

# Their traceback follows without a prefix, and ends in the client's text: `logger.exception` of SGLang prints that text
# twice (https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/serving_base.py), uvicorn
# once.
_QUOTED_TWICE = re.compile(r"Error in request: ")
_QUOTED = re.compile(
    r"Exception in ASGI application|\[http_server\] Error:|(?:Tool call|Reasoning) parsing error:"
    r"|Error in (?:detect_and_parse|parse_streaming_increment)"
)
# What Python's extensions and helpers print while a process ends (nanobind of torch 2.13 and Triton: 29 lines).
_EXIT_NOISE = re.compile(
    r"nanobind: |See https://nanobind\.| - (?:leaked |\.\.\. skipped )|.{0,200}resource_tracker: There appear to be"
    r"|  warnings\.warn\("
)
_PROCESS = re.compile(r"\(\w+ pid=\d+\)")
_RECORD = re.compile(r"\[\d|\(\w+ pid=\d+\)|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b")


@dataclass(frozen=True, slots=True)
class LineRule:
    """One kind of line. facts: fact name -> group of the pattern. done/total: names of groups with numbers.

    by: the program that prints it, if it is not the engine itself (scripts/engines/engine_logs.py).
    """

    phase: Phase
    pattern: re.Pattern[str]
    text: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    done: str = ""
    total: str = ""
    unit: str = ""
    ready: bool = False
    alive: bool = False
    by: str = ""

    def read(self, body: str) -> LogEvent | None:
        match = self.pattern.search(body)
        if not match:
            return None
        found = match.groupdict()
        facts = tuple((name, clean_figure(found[group])) for name, group in self.facts.items() if found.get(group))
        return LogEvent(
            self.phase,
            self.text.format(**found) if self.text else body.strip()[:200],
            done=number(found.get(self.done)),
            total=number(found.get(self.total)),
            unit=self.unit,
            facts=facts,
            ready=self.ready,
            alive=self.alive,
        )


def of_a_client(line: str) -> bool:
    """True if it may contain a client's text: request logs, answers, access logs, errors of the API's own handlers."""
    return bool(_CLIENTS.search(line[:200]))


def is_exit_noise(line: str) -> bool:
    """True if a line only lists what a process left behind at its exit: never evidence of the reason."""
    return bool(_EXIT_NOISE.match(line))


def quotes_a_client(line: str) -> bool:
    """True if lines with a client's text may follow."""
    return bool(_QUOTED_TWICE.search(line[:200]) or _QUOTED.search(line[:200]))


def without_clients(log: str) -> str:
    """The lines that no client can have written: a quoted text may hold lines that look like records of the engine.

    A traceback ends at the next record that is printed once. Where the text is printed once, too, the end is not known:
    the rest of what that process printed goes.
    """
    lines = log.splitlines(keepends=True)
    first = next((at for at, line in enumerate(lines) if quotes_a_client(line)), len(lines))
    times = Counter(lines[first:])
    kept, quoting, closed = list[str](), set[str](), set[str]()
    for line in lines:
        found = _PROCESS.match(line)
        who = {"", found[0] if found else ""}
        if quotes_a_client(line):
            (quoting if _QUOTED_TWICE.search(line[:200]) else closed).add(found[0] if found else "")
        elif _RECORD.match(line) and times[line] == 1:
            quoting -= who
        if not (of_a_client(line) or who & (quoting | closed)):
            kept.append(line)
    return "".join(kept)


def pieces(line: str, begins: re.Pattern[str]) -> tuple[str, ...]:
    """A raw line as the parts that a terminal would show one after the other.

    Progress bars end in carriage returns, and a process that prints while a bar is open continues its line:
    `begins` marks where such a message starts.
    """
    parts: list[str] = []
    for part in _COLOUR.sub("", line).replace("\n", "\r").split("\r"):
        cuts = [m.start() for m in begins.finditer(part) if m.start()]
        bounds = [0, *cuts, len(part)]
        parts += [part[a:b][:LONGEST] for a, b in pairwise(bounds)]
    return tuple(p for p in parts if p.strip())


def parse_bar(body: str) -> tuple[str, float, float] | None:
    """The (name, done, total) of a tqdm bar, with or without its graphic; None for anything else."""
    match = _BAR.search(body)
    done, total = (number(match["done"]), number(match["total"])) if match else (None, None)
    if match is None or done is None or total is None:
        return None
    what = body[: match.start()].rpartition("|")[2].strip().removesuffix(":")[-_WHAT:]
    return what.strip(), done, total


def progress(bars: Iterable[tuple[re.Pattern[str], Phase, str]], body: str) -> LogEvent | None:
    """A progress bar; bars: its label -> phase and unit. One that is not known still proves that its rank lives."""
    found = parse_bar(body)
    if found is None:
        return None
    what, done, total = found
    for pattern, phase, unit in bars:
        if pattern.search(what):
            return LogEvent(phase, what, done=done, total=total, unit=unit)
    return LogEvent(Phase.START, what, done=done, total=total, alive=True)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The log of one engine, as `log` of its file has it: lines with a prefix before each message.

    versions: those whose log was read, oldest first. begins: where a message starts inside a line. prefix: a group
    `who` names the process, E or F in a group `level` is an error. failures: headlines that are errors besides
    exceptions; exceptions: whether these are; of_a_request: those that only report a wrong request (400). bars: label,
    phase, unit; without any, bars are not read.
    """

    begins: re.Pattern[str]
    rule: tuple[LineRule, ...]
    prefix: re.Pattern[str] = re.compile("")
    bars: tuple[tuple[re.Pattern[str], Phase, str], ...] = ()
    failures: tuple[re.Pattern[str], ...] = ()
    of_a_request: re.Pattern[str] | None = None
    exceptions: bool = True
    versions: tuple[str, ...] = ()

    def read(self, line: str) -> LogEvent | None:
        line = plain_text(line) if is_json(line) else line
        return most_telling(e for piece in pieces(line, self.begins) if (e := self.piece(piece)))

    def piece(self, piece: str) -> LogEvent | None:
        prefix = self.prefix.match(piece)
        body, found = (piece[prefix.end() :], prefix.groupdict()) if prefix else (piece, {})
        if (found.get("level") or "-") in "EF" or self._is_error(body):
            return LogEvent(Phase.START, body.strip()[:500], error=True)
        event = progress(self.bars, body) if self.bars else None
        event = event or next((event for rule in self.rule if (event := rule.read(body))), None)
        who = found.get("who")
        return replace(event, who=who) if event and who else event

    def _is_error(self, body: str) -> bool:
        if self.exceptions and EXCEPTION.match(body):
            return not (self.of_a_request and self.of_a_request.search(body))
        return any(failure.search(body) for failure in self.failures)


@cache
def dialect(engine: str) -> Dialect:
    """The dialect of an engine of sparkwright's own."""
    return make_dialect(f"engines/{engine}.toml", engine_table(engine)["log"])


def log_read_up_to(engine: str, version: str) -> str:
    """The newest version whose log was read, if this one is newer, older than all, or no version; else ''."""
    of = DATA_OF.get(engine, engine)
    if engine not in (of, *RUNS_AS_IT_IS) or of not in SEPARATE:
        return ""
    known = dialect(of).versions
    key = version_key(of, version)
    if known and not (key and version_key(of, known[0])[:3] <= key[:3] <= version_key(of, known[-1])[:3]):
        return known[-1]
    return ""


def make_dialect(
    file: str, given: Mapping[str, Any], pattern: Callable[[str], re.Pattern[str]] = re.compile
) -> Dialect:
    """Raises ValueError that names the file and the rule: an unknown key or phase, a bad pattern.

    pattern: compiles a text.
    """
    found, at = dict(given), "its head"
    try:
        rules = []
        for row in found["rule"]:
            at = f"rule {row.get('pattern')!r}"
            rules.append(LineRule(**row | {"phase": Phase(row["phase"]), "pattern": pattern(row["pattern"])}))
        at = "its head"
        bars = tuple((pattern(label), Phase(phase), unit) for label, phase, unit in found.pop("bars", ()))
        failures = tuple(map(pattern, found.pop("failures", ())))
        found["versions"] = tuple(found.pop("versions", ()))
        patterns = {key: pattern(text) for key, text in found.items() if isinstance(text, str)}
        return Dialect(**found | patterns | {"rule": tuple(rules), "bars": bars, "failures": failures})
    except (TypeError, ValueError, KeyError, re.error) as error:
        raise ValueError(f"{file}: {at}: {error}") from error


def most_telling(events: Iterable[LogEvent]) -> LogEvent | None:
    """The most telling event of a line: an error, else ready, else the last progress, else any sign of life."""
    ranked: list[Callable[[LogEvent], bool]] = [lambda e: e.error, lambda e: e.ready, lambda e: not e.alive]
    found = tuple(events)
    for wanted in ranked:
        chosen = [e for e in found if wanted(e)]
        if chosen:
            return chosen[0] if chosen[0].error else chosen[-1]
    return found[-1] if found else None


def number(text: str | None) -> float | None:
    """`66.97`, `1,048,576`, `4.2G`; None for what is no number."""
    match = _NUMBER.match(text.replace(",", "")) if text else None
    return float(match[1]) * _SCALE[match[2]] if match else None


def clean_figure(text: str) -> str:
    """A figure as kept: without thousands separators and final full stop."""
    return text.replace(",", "").rstrip(".")
