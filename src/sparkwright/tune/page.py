"""A search of settings as tables, and as a page with its curve."""

from collections.abc import Sequence
from math import ceil
from statistics import fmean, median

from sparkwright.domain.summary import Interval
from sparkwright.domain.tuning import (
    START,
    Candidate,
    Effect,
    Point,
    Trial,
    Tried,
    Tuned,
    TuneGoal,
    TuneSetting,
    scored,
)
from sparkwright.domain.units import duration
from sparkwright.domain.verdict import Estimate
from sparkwright.report.html import data_json, document
from sparkwright.report.markup import Html, html_tag, join_html
from sparkwright.report.page_parts import Headline, banner, headline_tiles, plot_section, table_html
from sparkwright.report.series import Axis, Curve, Plot
from sparkwright.report.series import Point as PlotPoint
from sparkwright.report.tables import Table
from sparkwright.tune import search

_FEWEST = 2  # settings that a comparison takes


def score_text(goal: TuneGoal, score: float) -> str:
    """The score as users read it: latency in seconds an answer."""
    if score <= 0:
        return "-"
    shown = _shown(goal, score)
    digits = 0 if shown >= 100 else 1 if shown >= 10 else 3
    unit = {TuneGoal.THROUGHPUT: "tok/s", TuneGoal.LATENCY: "s/answer", TuneGoal.AGENTS: "turns/min"}[goal]
    return f"{shown:,.{digits}f} {unit}"


def changes_text(settings: Sequence[TuneSetting], point: Point) -> str:
    """`threads 2, ubatch 64`; the recipe's own settings are `as it is`."""
    pairs = zip(settings, point, strict=False)
    return ", ".join(f"{one.name} {one.values[place]}" for one, place in pairs if place) or "as it is"


def candidate_table(found: Tuned) -> Table:
    rows = [_candidate(found, one) for one in found.candidates]
    return Table("Candidates", ("candidate", "expected", "plan"), tuple(rows), "in the order in which they are tried")


def _candidate(found: Tuned, one: Candidate) -> tuple[str, ...]:
    own = next((other.predicted for other in found.candidates if not any(other.point)), 0.0)
    expected = f"{one.predicted / own:.2f} x as it is" if own and one.predicted else "not known"
    return changes_text(found.settings, one.point), expected if not one.refused else "-", one.refused or "ok"


def trial_table(found: Tuned) -> Table:
    rows = tuple(_trial(found, one) for one in found.trials)
    return Table("Trials", ("trial", "measured", "score", "ready after", "run", "result"), rows)


def _trial(found: Tuned, one: Trial) -> tuple[str, ...]:
    score = score_text(found.goal, fmean(one.scores)) if one.scores and one.rung >= 0 else "-"
    named = changes_text(found.settings, one.point)
    named += f", {one.detail}" if one.rung == START else ""
    result = "" if one.state is Tried.MEASURED else one.state.value
    result += f": {one.detail}" if one.detail and one.rung != START else ""
    return (
        named,
        "start" if one.rung == START else f"{len(one.scores)} x",
        score,
        duration(one.start) if one.start else "-",
        one.run,
        result or "measured",
    )


def effect_table(found: Tuned) -> Table:
    says = "compared with the recipe's own value, all others equal; in brackets the 95 % bootstrap interval"
    rows = tuple(_effect(one) for one in found.effects)
    return Table("What each setting is worth", ("setting", "value", "worth", "trials"), rows, says)


def _effect(one: Effect) -> tuple[str, ...]:
    wide = f" ({one.low:+.0%} to {one.high:+.0%})" if one.low is not None and one.high is not None else " (one trial)"
    return one.setting, str(one.value), f"{one.worth:+.1%}{wide}", str(one.trials)


def verdict(found: Tuned) -> str:
    """The best compared with the recipe's own, by the medians of all their repeats."""
    known = scored(found.trials)
    if found.best is None:
        if not known:
            return "nothing was measured"
        (point, scores), *_ = known.items()
        what = "the recipe's own settings" if not any(point) else changes_text(found.settings, point)
        return f"only {what} were measured ({score_text(found.goal, median(scores))}): there is nothing to compare with"
    best, own = known[found.best], known.get((0,) * len(found.best), [])
    text = f"best: {changes_text(found.settings, found.best)}: {score_text(found.goal, median(best))}"
    if not any(found.best):
        return f"{text}; no setting that was tried is better than the recipe's own"
    if not own:
        return f"{text}; the recipe's own settings were not measured"
    sure = "" if min(best) > max(own) else "; their repeats overlap: the gain is not certain"
    times = f"{median(best) / median(own):.2f} times the recipe's own"
    return f"{text}, {times} ({score_text(found.goal, median(own))}){sure}"


def counts_text(found: Tuned) -> str:
    counts = {state: sum(one.state is state for one in found.trials) for state in Tried}
    refused = sum(bool(one.refused) for one in found.candidates)
    parts = [f"{count} {state}" for state, count in counts.items() if count]
    parts += [f"{refused} refused by the plan"] if refused else []
    trials = f"{len(found.trials)} trial{'s' if len(found.trials) != 1 else ''}"
    said = f": {', '.join(parts)}" if parts else ""
    return f"{found.compared} of {found.space:,} settings measured; {trials}{said}"


