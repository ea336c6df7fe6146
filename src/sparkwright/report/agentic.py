"""Latency over the turns of an agent's loop, cold against warm: the question of many users, answered in a sentence."""

import re
from collections.abc import Sequence

from sparkwright.domain.summary import Interval, LevelSummary, RunSummary
from sparkwright.domain.units import percent
from sparkwright.domain.values import dataclass
from sparkwright.report import texts
from sparkwright.report.series import Axis, Curve, Plot, point_of
from sparkwright.report.tables import Table, Write
from sparkwright.report.texts import Traits, traits

_TURN = re.compile(r"turn (\d+)")
_CACHED = "cached"
ASKED = 10


@dataclass(frozen=True, slots=True)
class AgentLoop:
    """One agentic level: turn -> its figures."""

    run: int
    name: str
    cold: bool
    traits: Traits
    turns: tuple[tuple[int, LevelSummary], ...]

    def ttft(self, turn: int) -> Interval | None:
        found = dict(self.turns).get(turn)
        point = point_of(turn, found, "ttft") if found else None
        return point.y if point else None


@dataclass(frozen=True, slots=True)
class Gap:
    """A warm loop and the cold one that is like it but for the cache, at one turn."""

    turn: int
    cold: Interval
    warm: Interval
    cached: float | None
    level: str = ""

    @property
    def ratio(self) -> float | None:
        return self.cold.value / self.warm.value if self.warm.value else None


def agent_loops(runs: Sequence[RunSummary]) -> list[AgentLoop]:
    """Agentic levels with turns, in the runs' order."""
    found = []
    for run, summary in enumerate(runs):
        groups: dict[str, list[tuple[int, LevelSummary]]] = {}
        for level in summary.levels:
            if match := _TURN.fullmatch(level.part):
                groups.setdefault(level.plan.name, []).append((int(match[1]), level))
        for turns in groups.values():
            plan, ordered = turns[0][1].plan, tuple(sorted(turns, key=lambda turn: turn[0]))
            found.append(AgentLoop(run, plan.name, texts.is_cold(plan), traits(plan), ordered))
    return found


def turn_plot(runs: Sequence[RunSummary]) -> Plot | None:
    """TTFT against the turn, one curve a loop."""
    found = agent_loops(runs)
    curves: list[Curve] = []
    for loop, name in zip(found, texts.curve_names([loop.traits for loop in found]), strict=True):
        points = tuple(point for turn, level in loop.turns if (point := point_of(turn, level, "ttft")))
        if points:
            told = name or ("cold" if loop.cold else "warm")
            curves.append(Curve(told, loop.run, sum(curve.run == loop.run for curve in curves), points))
    if not curves:
        return None
    x, y = Axis("turn of the agent's loop", each="turn {}"), Axis("TTFT", "s")
    return Plot("ttft-turn", "Time to first token, turn by turn", x, y, tuple(curves), gap_words(runs))


def cache_gaps(summary: RunSummary) -> list[Gap]:
    """Turn by turn, of the first cold loop and the first warm one of the same kind; named where there are more."""
    found = agent_loops([summary])
    cold = next((loop for loop in found if loop.cold), None)
    alike = {**cold.traits, _CACHED: ""} if cold else None
    warm = next((loop for loop in found if not loop.cold and {**loop.traits, _CACHED: ""} == alike), None)
    if not cold or not warm:
        return []
    both = ((turn, cold.ttft(turn), warm.ttft(turn), level) for turn, level in warm.turns)
    name = warm.name if len(found) > 2 else ""
    return [Gap(turn, one, other, _cached(level), name) for turn, one, other, level in both if one and other]


def gap_words(runs: Sequence[RunSummary]) -> str:
    """The sentence `At turn 10 the first token comes after 8.41 s cold and 0.31 s with 80 % of the prompt cached: 27
    times ...`"""
    asked = {texts.letter(run): gap_to_show(cache_gaps(summary)) for run, summary in enumerate(runs)}
    told = {name: _gap_text(gap) for name, gap in asked.items() if gap}
    return " ".join(f"{name}: {text}" if len(runs) > 1 else text for name, text in told.items())


def gap_to_show(found: Sequence[Gap]) -> Gap | None:
    """The gap at turn 10, of which everyone asks; for a shorter loop, at its last turn."""
    return next((gap for gap in found if gap.turn == ASKED), found[-1] if found else None)


def _gap_text(gap: Gap) -> str:
    share = f"with {percent(gap.cached)} of the prompt cached" if gap.cached else "warm"
    text = f"{gap.level}: " if gap.level else ""
    text += f"At turn {gap.turn} the first token comes after {texts.seconds(gap.cold.value)} cold "
    text += f"and {texts.seconds(gap.warm.value)} {share}"
    if gap.ratio is None:
        return f"{text}."
    effect = f"cold takes {texts.ratio_times(gap.ratio)} as long" if gap.ratio > 1.05 else "the cache has no effect"
    return f"{text}: {effect}."


def turns_table(summary: RunSummary, write: Write = texts.with_interval) -> Table | None:
    """Each turn of each loop. write: a median as a cell."""
    found = agent_loops([summary])
    if not found:
        return None
    names = [name or "TTFT" for name in texts.curve_names([loop.traits for loop in found])]
    ratio = {gap.turn: gap for gap in cache_gaps(summary)}
    turns = sorted({turn for loop in found for turn, _ in loop.turns})
    rows = [(str(turn), *(_ttft(loop, turn, write) for loop in found), *_ratio(ratio, turn)) for turn in turns]
    level = next((gap.level for gap in ratio.values()), None)
    more = () if level is None else (f"cold : warm{', ' if level else ''}{level}", "cached")
    heads = ("turn", *(f"TTFT, {name}" for name in names), *more)
    return Table("Turn by turn", heads, tuple(rows), "Medians with their 95 % bootstrap intervals.")


def _ttft(loop: AgentLoop, turn: int, write: Write) -> str:
    found = loop.ttft(turn)
    return write("ttft", found) if found else ""


def _ratio(gaps_of: dict[int, Gap], turn: int) -> tuple[str, ...]:
    if not gaps_of:
        return ()
    gap = gaps_of.get(turn)
    ratio = f"{gap.ratio:.1f}" if gap and gap.ratio else ""
    return ratio, percent(gap.cached) if gap and gap.cached is not None else ""


def _cached(level: LevelSummary) -> float | None:
    found = level.metrics.get("cached_share")
    return found.median.value if found and found.median else None
