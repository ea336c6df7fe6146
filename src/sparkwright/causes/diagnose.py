"""The way from the bytes of logs to a diagnosis: one Reader a source, then all of them together."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache

from sparkwright.causes.cause import LogCause, WholeLogRule, book_of
from sparkwright.causes.evidence import are_before, harmless, is_listing, is_quiet
from sparkwright.causes.explanation import FEW, Reason, reason, ruled_by_the_line, without_followers
from sparkwright.causes.fallback import ending
from sparkwright.causes.judgement import SourceOutcome, has_failure, is_loud, is_stated_end, telling
from sparkwright.causes.load import families, pattern_needs, whole_log
from sparkwright.causes.near_messages import message_index
from sparkwright.causes.printed import Printed, differences, printed, stated
from sparkwright.causes.ranking import (
    MOST,
    FoundCause,
    Slots,
    fill_steps,
    found_by_signs,
    found_by_stories,
    ranked,
    with_versions,
)
from sparkwright.causes.similarity import cause_index
from sparkwright.causes.state import of_the_stop, ready_lines, server_of, state_of, state_patterns
from sparkwright.causes.stated import with_stated
from sparkwright.causes.whole_log.rules import ENDS, WHOLE_LOG
from sparkwright.checks.compat.versions import ranges
from sparkwright.domain.diagnosis import Cause, Diagnosis, Explanation, LogSource, LogState, Proof, Sureness, likely
from sparkwright.domain.finding import Severity
from sparkwright.engines.advice import fitting, is_of_another
from sparkwright.engines.progress import BARRIERS, counted, engine_of, newer_than_read, progress, shifts
from sparkwright.logscan.book import Book, shaped
from sparkwright.logscan.envelope import Unwrap
from sparkwright.logscan.logline import Excerpt, decoded
from sparkwright.logscan.matcher import Hit, Scan
from sparkwright.logscan.sign import HINT, LIKELY, POSSIBLE, Story
from sparkwright.logscan.system_errors import with_english

_FAULTS = "driver-and-gpu-fault"
_TRANSLATED = 1 << 18  # bytes of a log in which system errors of other languages are looked for
_READ = 600  # bytes of a line that may show a phase
_BY_THE_END = {"LIVE001", "LIVE002", "LIVE004", "LIVE014", "LIVE015"}  # of a log that just ends: it may go on
_OF_THE_START = 0.6  # what is left of the confidence in a cause that rests on a line of a good start, too
_BEHIND = 0.1  # by which a cause that no line of a failure shows stays behind one that such a line shows
_RULED = 0.45  # confidence of a cause that a rule names: what the log only resembles stays behind it
_GUESS = 0.45  # confidence in a cause where no line reports a failure
# By the first letters of their codes: causes of which a node's kernel log may have more.
_OF_MACHINES = {"LIVE", "LDRV", "LUMA", "LLNK", "LNIC", "LRDM", "LCLU", "LGRA", "LPRF"}
_MESSAGE = 60  # characters at the end of a line, by which it is known
_KERNEL_LOG = "kernel log of "  # a node's: full of errors that concern nothing here
VERSIONS = "versions on "  # what check found on a node
_REFUSED = re.compile(r'HTTP/\d\.\d"? (?:4\d\d|501|505)\b|\bcode (?:4\d\d|501|505), message\b')  # responses to requests
_ANSWERED = re.compile(rb'"POST /v1/[^"]{1,80} HTTP/\d\.\d" 200')
_KINDS = {  # whether a kind of log was given at all
    "kernel log": r"kernel: |NVRM: |\bLinux version \d",
    "cause above": r"See root cause above|Engine core initialization failed|WorkerProc initialization failed",
    "several ranks": r"world_size=(?:[2-9]|\d\d+) rank=|nnodes[=: ']+[2-9]|nranks (?:[2-9]|\d\d+)\b",
    "one rank": r"world_size=1 rank=0 ",
}
_AMONG_RANKS = "LNIC"  # causes that need a second rank, unless the log names the interface or address itself


@cache
def line_causes() -> Mapping[str, LogCause]:
    """Code -> cause, of those that single lines show."""
    return {cause.code: cause for causes in families().values() for cause in causes}


def consequences(key: str) -> tuple[str, ...]:
    """Keys of the causes that only follow from this one."""
    every = (*line_causes().values(), *whole_log().values())
    return tuple(one for cause in every if cause.key == key for one in cause.consequences)


@cache
def log_book() -> Book:
    """All that is looked for in logs."""
    versions = WholeLogRule("", lambda _: (), ranges().printed)
    states = WholeLogRule("", lambda _: (), state_patterns())
    return book_of(line_causes().values(), (*WHOLE_LOG, versions, states), {**BARRIERS, **_KINDS}, pattern_needs())


class Reader:
    """One source: feed it bytes in order, then close it. year: of lines whose time has none. skipped: lines before."""

    def __init__(self, rules: Book, name: str, year: int, skipped: int = 0) -> None:
        self.name, self.year, self._skipped = name, year, skipped
        self._untranslated = _TRANSLATED
        self.ended = True  # False while more may come: then nobody can be said to wait in vain
        self._scan, self._unwrap = Scan(rules, name, year, skipped), Unwrap()

    def feed(self, chunk: bytes) -> tuple[Hit, ...]:
        """The signs that are new."""
        plain = self._in_english(self._unwrap.feed(chunk))
        return self._scan.feed(plain) if plain else ()

    def _in_english(self, plain: bytes) -> bytes:
        """The bytes with system errors of other languages in English, as far as they are in the first bytes of the
        log."""
        left = self._untranslated
        self._untranslated = max(0, left - len(plain))
        return with_english(plain[:left]) + plain[left:] if left and plain else plain

    def close(self) -> tuple[Hit, ...]:
        rest = self._in_english(self._unwrap.close())
        return (*(self._scan.feed(rest) if rest else ()), *self._scan.close())

    @property
    def excerpt(self) -> Excerpt:
        """Its lines that are not like earlier ones."""
        return self._scan.kept

    @property
    def hits(self) -> tuple[Hit, ...]:
        return counted(self.name, self.excerpt, tuple(self._scan.hits.values()))

    @property
    def answered(self) -> int:
        """The last line about a request that was answered well, 0 for none."""
        return self._scan.answered

    def story(self) -> Story:
        return self._scan.story(self.ended)

    def source(self, shift: float = 0.0) -> LogSource:
        first, last = self._scan.times()
        return LogSource(self.name, self._scan.lines - self._skipped, self._scan.bytes, first, last, round(shift, 1))


def diagnosis(
    readers: Sequence[Reader],
    words: Mapping[str, str],
    clocks: Mapping[str, float] | None = None,
    impossible: Set[str] = frozenset(),
    earlier: Sequence[Reader] = (),
) -> Diagnosis:
    """words: for the commands of the fix; clocks: source -> seconds to add to its times, None: by the logs.

    impossible: causes that cannot be; earlier: parts of the same sources that were read and cannot show a cause.
    """
    stories = tuple(reader.story() for reader in readers)
    moved = clocks if clocks is not None else shifts(stories)
    hits = [_later(hit, moved.get(reader.name, 0.0)) for reader in readers for hit in reader.hits]
    found = [*found_by_signs(hits, line_causes()), *found_by_stories(WHOLE_LOG, stories)]
    found = [with_versions(one, stories) for one in found]
    if any(s.count("one rank") for s in stories) and not any(s.count("several ranks") for s in stories):
        found = [one for one in found if one.sure >= LIKELY or not one.known.code.startswith(_AMONG_RANKS)]
    found = [one for one in found if not _is_no_evidence(one)]
    over = answered_before_the_end(
        readers, [(one.known.severity.stops, one.proof) for one in found if one.sure >= LEAST]
    )
    found = [one for one in found if one.known.severity.stops or not are_before(one.proof, over)]
    asked = of_the_stop(map(server_of, stories))
    found = [one for one in found if one.known.key not in impossible and not _is_the_stop_s(one.proof, asked)]
    past = _of_the_start(found, stories)
    causes, fine = ranked(_later_first([one for one in found if one not in past], stories), words)
    notes = ranked(past, words)[0]
    sources = _sources([reader.source(moved.get(reader.name, 0.0)) for reader in (*earlier, *readers)])
    untold, collect = _missing((*stories, *(reader.story() for reader in earlier)), causes)
    steps = tuple(step.format_map(Slots(words)) for step in collect)
    return Diagnosis(causes, fine, sources, untold, steps, notes=notes)


def _is_the_stop_s(proofs: Sequence[Proof], asked: Mapping[str, int]) -> bool:
    """True if all of them follow the line by which somebody asked their server to stop. asked: source -> that line."""
    return bool(proofs) and all(proof.number >= asked.get(proof.source, proof.number + 1) for proof in proofs)


def _is_no_evidence(one: FoundCause) -> bool:
    """True if all its lines list files, or are harmless with more certainty than they show the cause."""
    if one.known.severity is Severity.INFO or not one.known.signatures:
        return False
    is_sure = one.sure > LIKELY
    return all(is_listing(p.text) or (not is_sure and harmless(p.text)) for p in one.proof)


def _later_first(found: Sequence[FoundCause], stories: Sequence[Story]) -> list[FoundCause]:
    """The causes with less confidence for those that rest on a line of a good start: it did not keep that one from
    serving."""
    ready = ready_lines(tuple(map(server_of, stories)))
    is_mixed = (any(are_before([proof], ready) for proof in one.proof) for one in found)
    return [
        replace(one, sure=one.sure * _OF_THE_START) if mixed else one
        for one, mixed in zip(found, is_mixed, strict=True)
    ]


def _of_the_start(found: Sequence[FoundCause], stories: Sequence[Story]) -> list[FoundCause]:
    """The causes whose lines of failure all stand before their server was ready."""
    ready = ready_lines(tuple(map(server_of, stories)))
    return [one for one in found if one.known.severity is not Severity.INFO and are_before(telling(one.proof), ready)]


# How sure a cause must be to count as the end of an engine that had answered before.
LEAST = 0.5


def answered_before_the_end(
    readers: Sequence[Reader], causes: Iterable[tuple[bool, Sequence[Proof]]]
) -> Mapping[str, int]:
    """Source -> line of its last good answer, for sources that something ended only after it.

    What went wrong before concerned a request, and the engine answered others afterwards. causes: whether it ends an
    engine, and its lines.
    """
    last = {reader.name: reader.answered for reader in readers if reader.answered}
    ends = [proof for stops, proofs in causes if stops for proof in proofs]
    return {name: at for name, at in last.items() if any(p.source == name and p.number > at for p in ends)}


def with_explanation(
    found: Diagnosis,
    readers: Sequence[Reader],
    words: Mapping[str, str],
    impossible: Set[str] = frozenset(),
    described: bool = False,
) -> Diagnosis:
    """The same with the line that explains, or causes that the log resembles. described: lines may be a description."""
    if not readers:
        return found
    own = {one.name: tuple(one.excerpt) for one in readers if not one.name.startswith((_KERNEL_LOG, VERSIONS, ENDS))}
    read = {name: [(number, decoded(raw[:_READ])) for number, raw in lines] for name, lines in own.items()}
    stories = tuple(reader.story() for reader in readers)
    outcomes = _outcomes(read, stories)
    seen = [printed(name, lines) for name, lines in own.items()]
    found = replace(found, causes=tuple(c for c in found.causes if not _is_of_passages(c, outcomes)))
    logs = _messages(found, own, seen, outcomes)
    if any(_ANSWERED.search(line) for lines in logs.values() for _, line in lines):  # what it refused: a client's fault
        found = replace(
            found, causes=tuple(c for c in found.causes if not all(_REFUSED.search(p.text) for p in c.proof))
        )
    servers = tuple(map(server_of, stories))
    stops = of_the_stop(servers)
    logs = {name: [line for line in lines if line[0] < stops.get(name, line[0] + 1)] for name, lines in logs.items()}
    over = {
        **ready_lines(servers),
        **answered_before_the_end(readers, [(c.severity.stops, c.proof) for c in found.causes]),
    }
    because = reason(logs, readers[0].year, words, over, outcomes)
    engines = {name: engine_of(lines) for name, lines in read.items()}
    found = replace(found, causes=_without_false_certainty(without_followers(found.causes, because), because, engines))
    told = _explained(found, because, words, impossible, described)
    failure = [told.explanation.line.text] if told.explanation else []
    failure += [proof.text for cause in told.causes for proof in cause.proof]
    ways = {name: progress(lines) for name, lines in read.items()}
    unserved = failure and len(own) > 1 and not any(way.served for way in ways.values())
    phases = {name: way.phases[-1][1].value for name, way in ways.items() if unserved and way.phases}
    told = replace(told, stated=stated(seen, " ".join(failure)), differs=differences(seen, phases))
    is_named = any(cause.severity.stops and cause.confidence >= POSSIBLE for cause in told.causes)
    _leave_out_tables(outcomes, seen, told)
    told = _concluded(told, because, stories, any(way.phases for way in ways.values()), outcomes)
    told = replace(told, causes=_with_fitting_steps(told.causes, engines))
    is_over = told.state in (LogState.SERVING, LogState.STOPPED)
    if not (because.why or is_named or is_over) and sum(map(len, logs.values())) > FEW:
        told = replace(told, explanation=ending(read, readers[0].year, words))
    several = any(story.count("several ranks") for story in stories)
    newer = dict.fromkeys(one for lines in read.values() if (one := newer_than_read(lines)))
    told = replace(told, untold=(*told.untold, *newer))
    return _advised(told, any(way.phases for way in ways.values()), several)


def _outcomes(read: Mapping[str, Sequence[tuple[int, str]]], stories: Sequence[Story]) -> Mapping[str, SourceOutcome]:
    """The outcome of each source. read: its lines, as (number, text)."""
    tails = {story.source: story.tail for story in stories}
    elsewhere = any(story.source == ENDS and story.lines for story in stories)
    return {name: SourceOutcome(name, lines, tails[name], elsewhere) for name, lines in read.items()}


def _is_of_passages(cause: Cause, outcomes: Mapping[str, SourceOutcome]) -> bool:
    """True if all its lines are parts of passages that are no messages, and no rows of tables."""
    return bool(cause.proof) and all(
        proof.source in outcomes and proof.number in outcomes[proof.source].without_signs for proof in cause.proof
    )


def _messages(
    found: Diagnosis,
    own: Mapping[str, Sequence[tuple[int, bytes]]],
    seen: Iterable[Printed],
    outcomes: Mapping[str, SourceOutcome],
) -> dict[str, list[tuple[int, bytes]]]:
    """The lines of each source that may explain: neither harmless nor part of a passage that is no message."""
    fine = {(proof.source, proof.number) for cause in found.harmless for proof in cause.proof}
    rows = {(one.source, number) for one in seen for number in one.rows}
    fine |= {(name, number) for name, outcome in outcomes.items() for number in outcome.passages} - rows
    if sum(map(len, own.values())) > FEW:  # of a few lines, a table may be all that there is
        fine |= rows
    again = {shaped(proof.text.encode()) for cause in found.harmless for proof in cause.proof}
    return {
        name: [line for line in lines if (name, line[0]) not in fine and shaped(line[1].strip()) not in again]
        for name, lines in own.items()
    }


def _leave_out_tables(outcomes: Mapping[str, SourceOutcome], seen: Iterable[Printed], told: Diagnosis) -> None:
    """Takes rows of tables that state nothing bad for a listing."""
    for one in seen:
        bad = {fact.line.number for fact in told.stated if fact.line.source == one.source}
        outcomes[one.source].leave_out(one.rows, bad)


def _without_false_certainty(causes: Sequence[Cause], because: Reason, engines: Mapping[str, str]) -> tuple[Cause, ...]:
    """The causes with no more than likely for those of another engine than the one that printed the log, and for those
    that rest on information and warnings where another line fails: the program went on after them.

    Of equal ones the others come first.
    """
    line = because.why.line if because.why and because.fails else None
    at = (line.source, line.number) if line else None
    quiet = {
        cause.key
        for cause in causes
        if at and all(is_quiet(proof.text) and (proof.source, proof.number) != at for proof in cause.proof)
    }
    foreign = {cause.key for cause in causes if is_of_another(cause.key, engines.get(cause.proof[0].source, ""))}
    most = {**dict.fromkeys(foreign, LIKELY), **dict.fromkeys(quiet, _most_of_quiet(causes, quiet | foreign))}
    if not any(cause.confidence > most.get(cause.key, 1.0) for cause in causes):
        return tuple(causes)
    capped = (replace(c, confidence=min(c.confidence, most.get(c.key, 1.0))) for c in causes)
    return tuple(sorted(capped, key=lambda cause: (-round(cause.confidence * 20), cause.key in most)))


def _most_of_quiet(causes: Sequence[Cause], doubtful: Set[str]) -> float:
    """The confidence that a cause of information and warnings may have: less than that of one that a failure shows."""
    shown = (cause.confidence for cause in causes if cause.key not in doubtful and cause.severity.stops)
    best = max(shown, default=1.0)
    return min(LIKELY, best - _BEHIND) if best >= POSSIBLE else LIKELY


def _concluded(
    told: Diagnosis,
    because: Reason,
    stories: Sequence[Story],
    begun: bool,
    outcomes: Mapping[str, SourceOutcome],
) -> Diagnosis:
    """The diagnosis with the server's state and a failure mark; a cause without a line of a failure is a guess.

    A request that a server refused is no failure of the server, nor is what makes it slower without an error.
    """
    servers = tuple(map(server_of, stories))
    serves = any(one.state in (LogState.SERVING, LogState.STOPPED) and one.ready for one in servers)
    refused = [cause for cause in told.causes if serves and cause.code in _of_requests()]
    slow = [one for one in told.causes if serves and not one.severity.stops and not any(map(is_loud, one.proof))]
    asked = (one for one in told.causes if one not in refused and one not in slow)
    shown = [one for one in asked if _shows_failure(one, because, outcomes, len(servers))]
    own = {(proof.source, proof.number) for cause in refused for proof in cause.proof}
    line = because.why.line if because.why else None
    failed = bool(shown) or (because.fails and line is not None and (line.source, line.number) not in own)
    state = state_of(servers, failed, begun)
    ready = next((one.ready for one in servers if one.ready), None) if state is LogState.SERVING else None
    told = replace(told, state=state, serves=ready, failure=failed)
    if failed:
        return told
    if state in (LogState.SERVING, LogState.STOPPED):
        return replace(told, causes=_as_guesses(told.causes), explanation=None)
    kept = told.explanation if told.explanation and not is_quiet(told.explanation.line.text) else None
    return replace(told, causes=_as_guesses(told.causes, likeness=kept is not None), explanation=kept)


@cache
def _of_requests() -> frozenset[str]:
    """Codes of causes that concern one request, not the server."""
    return frozenset(cause.code for cause in families()["api-and-client"] if not cause.severity.stops)


def _with_fitting_steps(causes: Sequence[Cause], engines: Mapping[str, str]) -> tuple[Cause, ...]:
    """Their steps in the words of the engine that printed the log. engines: by source, '' for none."""
    return tuple(
        replace(cause, fix=fitting(cause.fix, engines.get(cause.proof[0].source, ""), cause.proof[0].text))
        for cause in causes
    )


def _as_guesses(causes: Iterable[Cause], likeness: bool = False) -> tuple[Cause, ...]:
    """The causes where nothing failed. likeness: with hints that rest on mere likeness, too."""
    kept = (cause for cause in causes if likeness or not cause.resembles or cause.confidence > HINT)
    return tuple(replace(cause, confidence=min(cause.confidence, _GUESS)) for cause in kept)


def _shows_failure(cause: Cause, because: Reason, outcomes: Mapping[str, SourceOutcome], sources: int) -> bool:
    """True if a line that proves it is a failure, or the whole log shows it; a hint and the mere end of one log do not
    count."""
    if cause.resembles:
        return because.fails
    if cause.code in _BY_THE_END and sources == 1:
        return False
    if cause.confidence <= HINT:
        return any(is_stated_end(proof.text) for proof in cause.proof)
    return cause.code.startswith("LIVE") or any(has_failure(outcomes, proof) for proof in telling(cause.proof))


def _explained(
    found: Diagnosis, because: Reason, words: Mapping[str, str], impossible: Set[str], described: bool
) -> Diagnosis:
    found = with_stated(found, because, words, impossible)
    if any(cause.confidence >= POSSIBLE for cause in found.causes):
        return replace(found, explanation=_unless_shown(because.why, found.causes))
    found = replace(found, explanation=because.why)
    if not because.bad and not (described and because.described and not found.harmless):
        return found
    is_known = found.harmless and found.harmless[0].confidence >= LIKELY  # what looks bad
    out = impossible | {cause.key for cause in found.causes if cause.versions}
    near = cause_index().nearest(because) or message_index().nearest(because)
    if near is None or near.known.key in out or (is_known and near.sure < POSSIBLE):
        return found
    ruled = ruled_by_the_line(found.causes, near.known.key, because)
    sure = min(near.sure, ruled - _BEHIND) if ruled >= _RULED else near.sure
    both = [fill_steps(near, sure, words), *(cause for cause in found.causes if cause.key != near.known.key)]
    return replace(found, causes=tuple(sorted(both, key=lambda cause: -cause.confidence)[:MOST]))


def _advised(found: Diagnosis, engines: bool, several: bool) -> Diagnosis:
    """The diagnosis without advice that does not fit: a kernel log only if the machine may be at fault, NCCL only among
    ranks."""
    why, left_out = found.explanation, set[str]()
    if why:
        left_out |= set(_NOTHING_FOUND)
    if not several:
        left_out.add(_NCCL_DEBUG)
    if not engines:
        left_out |= {_NCCL_DEBUG, _GPUS}
    first = found.causes[0] if found.causes and not found.causes[0].resembles else None
    if first:
        machine = first.code[:4] in _OF_MACHINES
    elif why and (why.mechanism or ".py:" in why.place):
        machine = _FAULTS in why.families and ".py:" not in why.place
    else:
        machine = engines or several
    if not machine:
        left_out |= set(_NO_KERNEL_LOG)
    untold, collect = (tuple(one for one in told if one not in left_out) for told in (found.untold, found.collect))
    return replace(found, untold=untold, collect=collect)


def _unless_shown(why: Explanation | None, causes: Sequence[Cause]) -> Explanation | None:
    """None where a likely cause's proof has the same message."""
    shown = [proof.text for cause in likely(causes) for proof in cause.proof]
    return None if why and any(text.endswith(why.line.text[-_MESSAGE:]) for text in shown) else why


