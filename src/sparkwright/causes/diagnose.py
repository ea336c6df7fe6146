"""From the bytes of logs to a diagnosis: one Reader a source, then all of them together."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from statistics import median

from sparkwright.causes.cause import LogCause, book_of
from sparkwright.causes.explanation import reason
from sparkwright.causes.load import families, needs
from sparkwright.causes.ranking import MOST, Slots, found_by_signs, found_by_stories, named, ranked
from sparkwright.causes.similarity import Index, index, resembled
from sparkwright.causes.whole_log.rules import WHOLE_LOG
from sparkwright.domain.diagnosis import Cause, Diagnosis, Explanation, Proof, Source, Sureness, likely
from sparkwright.logscan.book import Book
from sparkwright.logscan.envelope import Unwrap
from sparkwright.logscan.logline import Excerpt, when
from sparkwright.logscan.matcher import Hit, Scan
from sparkwright.logscan.sign import POSSIBLE, Story

_FAULTS = "driver-and-gpu-fault"
_KERNEL_LOG = "kernel log of "  # a node's: full of errors that concern nothing here
# What tells whether a kind of log was given at all.
_KINDS = {
    "kernel log": r"kernel: |NVRM: |\bLinux version \d",
    "cause above": r"See root cause above|Engine core initialization failed|WorkerProc initialization failed",
    "several ranks": r"world_size=(?:[2-9]|\d\d+) rank=|nnodes[=: ']+[2-9]|nranks (?:[2-9]|\d\d+)\b",
}


@cache
def known() -> Mapping[str, LogCause]:
    """Code -> cause, of those that single lines show."""
    return {cause.code: cause for causes in families().values() for cause in causes}


def clients_faults() -> frozenset[str]:
    """Keys of what a client did wrong, or was refused: no rank ends for that."""
    return frozenset(cause.key for cause in families()["api-and-client"] if not cause.severity.stops)


def ending() -> frozenset[str]:
    """Keys of what ends a service: none of it has happened as long as it answers."""
    return frozenset(cause.key for cause in known().values() if cause.severity.stops)


def degradations() -> frozenset[str]:
    """Keys of what degrades a service or goes along with it: it does not end one that has served."""
    return frozenset(cause.key for cause in known().values() if not cause.severity.stops)


@cache
def book() -> Book:
    """All that is looked for in logs."""
    return book_of(known().values(), WHOLE_LOG, {**BARRIERS, **_KINDS}, needs())


class Reader:
    """One source: feed it bytes in order, then close it. year: of lines whose time has none. skipped: lines before."""

    def __init__(self, rules: Book, name: str, year: int, skipped: int = 0) -> None:
        self.name, self.year, self._skipped = name, year, skipped
        self.ended = True  # False while more may come: then nobody can be said to wait in vain
        self._scan, self._unwrap = Scan(rules, name, year, skipped), Unwrap()

    def feed(self, chunk: bytes) -> tuple[Hit, ...]:
        """The signs that are new."""
        plain = self._unwrap.feed(chunk)
        return self._scan.feed(plain) if plain else ()

    def close(self) -> tuple[Hit, ...]:
        rest = self._unwrap.close()
        return (*(self._scan.feed(rest) if rest else ()), *self._scan.close())

    @property
    def kept(self) -> Excerpt:
        """Its lines that are not like earlier ones."""
        return self._scan.kept

    @property
    def hits(self) -> tuple[Hit, ...]:
        return tuple(self._scan.hits.values())

    def story(self) -> Story:
        return self._scan.story(self.ended)

    def source(self, shift: float = 0.0) -> Source:
        first, last = self._scan.times()
        return Source(self.name, self._scan.lines - self._skipped, self._scan.bytes, first, last, round(shift, 1))


class SplitReader:
    """A log that is read in two parts: what was logged before a time, and from then on. Lines are fed in order.

    border: the log's first time -> that time by the log's own clock; -inf where all lines belong to the second part.
    """

    def __init__(self, name: str, year: int, border: Callable[[float], float]) -> None:
        self.early: Reader | None = None
        self._name, self._year, self._border = name, year, border
        self._limit: float | None = None
        self._settled = False
        self._reader = Reader(book(), name, year)

    def feed(self, line: str) -> None:
        if not self._settled and (at := when(line, self._year)) is not None:
            self._pass(at)
        self._reader.feed(f"{line}\n".encode("utf-8", "replace"))

    def _pass(self, at: float) -> None:
        self._limit = self._border(at) if self._limit is None else self._limit
        if at < self._limit:
            self.early = self._reader
            return
        self._settled = True
        if self.early:
            self.early.close()
            self._reader = Reader(book(), self._name, self._year, self.early.source().lines)

    def close(self) -> None:
        self._reader.close()
        if self.early:
            self.early.ended = False  # more came after it

    @property
    def current(self) -> tuple[Reader, ...]:
        return () if self._reader is self.early or not self._reader.source().lines else (self._reader,)


def diagnosis(
    readers: Sequence[Reader],
    words: Mapping[str, str],
    clocks: Mapping[str, float] | None = None,
    impossible: Set[str] = frozenset(),
    earlier: Sequence[Reader] = (),
) -> Diagnosis:
    """words: about the cluster, for the commands of the fix. clocks: source -> seconds to add to its times, where they

    were measured; otherwise the logs' own barriers decide. impossible: causes of what is asked about that cannot be.
    earlier: parts of the same sources that were read and cannot show a cause.
    """
    stories = tuple(reader.story() for reader in readers)
    moved = clocks if clocks is not None else shifts(stories)
    hits = [_moved(hit, moved.get(reader.name, 0.0)) for reader in readers for hit in reader.hits]
    found = [*found_by_signs(hits, known()), *found_by_stories(WHOLE_LOG, stories)]
    causes, harmless = ranked([one for one in found if one.known.key not in impossible], words)
    sources = _sources([reader.source(moved.get(reader.name, 0.0)) for reader in (*earlier, *readers)])
    untold, collect = _missing((*stories, *(reader.story() for reader in earlier)), causes)
    return Diagnosis(causes, harmless, sources, untold, tuple(step.format_map(Slots(words)) for step in collect))


def with_explanation(
    found: Diagnosis,
    readers: Sequence[Reader],
    words: Mapping[str, str],
    impossible: Set[str] = frozenset(),
    causes: Index | None = None,
) -> Diagnosis:
    """The same with the line that explains; where no cause is likely, with those that the log resembles.

    causes: those that it may resemble, all where none are given.
    """
    if not readers:
        return found
    logs = {one.name: one.kept for one in readers if not one.name.startswith(_KERNEL_LOG)}
    because = reason(logs, readers[0].year, words)
    if any(cause.confidence >= POSSIBLE for cause in found.causes):
        return replace(found, explanation=_unless_shown(because.why, found.causes))
    if because.why or (because.lines and not found.harmless):
        near = [one for one in resembled(because, causes or index()) if one.known.key not in impossible]
        known = {one.known.key for one in near}
        others = [cause for cause in found.causes if cause.key not in known]
        both = [*(named(one, one.sure, words) for one in near), *others]
        found = replace(found, causes=tuple(sorted(both, key=lambda cause: -cause.confidence)[:MOST]))
    left_out = set(_NOTHING_FOUND) if because.why else set()
    if because.why and because.why.mechanism and _FAULTS not in because.why.families:
        left_out |= set(_NO_KERNEL_LOG)
    untold, collect = (tuple(one for one in told if one not in left_out) for told in (found.untold, found.collect))
    return replace(found, untold=untold, collect=collect, explanation=because.why)


def _unless_shown(why: Explanation | None, causes: Sequence[Cause]) -> Explanation | None:
    """None where the line is a likely cause's proof."""
    shown = {(proof.source, proof.number) for cause in likely(causes) for proof in cause.proof}
    return None if why and (why.line.source, why.line.number) in shown else why


