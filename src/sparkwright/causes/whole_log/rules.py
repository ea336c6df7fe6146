"""The rules over whole logs, in the order of their codes; causes.toml has their texts, marks.toml what they ask for."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sparkwright.causes.cause import RuleVerdict, WholeLogRule
from sparkwright.domain.diagnosis import Proof
from sparkwright.logscan.sign import LIKELY, POSSIBLE, Story, TableRows

ENDS = "the ranks' ends"  # a source that only we write, of what nodes and the supervisor report: no log can claim it
_REPORTED = 0.99  # how sure: the node itself reports it
_AFTER = 4  # lines that may follow the last one before a wait: torch's warnings
_FIREWALL = 0.65  # how sure: a firewall looks the same
_SPINNING = 2  # rows of dmon
_SWAPPING = 3  # rows of vmstat; the first one is about the time since boot
_WAITS = 10
_NEXT_SIZE = re.compile(r"\b[1-9]\d*/\d+ \[")
_LINK_SEEN = re.compile(r"link \S{1,64} of \S{1,253} (?:is|was) down")
_PORT = re.compile(r"(f\d)\w*: Link ")


def peer_never_came(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
    """Rank 0 of several opened its rendezvous, nothing shows that the others joined, and the log ends there.

    SGLang's first node prints nothing more when it has read its settings.
    """
    others = any(story.count("worker opens") for story in stories)
    for story in stories:
        opened = story.marks.get("head opens")
        if opened and _ends_after(story, opened.last) and not story.count("ranks joined"):
            yield RuleVerdict(POSSIBLE if others else LIKELY, (opened.last, *story.tail[-1:]))
        nodes = story.marks.get("several nodes")
        if nodes and story.count("first node") and _ends_before_any_rank(story):
            yield RuleVerdict(POSSIBLE, (nodes.first, *story.tail[-1:]))


def _ends_before_any_rank(story: Story) -> bool:
    return story.ended and bool(story.count("settings")) and not story.count("rank begins")


def _ends_after(story: Story, proof: Proof) -> bool:
    return story.ended and story.lines - proof.number <= _AFTER


def nccl_init_hangs(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
    """All ranks met; the head's log ends at `NCCL version`, right after the rendezvous; no weights were loaded.

    Of a worker's log alone: it ends where the rank opens its group, and no line shows the head out of reach.
    """
    head = any(story.count("head opens") for story in stories)
    for story in (one for one in stories if not one.count("group ready")):
        begun, opened = story.marks.get("nccl begins"), story.marks.get("worker opens")
        if begun and _ends_after(story, begun.last) and story.count("head opens"):
            yield RuleVerdict(_FIREWALL, (begun.last, *story.tail[-1:]))
        elif not head and opened and _ends_after(story, opened.last):
            yield RuleVerdict(POSSIBLE, (opened.last, *story.tail[-1:]))


def find_spinning(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
    """Rows of `nvidia-smi dmon` with SM utilization of 90 % and more with memory utilization of 0 or 1 %."""
    for story in stories:
        spinning = story.marks.get("spinning")
        if spinning and spinning.count >= _SPINNING and story.count("working") <= spinning.count // 4:
            yield RuleVerdict(LIKELY, (spinning.first, spinning.last))


def capture_hangs(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
    """A log that ends at `0/N` of the progress bar of CUDA graph capture: no later size, in that line or below."""
    for story in stories:
        begun = story.marks.get("capture begins")
        if begun and _ends_after(story, begun.last):
            later = (line for line in (begun.last, *story.tail) if line.number >= begun.last.number)
            if not any(_NEXT_SIZE.search(line.text) for line in later):
                yield RuleVerdict(POSSIBLE, (begun.last,))


def link_lost(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
    """The card's link came up, went down later, and did not come up again; or the supervisor saw it down."""
    for story in stories:
        if seen := [line for line in story.tail if story.source == ENDS and _LINK_SEEN.match(line.text)]:
            yield RuleVerdict(_REPORTED, tuple(seen))
        up, down = story.marks.get("link comes"), story.marks.get("link goes")
        if up and down and down.last.number > up.last.number and _port(up.last) == _port(down.last):
            yield RuleVerdict(LIKELY, (up.last, down.last))