def _sources(parts: Sequence[LogSource]) -> tuple[LogSource, ...]:
    """The parts of one log as one."""
    found: dict[str, LogSource] = {}
    for part in parts:
        first = found.get(part.name)
        whole = replace(part, lines=part.lines + first.lines, bytes=part.bytes + first.bytes) if first else part
        found[part.name] = replace(whole, first_at=first.first_at or whole.first_at) if first else part
    return tuple(found.values())


def _later(hit: Hit, shift: float) -> Hit:
    times = (None if proof.at is None else proof.at + shift for proof in hit.proof)
    return replace(hit, proof=tuple(replace(one, at=at) for one, at in zip(hit.proof, times, strict=True)))


def _missing(stories: tuple[Story, ...], causes: tuple[Cause, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The open questions and the logs to collect for them: only those that these logs show to be missing."""
    gaps = [(f"what {story.source} shows: it is empty", "") for story in stories if not story.lines]
    if len(stories) == 1 and stories[0].count("several ranks"):
        gaps.append(_OTHER_RANKS)
    if not any(cause.confidence >= POSSIBLE for cause in causes) and any(s.count("cause above") for s in stories):
        gaps.append(_CUT_OFF)
    if causes and causes[0].key == "peer-rank-died":  # ranks that report nothing of what went wrong, where others do
        told = {proof.source for cause in causes for proof in cause.proof}
        silent = (s.source for s in stories if s.source not in told and s.count("several ranks"))
        gaps += [(f"why the rank of {source} died: its log just ends", _KILLED) for source in silent]
    certain = any(cause.sureness is Sureness.HIGH for cause in causes)
    if not certain and not any(story.count("kernel log") for story in stories):
        gaps.append(_NO_KERNEL_LOG)
    collect = [*(step for _, step in gaps if step), *(() if causes else _NOTHING_FOUND)]
    return tuple(gap for gap, _ in gaps), tuple(collect)


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
_GPUS = "on each node: nvidia-smi; nvidia-smi dmon -s u -c 5; free -m; ss -ltnp"
_NCCL_DEBUG = "start again with NCCL_DEBUG=INFO where several nodes take part"
_NOTHING_FOUND = (
    "the log from its very beginning: causes often are long before the last exception",
    _GPUS,
    _NCCL_DEBUG,
    "sparkwright check   # what is known to be wrong with the nodes",
)
