"""The way from the observations to a row of the table: noticed, refused, serving again, and clients' losses."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from drills.fate import Fate, SentRequest
from drills.watch import Sight
from sparkwright.supervisor.core.detect.memory import floors

AWAY = frozenset({"draining", "starting", "loading", "backing_off", "failed", "needs_reboot", "needs_power_cycle"})
"""Phases of a deployment that something is done about."""
HELD = 1.0
"""A probe without an answer for so long, sent after the fault was noticed, is one that the gateway holds."""
BEYOND = 5.0
"""Seconds that all but the engine's own start may take, from the notice to serving again."""
DEAD, REFUSED, FROZEN = 2.0, 3.0, 20.0


@dataclass(frozen=True, slots=True)
class DrillTarget:
    """The target of a drill for the supervisor. Seconds; None: no such target.

    sign: what counts as noticed: `incident`, `trouble`, `refusal` or nothing at all (it must not be touched).
    relaunches, incidents: how many are right. final: the phase it must come to rest in. back: it can be noticed only
    when a node is back, so `detected` counts from then. starts: beyond may be so many times the engine's own start,
    where that is more: a machine that is slow at the one is slow at the other.
    """

    sign: str = "incident"
    detected: float | None = DEAD
    refused: float | None = None
    beyond: float | None = BEYOND
    relaunches: int = 1
    incidents: int = 1
    final: tuple[str, ...] = ("ready",)
    back: bool = False
    starts: float = 0.0


@dataclass(frozen=True, slots=True)
class DrillRecord:
    """The observations. at: when the fault was injected; restored: when what the fault took was there again (a node
    that boots).

    start: what the engine's own start takes, by the plain `up` of this run. before: live.json as it was then.
    """

    at: float
    before: Sight
    sights: Sequence[Sight]
    requests: Sequence[SentRequest] = ()
    probes: Sequence[SentRequest] = ()
    start: float = 0.0
    restored: float = 0.0


@dataclass(frozen=True, slots=True)
class FigureRow:
    """Seconds after the injection; None: it did not happen (or is not asked for)."""

    name: str
    fault: str
    detected: float | None
    refused: float | None
    serving: float | None
    beyond: float | None
    action: str
    answered: int = 0
    turned_away: int = 0
    broken: int = 0
    lost: int = 0
    false_alarms: int = 0
    missed: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    scale: float = 1.0
    """Of the supervisor's waits while it was measured."""

    @property
    def passed(self) -> bool:
        return not self.missed


def figure_row(name: str, fault: str, target: DrillTarget, seen: DrillRecord, notes: tuple[str, ...] = ()) -> FigureRow:
    noticed = noticed_at(target.sign, seen)
    again = serving_at(noticed, seen)
    begin = max(noticed or 0.0, seen.restored)
    made = FigureRow(
        name,
        fault,
        _after(noticed, seen),
        _after(refused_at(noticed, seen), seen),
        _after(again, seen),
        again - begin - seen.start if again and noticed else None,
        action(seen),
        **tally_requests(seen.requests),
        false_alarms=false_alarms(target, seen),
        notes=notes,
    )
    return replace(made, missed=tuple(missed(target, made, seen)))


def noticed_at(sign: str, seen: DrillRecord) -> float | None:
    signs = {
        "incident": lambda s: s.phase in AWAY or s.incidents > seen.before.incidents,
        "trouble": lambda s: bool(set(s.troubles) - set(seen.before.troubles)),
        "refusal": lambda s: s.refusing and not seen.before.refusing,
    }
    return next((s.at for s in _from(seen) if sign in signs and signs[sign](s)), None)


def refused_at(noticed: float | None, seen: DrillRecord) -> float | None:
    """The time when a client first learned it: a 503, or a request that the gateway holds instead of sending it on."""
    told = [p.ended for p in seen.probes if p.sent >= seen.at and p.status == 503]
    held = [p.sent for p in seen.probes if noticed and p.sent >= noticed and p.ended - p.sent >= HELD]
    return min([*told, *held], default=None)


def serving_at(noticed: float | None, seen: DrillRecord) -> float | None:
    """The time when it served again after it had stopped; None if it never did."""
    if noticed is None:
        return None
    after = [s for s in seen.sights if s.at >= noticed]
    gone = next((n for n, s in enumerate(after) if not s.serving), None)
    return None if gone is None else next((s.at for s in after[gone:] if s.serving), None)


