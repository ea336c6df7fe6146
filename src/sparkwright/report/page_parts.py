"""The sections of the page, readable without JavaScript: heads, figures, plots with their values, tables."""

from collections.abc import Callable, Sequence

from sparkwright.domain.run import Run
from sparkwright.domain.summary import METRICS, Comparison, LevelSummary, RunSummary
from sparkwright.domain.units import three_digits
from sparkwright.domain.values import dataclass
from sparkwright.domain.workload import Single
from sparkwright.report import tables, texts
from sparkwright.report.agentic import cache_gaps, gap_to_show, turns_table
from sparkwright.report.markup import Html, html_tag, join_html
from sparkwright.report.series import Axis, Plot
from sparkwright.report.tables import Table
from sparkwright.report.timelines import Timeline


@dataclass(frozen=True, slots=True)
class Headline:
    """value without its unit; spread: the interval; where: at which level. valid: whether the figure counts."""

    name: str
    value: str
    unit: str
    spread: str
    where: str
    valid: bool = True


def headlines(summary: RunSummary) -> list[Headline]:
    """Speed of one user where the context is least and where it is deepest, of all users, and of a warm turn."""
    levels = tables.whole_levels(summary)
    # Independent requests show an engine's speed best; other shapes only where there are no others.
    levels = [level for level in levels if isinstance(level.plan.shape, Single)] or levels
    one_user = [level for level in levels if level.plan.pace.concurrency <= 1 and _depth(level)]
    found = [level for level in levels if "output_rate" in level.metrics and level.plan.pace.concurrency != 1]
    best = max(found, key=lambda level: _middle(level, "output_rate"), default=None)
    rate, limits = summary.best_rate, "the highest rate within the limits"
    cards = [
        _metric("Decode", levels, "decode", min),
        _metric("Decode, deep", one_user, "decode", max),
        _metric("Prefill", levels, "prefill", min),
        _metric("First token", levels, "ttft", min),
        _headline("All users", best, "output_rate") if best else None,
        Headline("Goodput", three_digits(rate), "requests/s", "", limits) if rate is not None else None,
        _warm(summary),
    ]
    return [one for one in cards if one]


def _metric(name: str, levels: list[LevelSummary], metric: str, pick: Callable[..., LevelSummary]) -> Headline | None:
    """The headline of a metric at the level with the least (or most) load and depth."""
    found = [level for level in levels if metric in level.metrics and level.metrics[metric].central]
    # Concurrency without a limit counts as the most.
    level = pick(found, key=lambda one: (one.plan.pace.concurrency or 1_000_000, _depth(one))) if found else None
    return _headline(name, level, metric) if level else None


def _warm(summary: RunSummary) -> Headline | None:
    gap = gap_to_show(cache_gaps(summary))
    if gap is None:
        return None
    value, _, unit = texts.seconds(gap.warm.value).rpartition(" ")
    where = f"cold {texts.seconds(gap.cold.value)}" + (f": {texts.ratio_times(gap.ratio)} as long" if gap.ratio else "")
    return Headline(f"Turn {gap.turn}, warm", value, unit, texts.between("ttft", gap.warm), where)


def _headline(name: str, level: LevelSummary, metric: str) -> Headline:
    interval, plan = level.metrics[metric].central, level.plan
    assert interval
    unit = METRICS[metric][0]
    value = texts.figure(metric, interval.value)
    if unit == "s":
        value, _, unit = value.rpartition(" ")
    where = f"{plan.name}, {texts.load_text(plan.pace)}"
    if isinstance(plan.shape, Single):
        where = texts.field_name(plan, "tg" if metric in ("decode", "output_rate") else "pp")
    return Headline(name, value, unit, texts.between(metric, interval), where, metric not in level.spoiled)


def _middle(level: LevelSummary, metric: str) -> float:
    found = level.metrics[metric].central
    return found.value if found else 0.0


def _depth(level: LevelSummary) -> int:
    return level.plan.shape.depth if isinstance(level.plan.shape, Single) else 0


SIMULATED = "SIMULATED"
LEAD = "ttft-turn"
VERDICTS = ("better", "worse", "same", "unclear")


def head_of(summaries: Sequence[RunSummary], called: Sequence[str]) -> Html:
    """Title, what was served where and when, the badge, doubts, and the big figures: a card for each run."""
    many = len(summaries) > 1
    pairs = enumerate(zip(summaries, called, strict=True))
    cards = [_card(summary, name, place, many) for place, (summary, name) in pairs]
    title = f"{len(summaries)} runs side by side" if many else summaries[0].run.conditions.model or called[0]
    return join_html(html_tag("h1", title), _simulated(summaries), *cards)


