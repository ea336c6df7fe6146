"""A search of settings as tables, and as a page with its curve."""

from collections.abc import Sequence
from math import ceil
from statistics import fmean, median

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
from sparkwright.report.markup import Html, join, tag
from sparkwright.report.page_parts import Headline, banner, table_html, tiles
from sparkwright.report.tables import Table
from sparkwright.tune import search

_FEWEST = 2  # settings that a comparison takes
_WIDTH, _HEIGHT, _EDGE = 720, 260, 44


def score_text(goal: TuneGoal, score: float) -> str:
    """The score as users read it: latency in seconds an answer."""
    if score <= 0:
        return "-"
    shown = 1 / score if goal is TuneGoal.LATENCY else score
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
    return f"{found.compared} of {found.space:,} settings measured; {trials}: {', '.join(parts)}"


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
    several, most = max(1, int(seconds // trial.value)), max(_FEWEST, search.most(settings))
    each = f"a trial takes about {duration(trial.value)} ({duration(trial.low)} to {duration(trial.high)})"
    enough = ceil(most * trial.value / 60)
    if several >= most:
        return f"{each}: {duration(seconds)} are enough for the {most} settings that are tried"
    none = "too short to compare anything" if several < _FEWEST else f"enough for about {several} of {most} settings"
    return f"{each}: {duration(seconds)} are {none}; worth it: --time {enough}m"


def tuning_page(found: Tuned, maker: str) -> str:
    """The whole file."""
    tables = [table for table in (effect_table(found), trial_table(found)) if table.rows]
    body = join(
        tag("h1", found.recipe),
        banner() if found.simulated else Html(""),
        tag(
            "p",
            tag("span", f"tuned for {found.goal}", class_="badge good"),
            tag("span", counts_text(found)),
            class_="sub",
        ),
        tiles(_tiles(found)),
        tag("p", verdict(found), class_="note"),
        tag("p", found.note, class_="note") if found.note else Html(""),
        _curve(found),
        *(part for table in tables for part in (tag("h2", table.title), table_html(table))),
        tag("details", tag("summary", f"Profile {found.profile}"), tag("pre", found.text, tabindex="0"))
        if found.text
        else Html(""),
    )
    data = Html(data_json((found.id,), (), ()))
    return document(found.id, tag("section", body, class_="wide details"), data, maker, "Tuning")


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


def _curve(found: Tuned) -> Html:
    """Scores in the order of the trials: larger dots were measured longer; the line is the best so far."""
    known = [one for one in found.trials if one.scores and one.rung >= 0 and one.state is Tried.MEASURED]
    if len(known) < 2:
        return Html("")
    scores = [fmean(one.scores) for one in known]
    most, step = max(scores), (_WIDTH - 2 * _EDGE) / (len(known) - 1)
    xs = [_EDGE + step * n for n in range(len(known))]
    ys = [_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * score / most for score in scores]
    tops = [min(ys[: n + 1]) for n in range(len(ys))]
    dots = [
        tag(
            "circle",
            tag("title", f"{changes_text(found.settings, one.point)}: {score_text(found.goal, score)}"),
            cx=f"{x:.1f}",
            cy=f"{y:.1f}",
            r=str(3 + 2 * one.rung),
            fill="#2a78d6",
        )
        for one, score, x, y in zip(known, scores, xs, ys, strict=True)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, tops, strict=True))
    line = tag("polyline", points=path, fill="none", stroke="#d6722a")
    axis = tag(
        "line", x1=str(_EDGE), x2=str(_WIDTH - _EDGE), y1=str(_HEIGHT - _EDGE), y2=str(_HEIGHT - _EDGE), stroke="gray"
    )
    texts = (
        tag("text", f"best {score_text(found.goal, most)}", x="4", y=str(_EDGE - 14), fill="gray", font_size="13"),
        tag("text", "0", x=str(_EDGE - 14), y=str(_HEIGHT - _EDGE + 4), fill="gray", font_size="13"),
        tag("text", "trial 1", x=str(_EDGE), y=str(_HEIGHT - _EDGE + 16), fill="gray", font_size="13"),
        tag(
            "text",
            f"trial {len(known)}",
            x=str(_WIDTH - _EDGE),
            y=str(_HEIGHT - _EDGE + 16),
            fill="gray",
            font_size="13",
            text_anchor="end",
        ),
        tag(
            "text",
            "dots: trials in order, larger ones were measured longer; line: the best so far",
            x=str(_EDGE),
            y=str(_HEIGHT - 12),
            fill="gray",
            font_size="13",
        ),
    )
    return tag("svg", axis, line, *dots, *texts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label="Curve")