def _sources(parts: Sequence[Source]) -> tuple[Source, ...]:
    """The parts of one log as one."""
    found: dict[str, Source] = {}
    for part in parts:
        first = found.get(part.name)
        whole = replace(part, lines=part.lines + first.lines, bytes=part.bytes + first.bytes) if first else part
        found[part.name] = replace(whole, first_at=first.first_at or whole.first_at) if first else part
    return tuple(found.values())


def _moved(hit: Hit, shift: float) -> Hit:
    return replace(hit, proof=tuple(_later(proof, shift) for proof in hit.proof)) if shift else hit


def _later(proof: Proof, shift: float) -> Proof:
    return replace(proof, at=None if proof.at is None else proof.at + shift)


def _missing(stories: tuple[Story, ...], causes: tuple[Cause, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(what could not be determined, what to collect): only what these logs show to be missing."""
    gaps = [(f"what {story.source} shows: it is empty", "") for story in stories if not story.lines]
    if len(stories) == 1 and stories[0].count("several ranks"):
        gaps.append(_OTHER_RANKS)
    if not any(cause.confidence >= POSSIBLE for cause in causes) and any(s.count("cause above") for s in stories):
        gaps.append(_CUT_OFF)
    gaps += [(f"why the rank of {source} died: its log just ends", _KILLED) for source in _silent(stories, causes)]
    certain = any(cause.sureness is Sureness.HIGH for cause in causes)
    if not certain and not any(story.count("kernel log") for story in stories):
        gaps.append(_NO_KERNEL_LOG)
    collect = [*(step for _, step in gaps if step), *(() if causes else _NOTHING_FOUND)]
    return tuple(told for told, _ in gaps), tuple(collect)


def _silent(stories: tuple[Story, ...], causes: tuple[Cause, ...]) -> tuple[str, ...]:
    """Ranks that report nothing of what went wrong, where others report that a rank died."""
    if not causes or causes[0].key != "peer-rank-died":
        return ()
    told = {proof.source for cause in causes for proof in cause.proof}
    return tuple(s.source for s in stories if s.source not in told and s.count("several ranks"))


# What could not be told, and what would tell it.
_KILLED = "on its node: sudo journalctl -k -b | grep -iE 'oom|killed process|NVRM|Xid' | tail   # or a freeze?"
_OTHER_RANKS = (
    "the log lines of the other ranks: the log of one of several was given",
    "sparkwright logs {deployment} --tail 0   # of all ranks; elsewhere: docker logs on each node",
)
_CUT_OFF = (
    "the root cause: the log itself refers to a line above, and nothing known does",
    "the log from its beginning, and the workers' logs",
)
_NO_KERNEL_LOG = (
    "whether the kernel killed a process or the driver failed: no kernel log was given",
    "on each node: sudo journalctl -k -b -o short-iso > kernel.log   # then name it, too",
)
_NOTHING_FOUND = (
    "the log from its very beginning: causes often are long before the last exception",
    "on each node: nvidia-smi; nvidia-smi dmon -s u -c 5; free -m; ss -ltnp",
    "start again with NCCL_DEBUG=INFO where several nodes take part",
    "sparkwright check   # what is known to be wrong with the nodes",
)


# Ends of collective steps: no rank prints them before the last one is there.
BARRIERS = {
    "barrier nccl": r"comm 0x[0-9a-f]+ .{0,160}Init COMPLETE",
    "barrier sglang init": r"Init torch distributed ends",
    "barrier vllm profile": r"Available KV cache memory: ",
    "barrier vllm graphs": r"Graph capturing finished in ",
    "barrier sglang graphs": r"Capture (?:cuda|device) graph end",
}
LEAST = 2.0  # seconds; ranks leave a barrier up to about that far apart
_SPREAD = 10.0  # barriers that disagree by more tell nothing


def shifts(stories: Sequence[Story]) -> Mapping[str, float]:
    """Source -> seconds to add to its times so that they are those of the first source that has barriers."""
    met = {story.source: _met(story) for story in stories}
    reference = next((times for times in met.values() if times), {})
    return {source: _shift(reference, times) for source, times in met.items()}


def _met(story: Story) -> dict[str, float]:
    seen = ((name, story.marks[name].first.at) for name in BARRIERS if name in story.marks)
    return {name: at for name, at in seen if at is not None}


def _shift(reference: Mapping[str, float], times: Mapping[str, float]) -> float:
    apart = [reference[name] - times[name] for name in reference if name in times]
    if not apart or max(apart) - min(apart) > _SPREAD:
        return 0.0
    middle = median(apart)
    return middle if abs(middle) >= LEAST else 0.0