def rest_text(found: Tuned) -> str:
    """The rest of an unfinished search: missing trials, their time, and the command for them; '' if it is done."""
    if found.done or not found.needs or not found.resume:
        return ""
    left = max(1, found.most - len({one.point for one in found.trials}))
    what = "one more setting needs" if left == 1 else f"{left} more settings need"
    return f"{what} about {duration(found.needs)}; continue: {found.resume}"


def budget_text(settings: Sequence[TuneSetting], trial: Estimate | None, seconds: float) -> str:
    """The budget before a search: the settings that the time allows, and the time that is worth it; '' if that is
    unknown."""
    if trial is None:
        return ""
    several, most = max(1, int(seconds // trial.value)), max(_FEWEST, search.trial_limit(settings))
    each = f"a trial takes about {duration(trial.value)} ({duration(trial.low)} to {duration(trial.high)})"
    enough = ceil(most * trial.value / 60)
    if several >= most:
        return f"{each}: {duration(seconds)} are enough for the {most} settings that are tried"
    none = "too short to compare anything" if several < _FEWEST else f"enough for about {several} of {most} settings"
    return f"{each}: {duration(seconds)} are {none}; worth it: --time {enough}m"


def tuning_page(found: Tuned, maker: str) -> str:
    """The whole file."""
    tables = [table for table in (effect_table(found), trial_table(found)) if table.rows]
    plot = _plot(found)
    body = join_html(
        html_tag("h1", found.recipe),
        banner() if found.simulated else Html(""),
        html_tag(
            "p",
            html_tag("span", f"tuned for {found.goal}", class_="badge good"),
            html_tag("span", counts_text(found)),
            class_="sub",
        ),
        headline_tiles(_tiles(found)),
        html_tag("p", verdict(found), class_="note"),
        html_tag("p", found.note, class_="note") if found.note else Html(""),
        html_tag("div", plot_section(plot), class_="plots wide") if plot else Html(""),
        *(part for table in tables for part in (html_tag("h2", table.title), table_html(table))),
        html_tag("details", html_tag("summary", f"Profile {found.profile}"), html_tag("pre", found.text, tabindex="0"))
        if found.text
        else Html(""),
    )
    data = Html(data_json((found.id,), (plot,) if plot else (), ()))
    return document(found.id, html_tag("section", body, class_="wide details"), data, maker, "Tuning")


def _tiles(found: Tuned) -> list[Headline]:
    """The best, the recipe's own, and how many were measured."""
    measured = sum(one.state is Tried.MEASURED and one.rung >= 0 for one in found.trials)
    tried = Headline("Trials measured", f"{measured}", "", "", f"{found.space:,} settings in all")
    if found.best is None:
        return [tried]
    known = scored(found.trials)
    made = [("Best", known[found.best], changes_text(found.settings, found.best))]
    if any(found.best) and (own := known.get((0,) * len(found.best))):
        made.append(("The recipe's own", own, "as it is"))
    return [*(_score_tile(found.goal, *one) for one in made), tried]


def _score_tile(goal: TuneGoal, name: str, scores: Sequence[float], where: str) -> Headline:
    value, _, unit = score_text(goal, median(scores)).partition(" ")
    ends = [score_text(goal, score).partition(" ")[0] for score in (min(scores), max(scores))]
    low, high = reversed(ends) if goal is TuneGoal.LATENCY else ends  # shown as seconds, the best is the least
    return Headline(name, value, unit, f"{low} to {high}" if len(scores) > 1 else "one repeat", where)


def _plot(found: Tuned) -> Plot | None:
    """Scores in the order of the trials, with the ends of their repeats, and the best so far; None below two."""
    known = [one for one in found.trials if one.scores and one.rung >= 0 and one.state is Tried.MEASURED]
    if len(known) < _FEWEST:
        return None
    best, points, tops = 0.0, list[PlotPoint](), list[PlotPoint]()
    for number, one in enumerate(known, start=1):
        score = fmean(one.scores)
        best = max(best, score)
        ends = sorted(_shown(found.goal, end) for end in (min(one.scores), max(one.scores)))
        points.append(PlotPoint(number, Interval(_shown(found.goal, score), *ends), len(one.scores)))
        tops.append(PlotPoint(number, Interval(*(_shown(found.goal, best),) * 3)))
    label, unit = _AXES[found.goal]
    curves = (Curve("trial", 0, 0, tuple(points)), Curve("best so far", 1, 1, tuple(tops), True))
    says = "A point is the mean of a trial's repeats; its bar reaches from the least to the most."
    return Plot("trials", "Trials in their order", Axis("trial", each="trial {}"), Axis(label, unit), curves, says)


_AXES = {
    TuneGoal.THROUGHPUT: ("output tokens per second of all requests", ""),
    TuneGoal.LATENCY: ("seconds for an answer", "s"),
    TuneGoal.AGENTS: ("turns per minute of all agents", ""),
}


def _shown(goal: TuneGoal, score: float) -> float:
    """The score as the axis has it."""
    return 1 / score if goal is TuneGoal.LATENCY and score > 0 else score
