"""Runs of `eval` as a page and as Markdown: outcomes, then every exchange that failed."""

from collections.abc import Sequence

from sparkwright.domain.evaluation import Evaluation, Outcome
from sparkwright.domain.run import Run
from sparkwright.report.html import data_json, document
from sparkwright.report.markdown import code, escaped
from sparkwright.report.markdown import table as marked
from sparkwright.report.markup import Html, join, tag
from sparkwright.report.page_parts import table_html
from sparkwright.report.tables import Table
from sparkwright.report.texts import conditions

_SIMULATED = "SIMULATED: a simulated engine answered."
_HEAD = ("probe", "result", "score", "cases", "detail")


def evaluation_page(runs: Sequence[Run], maker: str) -> str:
    """The whole file."""
    names = ", ".join(run.id for run in runs)
    return document(names, join(*map(_section, runs)), Html(data_json(tuple(run.id for run in runs), (), ())), maker)


def evaluation_markdown(runs: Sequence[Run]) -> str:
    return "\n\n".join(map(_marked, runs)) + "\n"


def score_text(outcome: Outcome) -> str:
    """`38 of 50, 76 % (63 to 86)`; '' without a score."""
    score = outcome.score
    if score is None:
        return ""
    return f"{score.good} of {score.of}, {100 * score.share:.0f} % ({100 * score.low:.0f} to {100 * score.high:.0f})"


def _found(run: Run) -> Evaluation:
    return run.evaluation or Evaluation("")


def _verdict(run: Run) -> str:
    found = _found(run)
    return found.verdict or ", ".join(f"{count} {state}" for state, count in found.counts.items() if count)


def _table(run: Run) -> Table:
    rows = (
        (one.name, one.state.value, score_text(one), str(one.cases or ""), one.detail) for one in _found(run).outcomes
    )
    return Table("Outcomes", _HEAD, tuple(rows))


def _section(run: Run) -> Html:
    failed = (one for one in _found(run).outcomes if one.evidence)
    rows = tuple((name, text) for name, text in conditions(run))
    return tag(
        "section",
        tag("h1", f"{run.workload.title} of {run.conditions.model}: {_verdict(run)}"),
        tag("p", _SIMULATED, class_="note") if run.conditions.simulated else Html(""),
        table_html(_table(run)),
        *map(_failure, failed),
        tag("h2", "Conditions"),
        table_html(Table("Conditions", ("", ""), rows)),
    )


def _failure(outcome: Outcome) -> Html:
    exchanges = (
        join(tag("p", one.what), tag("pre", one.sent), tag("pre", one.received)) if one.sent else tag("p", one.what)
        for one in outcome.evidence
    )
    return join(
        tag("h2", outcome.name),
        tag("p", f"Usually means: {outcome.means}. Next: {outcome.hint}.") if outcome.means else Html(""),
        *exchanges,
    )


def _marked(run: Run) -> str:
    parts = [f"## {escaped(run.workload.title)} of {escaped(run.conditions.model)}: {escaped(_verdict(run))}"]
    parts += [f"**{_SIMULATED}**"] if run.conditions.simulated else []
    parts += [f"Run `{code(run.id)}` at `{code(run.conditions.endpoint)}`.", marked(_table(run))]
    return "\n\n".join(parts)