def _port(proof: Proof) -> str:
    """`f0` of enp1s0f0np0 and of its second port enP2p1s0f0np0."""
    match = _PORT.search(proof.text)
    return match[1] if match else ""


def worker_silent(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
    """A log that ends with ten and more of vLLM's minutes of waiting for a worker's answer."""
    for story in stories:
        waits = story.marks.get("worker waits")
        if waits and waits.count >= _WAITS and story.lines - waits.last.number <= _AFTER:
            yield RuleVerdict(POSSIBLE, (waits.first, waits.last))


def scheduler_silent(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
    """SGLang's health check found no answer of its scheduler for 20 seconds, more than once."""
    for story in stories:
        silent = story.marks.get("no answer inside")
        if silent and silent.count > 1:
            yield RuleVerdict(LIKELY if _ends_after(story, silent.last) else POSSIBLE, (silent.first, silent.last))


def too_small_a_share(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
    """The engine may use less than a tenth of the memory, and its log ends before any weights are loaded."""
    for story in stories:
        share = story.marks.get("small share")
        if share and story.ended and not story.count("loads"):
            yield RuleVerdict(POSSIBLE, (share.first, *story.tail[-1:]))


def rank_never_began(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
    """SGLang shall split a model on one node, and the log ends before any rank begins: each needs a GPU."""
    for story in stories:
        split = story.marks.get("splits")
        if split and story.count("one node") and _ends_before_any_rank(story):
            yield RuleVerdict(POSSIBLE, (split.first, *story.tail[-1:]))


def _counting(*names: str, sure: float, least: int = 1) -> Callable[[tuple[Story, ...]], Iterator[RuleVerdict]]:
    """Judges by marks that came as often in a source."""

    def judge(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
        marks = (story.marks.get(name) for story in stories for name in names)
        return (RuleVerdict(sure, (one.first, one.last)) for one in marks if one and one.count >= least)

    return judge


def _showing(pattern: str) -> Callable[[tuple[Story, ...]], Iterator[RuleVerdict]]:
    """Judges by lines of this source that match."""
    shows = re.compile(pattern)

    def judge(stories: tuple[Story, ...]) -> Iterator[RuleVerdict]:
        lines = [line for story in stories if story.source == ENDS for line in story.tail if shows.match(line.text)]
        if lines:
            yield RuleVerdict(
                LIKELY if any("cannot be read" in line.text for line in lines) else _REPORTED, tuple(lines)
            )

    return judge


JUDGES: Mapping[str, Callable[[tuple[Story, ...]], Iterator[RuleVerdict]]] = {
    "LIVE001": peer_never_came,
    "LIVE002": nccl_init_hangs,
    "LIVE003": find_spinning,
    "LIVE004": capture_hangs,
    "LIVE005": link_lost,
    "LIVE006": _counting("capped in gigabits", "capped in megabytes", sure=LIKELY),  # 12.5 to 14 Gb/s from 16 KiB on
    "LIVE007": _counting("swaps", sure=POSSIBLE, least=_SWAPPING),  # more than 1,000 blocks a second
    "LIVE008": worker_silent,
    "LIVE009": _showing(r"rank \d{1,4} on \S{1,253} was killed by signal \d{1,3} "),
    "LIVE010": _showing(r".{0,300} (?:was|were) rebooted$"),
    "LIVE011": _showing(
        r"rank \d{1,4} on \S{1,253}: (?:process \d{1,10} \(.{0,64}\) is stopped |its container is paused )"
    ),
    "LIVE012": _showing(r"disk full on \S{1,253}: .{0,200}; rank \d{1,4} ended there$"),
    "LIVE013": scheduler_silent,
    "LIVE014": too_small_a_share,
    "LIVE015": rank_never_began,
    "LIVE016": _showing(r"\S{1,253} was reset by its hardware watchdog$"),
}


def _rule(code: str, found: Mapping[str, Any]) -> WholeLogRule:
    rows = {name: TableRows(row["header"], row["pattern"].encode()) for name, row in found.get("rows", {}).items()}
    return WholeLogRule(code, JUDGES[code], found.get("marks", {}), rows)


_MARKS = tomllib.loads(Path(__file__).with_name("marks.toml").read_text(encoding="utf-8"))
WHOLE_LOG = tuple(_rule(code, _MARKS.get(code, {})) for code in JUDGES)
