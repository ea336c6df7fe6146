"""The requests of the last day, newest first: who asked what model, how much, how quickly, and what came of it."""

from collections.abc import Mapping, Sequence
from statistics import median

from sparkwright.console.figures import UNKNOWN, number, shortened, time_ago
from sparkwright.domain.history import RequestRecord
from sparkwright.domain.units import duration
from sparkwright.domain.values import dataclass
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.report.markup import Html, html_tag, join_html

SHOWN, READ = 100, 5000
RECENT = 600.0  # seconds that the figures of the first page are of
_HEADS = ("when", "key", "model", "prompt", "cached", "answer", "first token", "took", "tokens/s", "result")
_RESULTS = {
    "": "all results",
    "ok": "answered",
    "failed": "failed or cut",
    "refused": "refused (429, 503)",
}


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """The filter of the list; '' for all."""

    key: str = ""
    model: str = ""
    result: str = ""

    def lets(self, one: RequestRecord) -> bool:
        return self.key in ("", one.key) and self.model in ("", one.model) and self.result in ("", _kind(one))


def wanted(given: Mapping[str, str]) -> RequestFilter:
    result = given.get("result", "")
    return RequestFilter(given.get("key", "")[:200], given.get("model", "")[:200], result if result in _RESULTS else "")


def _kind(one: RequestRecord) -> str:
    return "refused" if one.outcome == "refused" else "ok" if one.outcome in ("finished", "uncounted") else "failed"


def requests_page(found: Sequence[RequestRecord], filters: RequestFilter, query: str, now: float) -> Html:
    """query: of the address, for what the page asks again. found: newest first."""
    about = html_tag("p", "The last day's requests at the gateway. Prompts and answers are not stored.", class_="soft")
    box = html_tag(
        "div",
        requests_table(found, filters, now),
        id="requests",
        data_poll=f"{CONSOLE_PATH}/requests/rows?{query}",
        data_every="2",
    )
    return join_html(html_tag("h1", "Requests"), about, _form(found, filters), box)


def _form(found: Sequence[RequestRecord], filters: RequestFilter) -> Html:
    keys = sorted({one.key for one in found} | {filters.key} - {""})
    models = sorted({one.model for one in found} | {filters.model} - {""})
    choices = [
        _select("key", "Key", {"": "all keys", **{name: name for name in keys}}, filters.key),
        _select("model", "Model", {"": "all models", **{name: name for name in models}}, filters.model),
        _select("result", "Result", _RESULTS, filters.result),
    ]
    return html_tag("form", *choices, html_tag("button", "Filter", type="submit"), class_="filters", method="get")


def _select(name: str, label: str, choices: Mapping[str, str], chosen: str) -> Html:
    options = (
        html_tag("option", shortened(text, 60), value=value, selected=value == chosen)
        for value, text in choices.items()
    )
    return html_tag(
        "div", html_tag("label", label, for_=f"f-{name}"), html_tag("select", *options, id=f"f-{name}", name=name)
    )


def requests_table(found: Sequence[RequestRecord], filters: RequestFilter, now: float) -> Html:
    """The table with a line that says how many there are."""
    mine = [one for one in found if filters.lets(one)]
    if not mine:
        return html_tag("p", "No request in the last day." if not found else "No request matches.", class_="empty")
    more = (
        f"The newest {SHOWN} of {number(len(mine))}"
        if len(mine) > SHOWN
        else f"{number(len(mine))} request{'' if len(mine) == 1 else 's'}"
    )
    cells = (html_tag("th", head, scope="col", class_="num" if 2 < n < 9 else None) for n, head in enumerate(_HEADS))
    body = (_row(one, now) for one in mine[:SHOWN])
    table = html_tag("table", html_tag("thead", html_tag("tr", *cells)), html_tag("tbody", *body))
    box = html_tag("div", table, class_="scroll wide", tabindex="0", role="region", aria_label="Requests")
    return join_html(html_tag("p", more, class_="soft"), box)


def _row(one: RequestRecord, now: float) -> Html:
    speed = "–" if not one.per_token else number(1 / one.per_token, 1)
    counts = [one.prompt, one.cached, one.completion]
    # An engine that reports no cached tokens is not one that found none.
    figures = [number(count) if count or (count == 0 and place != 1) else "–" for place, count in enumerate(counts)]
    figures += ["–" if one.first is None else seconds_text(one.first), duration(one.seconds), speed]
    result, kind = _result(one)
    return html_tag(
        "tr",
        html_tag("th", time_ago(one.at, now), scope="row"),
        html_tag("td", shortened(one.key, 40)),
        html_tag("td", shortened(one.model, 60)),
        *(html_tag("td", figure, class_="num") for figure in figures),
        html_tag("td", result, class_=kind),
    )


_GUARDED = {"looped": "ended in a loop", "reasoned": "over the reasoning limit"}


def _result(one: RequestRecord) -> tuple[str, str]:
    """Text and colour."""
    if one.outcome == "refused":
        return f"{one.status} refused", "doubt"
    if one.outcome == "failed":
        return f"{one.status} failed", "bad"
    if one.outcome in _GUARDED:
        return _GUARDED[one.outcome], "doubt"
    if one.outcome == "cut":
        return "cut before its end" if one.status else "no answer from the engine", "bad"
    return ("200" if one.status == 200 else str(one.status)), ""


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency of the last ten minutes; None: no streamed answer. first, per_token: (median, 95th percentile) in
    seconds."""

    requests: int
    failed: int
    limited: int
    refused: int
    first: tuple[float, float] | None
    per_token: tuple[float, float] | None

    @property
    def errors_text(self) -> str:
        parts = [(self.failed, "failed"), (self.limited, "× 429"), (self.refused, "× 503")]
        return ", ".join(f"{number(count)} {what}" for count, what in parts if count) or "no errors"


def latency(found: Sequence[RequestRecord]) -> Latency:
    done = [one for one in found if one.outcome == "finished"]
    refused = [one for one in found if one.outcome == "refused"]
    limited = sum(one.status == 429 for one in refused)
    return Latency(
        len(found),
        sum(_kind(one) == "failed" for one in found),
        limited,
        len(refused) - limited,
        _spread([one.first for one in done if one.first is not None]),
        _spread([one.per_token for one in done if one.per_token is not None]),
    )


def _spread(values: list[float]) -> tuple[float, float] | None:
    ordered = sorted(values)
    return (median(ordered), ordered[min(len(ordered) * 95 // 100, len(ordered) - 1)]) if ordered else None


def seconds_text(value: float | None) -> str:
    """Milliseconds below a second."""
    return UNKNOWN if value is None else f"{1000 * value:.0f} ms" if value < 1 else f"{value:.1f} s"