def _simulated(summaries: Sequence[RunSummary]) -> Html:
    """The banner above everything else; it names the simulated runs if not all are."""
    which = [texts.letter(place) for place, one in enumerate(summaries) if one.run.conditions.simulated]
    if not which:
        return Html("")
    return banner("A simulated engine answered." if len(which) == len(summaries) else f"Simulated: {', '.join(which)}.")


def banner(whose: str = "A simulated engine answered.") -> Html:
    """The banner that nobody may overlook, the same on each report."""
    text = f" {whose} These are no figures of real hardware."
    return html_tag("p", html_tag("strong", SIMULATED), text, class_="simulated", role="note")


def headline_tiles(found: Sequence[Headline], valid: bool = True) -> Html:
    """The big figures; those of a run that is not valid are greyed."""
    kind = "figures" if valid else "figures doubted"
    return html_tag("dl", *(_figure(one) for one in found), class_=kind) if found else Html("")


def conditions_list(run: Run) -> Html:
    """Name over text on a phone, side by side on a desk."""
    rows = (html_tag("div", html_tag("dt", name), html_tag("dd", text)) for name, text in texts.conditions(run))
    return join_html(html_tag("h3", "Conditions"), html_tag("dl", *rows, class_="conditions"))


def _card(summary: RunSummary, name: str, place: int, many: bool) -> Html:
    known, mark = summary.run.conditions, html_tag("span", SIMULATED, class_="badge doubtful")
    engine = texts.engine_text(known)
    where = ", ".join(node.split(":")[0].split(",")[0] for node in known.nodes) or known.endpoint
    work = summary.run.workload
    known_as = (summary.run.id if many else "", engine, where, work.title or work.name, texts.moment(summary.run.began))
    sub = " · ".join(part for part in known_as if part)
    swatch = html_tag("span", texts.letter(place), class_="swatch", data_run=str(place % 7))
    found = headlines(summary)
    doubt = "" if not summary.invalid else "Struck out: the run is not valid, and so is none of its figures. "
    note = html_tag("p", f"{doubt}Medians; small: their 95 % bootstrap intervals, and at which level.", class_="note")
    return html_tag(
        "section",
        html_tag("h2", swatch, " ", name) if many else Html(""),
        html_tag(
            "p",
            verdict_badge(summary),
            " ",
            mark if many and known.simulated else "",
            html_tag("span", sub),
            class_="sub",
        ),
        _list(tables.doubts(summary), "doubts"),
        _list(tables.level_notes(summary), "notes"),
        join_html(headline_tiles(found, not summary.invalid), note) if found else Html(""),
        class_="card",
    )


def verdict_badge(summary: RunSummary) -> Html:
    word = tables.verdict(summary)
    return html_tag(
        "span", word, class_=f"badge {'good' if word == 'valid' else 'bad' if summary.invalid else 'doubtful'}"
    )


def _list(told: Sequence[str], kind: str) -> Html:
    return html_tag("ul", *(html_tag("li", text) for text in told), class_=kind) if told else Html("")


def _figure(one: Headline) -> Html:
    value = html_tag(
        "dd", html_tag("span", one.value, class_="value"), html_tag("span", one.unit, class_="unit"), class_="big"
    )
    spread = html_tag("dd", one.spread, class_="spread") if one.spread else Html("")
    where = html_tag("dd", one.where if one.valid else f"{one.where}; not valid", class_="where")
    return html_tag("div", html_tag("dt", one.name), value, spread, where, class_=None if one.valid else "doubted")


def plot_section(plot: Plot) -> Html:
    """An empty place for the plot, which the script fills, and its values as a table."""
    values = html_tag("details", html_tag("summary", "Values"), table_html(values_table(plot)), class_="values")
    return html_tag(
        "section",
        html_tag("h2", plot.title),
        html_tag("p", plot.says, class_="says") if plot.says else Html(""),
        html_tag("div", id_=f"plot-{plot.id}", class_="plot"),
        Html("") if any(curve.thin for curve in plot.curves) else values,
        class_="figure lead" if plot.id == LEAD else "figure",
    )


def values_table(plot: Plot) -> Table:
    """Each curve's value at each x."""
    xs = sorted({point.x for curve in plot.curves for point in curve.points})
    at = [{point.x: point.y for point in curve.points} for curve in plot.curves]
    rows = ((_value(plot.x, x), *(_value(plot.y, one[x].value) if x in one else "" for one in at)) for x in xs)
    return Table(plot.title, (plot.x.label, *(curve.name for curve in plot.curves)), tuple(rows))


