"""Runs of `eval` and `soak` as a page and as Markdown: plots, outcomes, then every exchange that failed."""

from collections.abc import Sequence

from sparkwright.domain.evaluation import Evaluation, ProbeOutcome, ProbeState
from sparkwright.domain.run import Run
from sparkwright.domain.soak import Endurance
from sparkwright.domain.units import duration
from sparkwright.report.forest import forest_plot
from sparkwright.report.html import data_json, document
from sparkwright.report.markdown import escape_code, escaped
from sparkwright.report.markdown import markdown_table as marked
from sparkwright.report.markup import Html, html_tag, join_html
from sparkwright.report.page_parts import Headline, banner, conditions_list, headline_tiles, plot_section, table_html
from sparkwright.report.soak import Soaks, events_table, found_table, memory_table, soak_plots, soak_tiles
from sparkwright.report.tables import Table
from sparkwright.report.texts import engine_text, letter, moment

_SIMULATED = "SIMULATED: a simulated engine answered."
_ENOUGH = 10  # cases below which a share tells nothing
_FAILURES = 40  # exchanges of a soak may be many
_HEAD = ("probe", "result", "score", "cases", "detail")


def evaluation_page(runs: Sequence[Run], soaks: Soaks, maker: str) -> str:
    """The whole file. soaks: what each soak among the runs showed, by run."""
    names, plots = tuple(run.id for run in runs), soak_plots(runs, soaks)
    drawn = html_tag("div", *map(plot_section, plots), class_="plots") if plots else Html("")
    simulated = banner() if any(run.conditions.simulated for run in runs) else Html("")
    title = " and ".join(dict.fromkeys(run.conditions.model or run.id for run in runs))
    called = [f"{letter(place)}: {run.id}" for place, run in enumerate(runs)] if len(runs) > 1 else [""]
    heads = (_head(run, soaks.get(run.id), name) for run, name in zip(runs, called, strict=True))
    sections = (_section(run, soaks.get(run.id)) for run in runs)
    body = join_html(html_tag("h1", title), simulated, *heads, drawn, forest_plot(runs), *sections)
    kind = "Soak" if len(soaks) == len(runs) else "Evaluation" if not soaks else "Soak and evaluation"
    return document(", ".join(names), body, Html(data_json(names, plots, ())), maker, kind)


def evaluation_markdown(runs: Sequence[Run], soaks: Soaks) -> str:
    return "\n\n".join(_marked(run, soaks.get(run.id)) for run in runs) + "\n"


def score_text(outcome: ProbeOutcome) -> str:
    """`38 of 50, 76 % (63 to 86)`; '' without a score."""
    score = outcome.score
    if score is None:
        return ""
    return f"{score.good} of {score.of}, {100 * score.share:.0f} % ({100 * score.low:.0f} to {100 * score.high:.0f})"


def _found(run: Run) -> Evaluation:
    return run.evaluation or Evaluation("")


def _verdict(run: Run, soak: Endurance | None) -> str:
    found = _found(run)
    if soak:
        kinds = ", ".join(dict.fromkeys(one.kind for one in soak.findings))
        return f"{duration(soak.seconds)}, {f'found {kinds}' if kinds else 'nothing found'}"
    return found.verdict or ", ".join(f"{count} {state}" for state, count in found.counts.items() if count)


def _row(one: ProbeOutcome) -> tuple[str, ...]:
    return one.name, one.state.value, score_text(one), str(one.cases or ""), one.detail


def _is_few(one: ProbeOutcome) -> bool:
    """A share of a handful of cases has an interval from one end to the other."""
    return one.score is not None and one.score.of < _ENOUGH


def _tables(run: Run, soak: Endurance | None) -> list[Table]:
    """The tables. A soak's omit single probes of every round: failed ones have their exchanges below."""
    if soak:
        found = [found_table(soak), memory_table(soak), events_table(run)]
    else:
        found = [Table("Outcomes", _HEAD, tuple(_row(one) for one in _found(run).outcomes if not _is_few(one)))]
    return [table for table in found if table.rows]


def _head(run: Run, soak: Endurance | None, name: str) -> Html:
    """The verdict, the big figures, and what a soak has found. name: '' on the page of one run."""
    told = [f"{one.kind}: {one.text}" for one in soak.findings] if soak else []
    good = not told and not any(one.state is ProbeState.FAILED for one in _found(run).outcomes)
    sub = " · ".join(filter(None, (run.workload.title, engine_text(run.conditions), moment(run.began))))
    figures = soak_tiles(run, soak) if soak else _tiles(run)
    return html_tag(
        "section",
        html_tag("h2", name) if name else Html(""),
        html_tag(
            "p",
            html_tag("span", _verdict(run, soak), class_=f"badge {'good' if good else 'bad'}"),
            html_tag("span", sub),
            class_="sub",
        ),
        html_tag("ul", *(html_tag("li", text) for text in told), class_="doubts") if told else Html(""),
        html_tag("ul", *(html_tag("li", text) for text in soak.unknown), class_="notes")
        if soak and soak.unknown
        else Html(""),
        headline_tiles(figures),
        class_="card",
    )


def _tiles(run: Run) -> list[Headline]:
    """The count of each result, the failed ones first; a score if the whole has one."""
    counts = {str(state): count for state, count in _found(run).counts.items() if count}
    names = sorted(counts, key=lambda state: state != ProbeState.FAILED)
    return [Headline(name.capitalize(), f"{counts[name]}", f"of {sum(counts.values())}", "", "") for name in names]


def _section(run: Run, soak: Endurance | None) -> Html:
    failed = [one for one in _found(run).outcomes if one.evidence][:_FAILURES]
    found = (table for table in _tables(run, soak) if table.title != "Found")
    parts = (join_html(html_tag("h3", table.title), table_html(table, run.id)) for table in found)
    few = _few(run) if not soak else Html("")
    return html_tag(
        "section",
        html_tag("h2", run.id),
        *parts,
        few,
        *map(_failure, failed),
        conditions_list(run),
        class_="wide details",
    )


def _few(run: Run) -> Html:
    """Kinds of which too few were asked to tell anything, folded away."""
    rows = tuple(_row(one) for one in _found(run).outcomes if _is_few(one))
    if not rows:
        return Html("")
    title = f"{len(rows)} with fewer than {_ENOUGH} cases"
    return html_tag("details", html_tag("summary", title), table_html(Table(title, _HEAD, rows), run.id))


def _failure(outcome: ProbeOutcome) -> Html:
    exchanges = (
        join_html(html_tag("p", one.what), html_tag("pre", one.sent), html_tag("pre", one.received))
        if one.sent
        else html_tag("p", one.what)
        for one in outcome.evidence
    )
    return join_html(
        html_tag("h3", outcome.name),
        html_tag("p", f"Usually means: {outcome.means}. Next: {outcome.hint}.") if outcome.means else Html(""),
        *exchanges,
    )


def _marked(run: Run, soak: Endurance | None) -> str:
    parts = [f"## {escaped(run.workload.title)} of {escaped(run.conditions.model)}: {escaped(_verdict(run, soak))}"]
    parts += [f"**{_SIMULATED}**"] if run.conditions.simulated else []
    parts += [
        f"Run `{escape_code(run.id)}` at `{escape_code(run.conditions.endpoint)}`.",
        *map(marked, _tables(run, soak)),
    ]
    return "\n\n".join(parts)