def action(seen: DrillRecord) -> str:
    """The phases it went through and when, each once in a row."""
    sights = _from(seen)
    first = [s for n, s in enumerate(sights) if n == 0 or s.phase != sights[n - 1].phase]
    short = [f"{s.phase} {s.at - seen.at:.1f}" for s in first]
    kinds = sorted({kind for s in _from(seen) for kind in s.troubles})
    return " > ".join(short) + (f" ({', '.join(kinds)})" if kinds else "")


def tally_requests(requests: Sequence[SentRequest]) -> dict[str, int]:
    def of(fate: Fate) -> int:
        return sum(r.fate is fate for r in requests)

    return {
        "answered": of(Fate.ANSWERED),
        "turned_away": of(Fate.REFUSED),
        "broken": of(Fate.BROKEN),
        "lost": of(Fate.LOST),
    }


def false_alarms(target: DrillTarget, seen: DrillRecord) -> int:
    """Relaunches and incidents beyond the right number; where nothing is wrong, also each kind of trouble."""
    last = seen.sights[-1] if seen.sights else seen.before
    relaunches = last.relaunches - seen.before.relaunches - target.relaunches
    incidents = last.incidents - seen.before.incidents - target.incidents
    said = {kind for one in seen.sights for kind in one.troubles} - set(seen.before.troubles)
    return max(relaunches, 0) + max(incidents, 0) + (0 if target.sign else len(said))


def missed(target: DrillTarget, made: FigureRow, seen: DrillRecord) -> list[str]:
    """Each target that was not met, as text; what could not be measured is missed."""
    last = seen.sights[-1] if seen.sights else seen.before
    off = max(seen.restored - seen.at, 0.0) if target.back else 0.0
    beyond = target.beyond and max(target.beyond, target.starts * seen.start)
    found = [
        *limit_missed("noticed", made.detected and made.detected - off, target.detected if target.sign else None),
        *limit_missed("refused", made.refused, target.refused),
        *limit_missed("beyond the start", made.beyond, beyond if target.sign else None),
    ]
    found += [f"ends {last.phase}, not {' or '.join(target.final)}"] if last.phase not in target.final else []
    short = target.relaunches - (last.relaunches - seen.before.relaunches)
    found += [f"{short} relaunch(es) too few"] if short > 0 else []
    found += [f"{made.lost} request(s) lost"] if made.lost else []
    found += [f"{made.false_alarms} false alarm(s)"] if made.false_alarms else []
    unshaped = sum(r.fate is Fate.REFUSED and not r.shaped for r in (*seen.requests, *seen.probes))
    return found + ([f"{unshaped} refusal(s) without an error object"] if unshaped else [])


GONE, LEFT = 0.1, 300.0
"""A leak is announced when a tenth of the headroom is gone, with five minutes left."""


def with_leak(made: FigureRow, memory: Sequence[tuple[float, float]], seen: DrillRecord) -> FigureRow:
    """memory: (when, bytes available) of the node that leaks fastest."""
    if made.detected is None:
        return made
    share, left = leaked([one for one in memory if one[0] >= seen.at], seen.at + made.detected)
    missed = [f"left: {left:.0f} s, target {LEFT:.0f} s"] if left < LEFT else []
    missed += [f"share of the headroom gone: {share:.0%}, target {GONE:.0%}"] if share > GONE else []
    words = f"announced when {share:.0%} of the headroom was gone, with {left / 60:.1f} minutes left"
    return replace(made, missed=(*made.missed, *missed), notes=(words, *made.notes))


def leaked(memory: Sequence[tuple[float, float]], noticed: float) -> tuple[float, float]:
    """Share of the headroom that was gone by then, and seconds until the rest would have been, as fast as that."""
    (began, before), *_ = memory
    at, now = [one for one in memory if one[0] <= noticed][-1]
    floor = floors(int(before)).refuse
    if now >= before:
        return 0.0, float("inf")
    return (before - now) / (before - floor), (now - floor) * (at - began) / (before - now)


def limit_missed(what: str, value: float | None, limit: float | None) -> list[str]:
    if limit is None:
        return []
    if value is None:
        return [f"{what}: never"]
    return [f"{what} after {value:.1f} s, target {limit:g} s"] if value > limit else []


def _after(at: float | None, seen: DrillRecord) -> float | None:
    return None if at is None else at - seen.at


def _from(seen: DrillRecord) -> list[Sight]:
    return [s for s in seen.sights if s.at >= seen.at]