def _value(axis: Axis, value: float) -> str:
    if axis.unit == "tokens":
        return texts.tokens(int(value))
    return texts.seconds(value) if axis.unit == "s" else f"{value:g}" if value == int(value) else three_digits(value)


def timeline_section(requests: Sequence[Timeline], called: Sequence[str]) -> Html:
    if not requests:
        return Html("")
    groups: dict[str, list[Html]] = {}
    for index, one in enumerate(requests):
        group = f"{texts.letter(one.run)}: {one.level}" if len(called) > 1 else one.level
        groups.setdefault(group, []).append(html_tag("option", one.label, value=str(index)))
    options = [html_tag("optgroup", *inside, label=group) for group, inside in groups.items()]
    none = html_tag("option", "none", value="")
    return html_tag(
        "section",
        html_tag("h2", "One request, token by token"),
        html_tag("p", "Tokens received since it was sent; a flat stretch is a pause.", class_="says"),
        html_tag(
            "p", _select("request", "Request", options), _select("second", "Second", [none, *options]), class_="pick"
        ),
        html_tag("div", id_="plot-timeline", class_="plot"),
        class_="figure wide needs-script",
    )


def _select(name: str, title: str, options: Sequence[Html]) -> Html:
    return html_tag("label", html_tag("span", title), html_tag("select", *options, id_=f"timeline-{name}"))


def compared(comparison: Comparison) -> Html:
    """The verdicts first; every compared figure folded away below."""
    refused = _list([f"Not comparable: {why}" for why in comparison.refused], "doubts")
    parts = [html_tag("h2", f"{comparison.new} against {comparison.base}"), refused, _list(comparison.notes, "notes")]
    if comparison.rows:
        every = html_tag("summary", f"All {len(comparison.rows)} figures compared")
        parts.append(table_html(tables.matrix_table(comparison), comparison.new))
        parts.append(html_tag("details", every, table_html(tables.comparison_table(comparison), comparison.new)))
    return html_tag("section", *parts, class_="compared")


def run_details(summary: RunSummary, name: str) -> Html:
    """All tables of one run."""
    found = (tables.levels_table, turns_table, tables.errors_table, tables.server_table)
    made = [table for make in found if (table := make(summary)) and table.rows]
    parts = [join_html(html_tag("h3", table.title), table_html(table, name)) for table in made]
    return html_tag("section", html_tag("h2", name), *parts, conditions_list(summary.run), class_="wide details")


_SENTENCE = 60


_STATES = {"passed": "better", "failed": "worse", "unsupported": "unclear"}


def table_html(table: Table, of: str = "") -> Html:
    """The table without columns that are empty in every row; words are aligned to the left, figures to the right.

    of: the run, where a page has such a table for each: a screen reader lists them by name.
    """
    used = [place for place in range(len(table.head)) if not place or any(row[place] for row in table.rows)]
    words = {place for place in used if not any(_is_figure(row[place]) for row in table.rows)}
    heads = (
        html_tag("th", table.head[place], scope="col", class_="words" if place in words else None) for place in used
    )
    rows = [
        html_tag("tr", html_tag("th", row[0], scope="row"), *(_cell(row[place], place in words) for place in used[1:]))
        for row in table.rows
    ]
    says = html_tag("p", table.says, class_="note") if table.says else Html("")
    grid = html_tag("table", html_tag("thead", html_tag("tr", *heads)), html_tag("tbody", *rows))
    return join_html(
        html_tag(
            "div",
            grid,
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label=f"{table.title} of {of}" if of else table.title,
        ),
        says,
    )


def _is_figure(cell: str) -> bool:
    return cell[:1].isdigit() or cell.startswith(("+", "-", "<", "–", "not valid:"))


def _cell(cell: str, words: bool = False) -> Html:
    """An interval is small below its figure; a verdict has its color; a sentence may have several lines."""
    if cell in _STATES:
        return html_tag("td", cell, class_=f"words verdict {_STATES[cell]}")
    if words or len(cell) > _SENTENCE:
        return html_tag("td", cell, class_="sentence")
    word = cell.rpartition(" ")[2]
    if word in VERDICTS:
        return html_tag("td", cell, class_=f"verdict {word}")
    value, bracket, spread = cell.partition(" (")
    return html_tag("td", value, *((html_tag("small", spread.removesuffix(")")),) if bracket else ()))
