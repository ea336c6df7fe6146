"""What happened: the list of incidents, and one with its evidence, diagnosis and what was done."""

from collections.abc import Sequence

from sparkwright.console.figures import UNKNOWN, clock, short
from sparkwright.console.overview import incident_row
from sparkwright.domain.incident import CHANGED, Incident
from sparkwright.domain.units import duration
from sparkwright.report.markup import Html, join, tag

_EVIDENCE = 40


def listing(found: Sequence[Incident], now: float) -> Html:
    title = tag("h1", "Incidents")
    if not found:
        return join(title, tag("p", "No incident is remembered on this head node.", class_="soft"))
    return join(title, tag("ul", *(incident_row(one, now) for one in found), class_="incidents"))


def shown(one: Incident, now: float) -> Html:
    simulated = tag("span", "simulated", class_="mark") if one.simulated else ""
    title = tag("div", tag("h1", f"Incident {one.number}"), simulated, class_="title")
    parts = [title, tag("p", short(one.what), class_="says"), _diagnosis(one)]
    if one.evidence:
        lines = "\n".join(short(line) for line in one.evidence[:_EVIDENCE])
        parts.append(tag("section", tag("h2", "Evidence"), tag("pre", lines, tabindex="0")))
    if one.events:
        rows = (
            tag("li", clock(event.at), tag("b", f" {event.kind} "), short(event.text.removeprefix(event.kind)))
            for event in one.events
            if event.kind != CHANGED
        )
        parts.append(tag("section", tag("h2", "What was done"), tag("ol", *rows, class_="events")))
    return join(*parts, tag("section", tag("h2", "Facts"), _facts(one, now)))


def _facts(one: Incident, now: float) -> Html:
    end = join("open for ", duration(max(now - one.opened_at, 0.0))) if one.is_open else clock(one.closed_at)
    away = "not yet" if one.is_open else UNKNOWN if one.away is None else duration(one.away)
    rows = [
        ("deployment", one.deployment),
        ("kind", one.kind),
        ("began", clock(one.opened_at)),
        ("closed", end),
        ("outcome", short(one.outcome) or ("open" if one.is_open else UNKNOWN)),
        ("away", away),
        ("what changed", short(one.changed) or UNKNOWN),
        ("saved in", one.folder or UNKNOWN),
    ]
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in rows), class_="conditions")


def _diagnosis(one: Incident) -> Html:
    if not one.cause:
        return tag("section", tag("h2", "Diagnosis"), tag("p", "No root cause was found.", class_="soft"))
    cause = tag("p", tag("b", short(one.cause)), f" ({one.code})" if one.code else "")
    steps = (tag("li", tag("code", short(step))) for step in one.fix)
    fix = join(tag("h3", "Fix"), tag("ul", *steps)) if one.fix else ""
    return tag("section", tag("h2", "Diagnosis"), cause, fix, class_="diagnosis")
