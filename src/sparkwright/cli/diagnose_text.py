"""A diagnosis as text."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from sparkwright.app.diagnose.examine import Examined
from sparkwright.cli.columns import findings_text, fold_command, fold_line, simulated_mark
from sparkwright.domain.diagnosis import (
    Cause,
    Diagnosis,
    Explanation,
    LogSource,
    LogState,
    Proof,
    Sureness,
    likely,
    named_causes,
)
from sparkwright.domain.finding import Severity
from sparkwright.domain.units import counted

_COLORS = {Sureness.HIGH: "red", Sureness.MEDIUM: "yellow", Sureness.LOW: "blue"}
_SHOWN = 4  # lines of proof
_FAINT, _FAINT_BESIDE_CERTAIN = 0.25, 0.4
_LONG = 220  # characters of one
_NAMED = 12  # sources; of more their number is shown
_COUNTED = 100  # more are not counted


def examined_text(examined: Examined) -> str:
    told, since = examined.diagnosis, _since(examined)
    why = None if examined.serves else told.explanation
    nothing = f"no known cause{since}" + ("; what looks bad below is harmless" if told.harmless and not why else "")
    if not told.failure:
        nothing = _state_text(told) or (nothing if since or why else f"no line reports a failure; {nothing}")
    title = f"causes{since}\n" if since else ""
    if told.causes and not told.failure and not since:
        title = f"{_state_text(told) or 'no line reports a failure'}\nif something is wrong nonetheless:\n"
    parts = [title + causes_text(told.causes) if told.causes else nothing]
    if why and told.causes and not told.named:
        parts = [nothing, failure_text(told.causes, why)]
    elif why:
        parts.append(explanation_text(why, bool(told.causes) and told.causes[0].sureness is Sureness.HIGH))
    stated = [fold_line(f"  {one.text}   ({_place(one.line)})", 4) for one in told.stated]
    differs = [
        fold_line(f"  {one.what}: " + ", ".join(f"{value} ({source})" for source, value in one.values), 4)
        for one in told.differs
    ]
    shown = (("commands in the logs show", stated), ("what differs", differs))
    parts += ["\n".join([what, *lines]) for what, lines in shown if lines]
    if examined.earlier:
        parts.append("\n".join(["from earlier lines, no cause of what is wrong now", *map(_earlier, examined.earlier)]))
    if found := [one for one in examined.findings if one.severity is not Severity.INFO]:
        parts.append("the nodes themselves\n" + findings_text(found))
    missing: tuple[str, ...] = ()
    if told.causes or not (examined.serves or told.state in (LogState.SERVING, LogState.STOPPED)):
        missing = (_list("could not determine", told.untold), _list("to narrow it down", told.collect))
    more = (_noted(told), _harmless(told), *missing)
    parts += [text for text in more if text]
    return simulated_mark(examined.simulated) + "\n\n".join([*parts, _read(told.sources), *examined.trouble])


def _state_text(told: Diagnosis) -> str:
    """`serves since line 12; 3 notes`, or that it stopped; '' where the logs show no server."""
    number = len(told.notes) + len(told.harmless)
    notes = f"; {counted(number, 'note')}" if number else ""
    if told.state is LogState.SERVING and told.serves:
        several = sum(source.lines > 0 for source in told.sources) > 1
        return f"serves since {_place(told.serves) if several else f'line {told.serves.number}'}{notes}"
    return f"stopped in good order{notes}" if told.state is LogState.STOPPED else ""


def _noted(told: Diagnosis) -> str:
    """Notes about lines before the server was ready: they explain no failure."""
    lines = [fold_line(f"  {one.title} ({_place(one.proof[0])}, {one.code})", 4) for one in told.notes]
    return "\n".join(["noted; explains no failure", *lines]) if lines else ""


def failure_text(causes: Sequence[Cause], why: Explanation | None) -> str:
    """The causes, or the line that explains and what may be related to it."""
    if named_causes(causes, why) or not why:
        return causes_text(causes)
    return "\n\n".join([explanation_text(why), *([_related(causes)] if causes else ())])


def explanation_text(why: Explanation, is_sure: bool = False) -> str:
    """The line, its mechanism, where in the program it was, and the next steps; without these next to a sure cause."""
    during = f"during {why.phase}" if why.phase else ""
    where = ", ".join(part for part in (during, f"in {why.place}" if why.place else "") if part)
    also = f"the same in {', '.join(why.same)}" if why.same else ""
    rows = (
        ("says", why.title),
        ("where", where),
        ("then", f"{_place(why.then)}  {why.then.text}" if why.then else ""),
        ("also", also),
        *((" " if n else "next", s) for n, s in enumerate(() if is_sure else why.next)),
    )
    told = [fold_command(f"   {name:<6} ", text) for name, text in rows if text]
    return "\n".join(["the line that explains most", _proof(why.line), *told])


def _related(causes: Sequence[Cause]) -> str:
    """Causes that the log only resembles, with what it shares with their descriptions."""
    lines = (
        f"  {cause.title} (sparkwright explain {cause.code})"
        + (f"; shared: {', '.join(cause.resembles)}" if cause.resembles else "")
        for cause in causes
    )
    return "\n".join(["may be related (possible)", *(fold_line(line, 4) for line in lines)])


def _since(examined: Examined) -> str:
    if examined.since is None:
        return ""
    what = "the last good answer" if examined.answered else "the start"
    return f" in lines since {what} ({_moment(examined.since)})"


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _earlier(cause: Cause) -> str:
    last = cause.proof[0]
    when = f"{_moment(last.at)}  " if last.at is not None else ""
    return fold_line(f"  {when}{cause.title} ({_place(last)}, {cause.code})", 4)


def causes_text(causes: Sequence[Cause]) -> str:
    """The first, those that are nearly as likely, and a line for each of the others that are worth a look."""
    shown, sure = likely(causes), causes[0].sureness
    unsure = ["nothing here is certain; the likeliest:"] if sure is Sureness.LOW else []
    least = _FAINT_BESIDE_CERTAIN if sure is Sureness.HIGH else _FAINT
    less = [
        fold_line(f"   less likely: {cause.title} (sparkwright explain {cause.code})", 5)
        for cause in causes
        if cause not in shown and cause.confidence >= least
    ]
    return "\n".join([*unsure, *(cause_text(cause, number) for number, cause in enumerate(shown, 1)), *less])


def cause_text(cause: Cause, number: int = 1) -> str:
    """Title and key, the lines that prove it, why, and the fix."""
    sure = click.style(f"{cause.sureness} {cause.confidence:.2f}", fg=_COLORS[cause.sureness], bold=True)
    lines = [f"{number}. {click.style(cause.title, bold=True)}", f"   [{cause.code} {cause.key}, {sure}]"]
    lines += [_proof(proof) for proof in _in_order(cause.proof[:_SHOWN])]
    if cause.resembles:
        lines.append(fold_line(f"   like   it shares with its description: {', '.join(cause.resembles)}", 10))
    lines += [fold_line(f"   known  {one.text}   ({_place(one.line)})", 10) for one in cause.versions]
    if cause.seen > len(cause.proof[:_SHOWN]):
        often = f"more than {_COUNTED}" if cause.seen > _COUNTED else cause.seen
        lines.append(f"     such lines came {often} times")
    lines.append(fold_line(f"   why    {cause.why}", 10))
    lines += [fold_command(f"   {'fix' if n == 0 else '   '}    ", step) for n, step in enumerate(cause.fix)]
    return "\n".join(lines)


def _in_order(proofs: Sequence[Proof]) -> list[Proof]:
    """The proofs in the order of the logs; the log of the best one comes first."""
    sources = [proof.source for proof in proofs]
    return sorted(proofs, key=lambda proof: (sources.index(proof.source), proof.number))


def _proof(proof: Proof) -> str:
    text = proof.text if len(proof.text) <= _LONG else f"{proof.text[:_LONG]}..."
    return fold_line(f"   {click.style(_place(proof), fg='cyan')}  {text}", 5)


def _place(proof: Proof) -> str:
    return f"{proof.source}:{proof.number}"


def _harmless(told: Diagnosis) -> str:
    """Each with its first line; the source is named where there are several."""
    several = sum(source.lines > 0 for source in told.sources) > 1
    places = ((c, _place(c.proof[0]) if several else f"line {c.proof[0].number}") for c in told.harmless)
    lines = [fold_line(f"  {cause.title} ({place}, {cause.code})", 4) for cause, place in places]
    return "\n".join(["ignored as harmless", *lines]) if lines else ""


def _list(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(fold_command("  ", line) for line in lines)]) if lines else ""


def _read(sources: Sequence[LogSource]) -> str:
    """The sources by name; of many, their number."""
    read = [source for source in sources if source.lines or len(sources) == 1]
    if len(read) > _NAMED:
        return f"read: {len(read):,} logs with {sum(source.lines for source in read):,} lines"
    return fold_line("read: " + "; ".join(map(_source, read)), 6)


def _source(source: LogSource) -> str:
    moved = f", its clock moved by {source.shift:+.0f} s" if source.shift else ""
    return f"{source.name} {source.lines:,} lines{moved}"
