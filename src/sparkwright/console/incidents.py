"""Incidents: the list, and one of them in the order in which its owner asks."""

from collections.abc import Sequence
from typing import Any

from sparkwright.console.figures import UNKNOWN, shortened, time_element
from sparkwright.console.overview import incident_row
from sparkwright.domain.incident import Incident
from sparkwright.domain.units import duration
from sparkwright.report.incident_story import IncidentStory, story_of
from sparkwright.report.markup import Html, html_tag, join_html

_EVIDENCE = 40


def listing(found: Sequence[Incident], now: float) -> Html:
    title = html_tag("h1", "Incidents")
    if not found:
        return join_html(title, html_tag("p", "No incidents.", class_="empty"))
    return join_html(title, html_tag("ul", *(incident_row(one, now) for one in found), class_="incidents"))


def incident_page(one: Incident, now: float, diagnosis: dict[str, Any] | None = None) -> Html:
    """The story that `sparkwright incidents show` prints, in the same words."""
    told = story_of(one, diagnosis)
    simulated = html_tag("span", "simulated", class_="mark") if one.simulated else ""
    title = html_tag("div", html_tag("h1", f"Incident {one.number}"), simulated, class_="title")
    parts = [title, html_tag("p", _headline(one, now), class_="says"), _cause(told), _happened(one, told)]
    if told.steps:
        word = "To look into by hand" if told.steps_word == "by hand" else "What to do"
        steps = html_tag("ul", *(html_tag("li", html_tag("code", shortened(step))) for step in told.steps))
        parts.append(html_tag("section", html_tag("h2", word), steps, class_="steps"))
    return join_html(*parts, html_tag("section", html_tag("h2", "Facts"), _facts(one, told)))


def _headline(one: Incident, now: float) -> str:
    if one.is_open:
        unwatched = "; nothing watches it" if one.unwatched_at else ""
        return f"{one.deployment}: open for {duration(max(now - one.opened_at, 0.0))}{unwatched}"
    away = f"; clients got nothing for {one.away_text}" if one.away_text else ""
    return f"{one.deployment}: {shortened(one.outcome) or 'closed'}{away}"


def _cause(told: IncidentStory) -> Html:
    """Cause, proof and doubt in one box: a cause is not shown without what is unknown about it."""
    sure = html_tag("span", f" {told.sureness}", class_="soft") if told.sureness else ""
    code = html_tag("code", told.code) if told.code else ""
    rows: list[tuple[str, Html]] = [("cause", html_tag("span", html_tag("b", shortened(told.cause)), " ", code, sure))]
    rows += [("proof", html_tag("q", line)) for line in told.proof]
    rows += [("doubt", html_tag("span", f"not known: {line}")) for line in told.doubts]
    rows += [("to settle it", html_tag("code", shortened(step))) for step in told.settle]
    cells = (html_tag("div", html_tag("dt", name), html_tag("dd", value)) for name, value in rows)
    return html_tag("section", html_tag("h2", "Cause"), html_tag("dl", *cells, class_="conditions cause"))


def _happened(one: Incident, told: IncidentStory) -> Html:
    first = html_tag(
        "li", html_tag("span", time_element(one.opened_at), class_="at"), html_tag("b", shortened(told.what))
    )
    rows = (html_tag("li", html_tag("span", each.offset, class_="at"), shortened(each.text)) for each in told.moments)
    last = (
        ""
        if one.is_open
        else html_tag("li", html_tag("span", time_element(one.closed_at), class_="at"), shortened(told.end))
    )
    noted = "\n".join(f"{word}: {line}" for word, line in told.noted[:_EVIDENCE])
    lines = html_tag("pre", noted, tabindex="0") if noted else ""
    return html_tag(
        "section",
        html_tag("h2", "What happened, and what was done"),
        html_tag("ol", first, *rows, last, class_="events"),
        lines,
    )


def _facts(one: Incident, told: IncidentStory) -> Html:
    rows = [
        ("deployment", one.deployment),
        ("kind", one.kind),
        ("what changed before", told.changed or UNKNOWN),
        ("detected", told.detected or "at once"),
        ("evidence", one.folder or UNKNOWN),
        ("logs of the ranks", html_tag("code", f"sparkwright logs {one.deployment} --incident {one.number}")),
    ]
    return html_tag(
        "dl",
        *(html_tag("div", html_tag("dt", name), html_tag("dd", value)) for name, value in rows),
        class_="conditions",
    )
