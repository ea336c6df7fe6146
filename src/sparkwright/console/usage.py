"""The usage page: tokens and requests by key and day, as the gateway counted them."""

from collections.abc import Callable, Iterable, Sequence

from sparkwright.console.charts import bar_picture
from sparkwright.console.figures import number, percent, shortened
from sparkwright.domain.values import dataclass
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.gateway.usage import Used
from sparkwright.report.markup import Html, html_tag, join_html

SPANS = (7, 31, 366)
_FIRST = 5
_ROWS = 500
_NONE = "none reported"  # engines count it only where they are asked to: not 0 %


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of one key, or of one day."""

    name: str
    requests: int
    prompt: int
    cached: int
    completion: int
    notes: str

    @property
    def tokens(self) -> int:
        return self.prompt + self.completion


def summed(rows: Iterable[Used], by: Callable[[Used], str]) -> list[Sum]:
    """The sums, in the order of first appearance."""
    groups: dict[str, list[Used]] = {}
    for row in rows:
        groups.setdefault(by(row), []).append(row)
    return [_sum(name, found) for name, found in groups.items()]


def _sum(name: str, rows: Sequence[Used]) -> Sum:
    def all_of(what: str) -> int:
        return sum(int(getattr(row, what)) for row in rows)

    left = (("cut", "cut"), ("failed", "failed"), ("uncounted", "without a count"), ("refused", "refused by a limit"))
    guarded = (("looped", "ended in a loop"), ("reasoned", "over the reasoning limit"))
    least = f" (at least {number(all_of('at_least'))} tokens)" if all_of("at_least") else ""
    notes = ", ".join(
        f"{number(all_of(what))} {text}{least * (what == 'cut')}" for what, text in (*left, *guarded) if all_of(what)
    )
    return Sum(name, all_of("requests"), all_of("prompt"), all_of("cached"), all_of("completion"), notes)


def used_today(rows: Sequence[Used]) -> Html:
    """A few lines for the first page: the keys that used most."""
    title = html_tag("h2", "Used today ", html_tag("span", "(UTC)", class_="soft"))
    more = html_tag("p", html_tag("a", "usage by day and key", href=f"{CONSOLE_PATH}/usage"))
    keys = sorted(summed(rows, lambda row: row.key), key=lambda one: -one.tokens)
    if not keys:
        return html_tag("div", title, html_tag("p", "no request yet", class_="soft"), more, class_="recent")
    rest = len(keys) - _FIRST
    body = _table("key", keys[:_FIRST])
    others = html_tag("p", f"and {rest} more keys", class_="soft") if rest > 0 else ""
    return html_tag("div", title, body, others, more, class_="recent")


def usage_page(rows: Sequence[Used], days: int) -> Html:
    """rows: newest first."""
    links = (
        html_tag(
            "a", f"{span} days", href=f"{CONSOLE_PATH}/usage?days={span}", aria_current="page" if span == days else None
        )
        for span in SPANS
    )
    head = join_html(html_tag("h1", "Usage"), html_tag("nav", *links, aria_label="Period", class_="spans"))
    about = html_tag(
        "p",
        "Tokens as the engines count them, days by UTC. Prompts and answers are not stored. "
        "Of a cut request, whose client left before the end, only what passed of a stream is known.",
        class_="soft",
    )
    if not rows:
        return join_html(head, about, html_tag("p", f"No request in the last {days} days.", class_="empty"))
    keys = sorted(summed(rows, lambda row: row.key), key=lambda one: -one.tokens)
    parts = [
        html_tag("section", html_tag("h2", "By key"), _table("key", keys)),
        html_tag("section", html_tag("h2", "By day"), _table("day", summed(rows, lambda row: row.day))),
        _details(rows),
    ]
    return join_html(head, about, *parts)


def _details(rows: Sequence[Used]) -> Html:
    """Every row as it was counted."""
    heads = ("day", "key", "model", "requests", "prompt", "from cache", "answers")
    body = (
        html_tag(
            "tr",
            *(html_tag("td", shortened(cell, 80)) for cell in (row.day, row.key or "the engine's own", row.model)),
            *(html_tag("td", number(count), class_="num") for count in (row.requests, row.prompt)),
            html_tag("td", number(row.cached) if row.cached else _NONE, class_="num"),
            html_tag("td", number(row.completion), class_="num"),
        )
        for row in rows[:_ROWS]
    )
    cells = (html_tag("th", head, scope="col", class_="num" if place > 2 else None) for place, head in enumerate(heads))
    table = html_tag("table", html_tag("thead", html_tag("tr", *cells)), html_tag("tbody", *body))
    cut = html_tag("p", f"The newest {_ROWS} of {len(rows)} rows.", class_="soft") if len(rows) > _ROWS else ""
    box = html_tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="By day, key and model")
    return html_tag("details", html_tag("summary", "By day, key and model"), cut, box)


def _table(what: str, found: Sequence[Sum]) -> Html:
    every = sum(one.tokens for one in found) or 1
    names = ("requests", "prompt tokens", "from cache", "answer tokens")
    heads = [html_tag("th", what, scope="col"), *(html_tag("th", name, scope="col", class_="num") for name in names)]
    head = html_tag("thead", html_tag("tr", *heads, html_tag("th", "share of all tokens", scope="col", class_="share")))
    box = html_tag("table", head, html_tag("tbody", *(_row(one, every) for one in found)))
    return html_tag("div", box, class_="scroll", tabindex="0", role="region", aria_label=f"Usage by {what}")


def _row(one: Sum, every: int) -> Html:
    name = shortened(one.name, 80) or "the engine's own key"
    cached = percent(one.cached / one.prompt) if one.cached else _NONE
    figures = (number(one.requests), number(one.prompt), cached, number(one.completion))
    share = one.tokens / every
    picture = bar_picture(share, f"{number(one.tokens)} tokens, {percent(share)} of all")
    notes = html_tag("div", one.notes, class_="soft notes") if one.notes else ""
    cells = (html_tag("td", figure, class_="num") for figure in figures)
    return html_tag("tr", html_tag("th", name, notes, scope="row"), *cells, html_tag("td", picture, class_="share"))
