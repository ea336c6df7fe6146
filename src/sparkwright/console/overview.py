"""The first page: each deployment at one look. Rendered once for all who watch."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sparkwright.console import nodes, usage
from sparkwright.console.board import DeploymentWatch, ReportBoard
from sparkwright.console.charts import bar_picture, sparkline
from sparkwright.console.figures import (
    UNKNOWN,
    kind_of,
    lasting,
    number,
    percent,
    shortened,
    state_text,
    time_ago,
    with_code,
    with_unit,
    without_controls,
)
from sparkwright.console.requests import seconds_text
from sparkwright.console.strip import day_strip
from sparkwright.domain.incident import Incident
from sparkwright.domain.live import OVER as RESTS
from sparkwright.domain.live import (
    SERVING,
    STALE,
    DeploymentState,
    Live,
    LiveCacheTier,
    LiveEngine,
    LiveRank,
)
from sparkwright.domain.units import duration
from sparkwright.engines.engine import served_name
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.gateway.decide import refusal_text, wait_reason
from sparkwright.report.markup import Html, html_tag, join_html
from sparkwright.report.rates import SPAN, Rate

_NEW = 4
_STRIPS, _MADE_EVERY = 4, 20.0
EMPTY = Html()
_STARTS = (DeploymentState.STARTING, DeploymentState.LOADING, DeploymentState.STAGING)


def overview(board: ReportBoard, only: str, operates: bool = False, past: Html = EMPTY) -> Html:
    """The live part of the page, for a key that opens one deployment or all. operates: with links to act.

    past: the last day, which the page asks for itself; an event without it leaves it as it is.
    """
    watches, now = board.visible(only), board.now()
    if not watches:
        return html_tag("p", "Nothing is supervised on this head node.", class_="empty")
    parts = [
        _all(watches, now) if len(watches) > 1 else "",
        _models(watches, now),
        *(_deployment(watch, board, _actions(watch, watches, now) if operates else Html()) for watch in watches),
        html_tag("div", past, id="days", data_poll=f"{CONSOLE_PATH}/days", data_every="60", data_keep=True),
        nodes.section(watches, now),
        _incidents(board.incidents(only), now),
        usage.used_today(board.used(only)),
    ]
    return without_controls(join_html(*parts))


def _all(watches: Sequence[DeploymentWatch], now: float) -> Html:
    """The states of several deployments, at the top."""
    links = (
        html_tag(
            "a",
            dot,
            watch.name,
            " ",
            html_tag("b", state_text(watch.live, stale)),
            href=f"#d-{watch.name}",
            class_=kind,
        )
        for watch in watches
        for stale in (bool(watch.stale(now)),)
        for kind in (kind_of(watch.live, stale),)
        for dot in (html_tag("span", "", class_="dot", aria_hidden="true"),)
    )
    return html_tag("nav", *links, class_="all", aria_label="Deployments")


def _models(watches: Sequence[DeploymentWatch], now: float) -> Html:
    """One line for each model with replicas: how many of them serve, and where clients reach all of them."""
    names = dict.fromkeys(watch.replica_of for watch in watches if watch.replica_of)
    rows = []
    for name in names:
        mine = [watch for watch in watches if watch.replica_of == name]
        serving = [one for one in mine if one.live and one.live.phase in SERVING and not one.stale(now)]
        text = f"{len(serving)} of {len(mine)} replicas serve"
        links = join_html(*(html_tag("a", one.name, " ", href=f"#d-{one.name}") for one in mine))
        rows.append(
            html_tag("p", html_tag("b", name), f": {text} at {mine[0].endpoint or UNKNOWN}. ", links, class_="says")
        )
    return html_tag("section", *rows, aria_label="Models with replicas") if rows else Html()


def _deployment(watch: DeploymentWatch, board: ReportBoard, actions: Html) -> Html:
    now = board.now()
    stale, live = watch.stale(now), watch.live
    parts = [_hero(watch, live, stale, now, actions)]
    if watch.name in board.notes:
        parts.append(html_tag("p", with_code(board.notes[watch.name]), class_="noted", role="status"))
    if live:
        parts += [_troubles(live, stale), _starting(live, now)]
        if stale or live.phase in SERVING:
            parts.append(_figures(watch, board, live, stale, now))
    body = join_html(*(part for part in parts if part))
    return html_tag("section", body, class_="deployment", id=f"d-{watch.name}", aria_labelledby=f"h-{watch.name}")


def _actions(watch: DeploymentWatch, watches: Sequence[DeploymentWatch], now: float) -> Html:
    """Each leads to its plan first."""
    rests = watch.live is not None and watch.live.phase in RESTS
    verbs = ["start"] if rests else ["restart", "stop"]
    others = [one for one in watches if one.live and one.live.phase in RESTS and one is not watch]
    verbs += ["switch"] if others and not rests else []
    links = (
        html_tag(
            "a",
            f"{verb.capitalize()} …",
            href=f"{CONSOLE_PATH}/{verb}/{watch.name}",
            class_="button",
            aria_label=f"{verb.capitalize()} {watch.name}",
        )
        for verb in verbs
    )
    return html_tag("div", *links, class_="actions")


def _hero(watch: DeploymentWatch, live: Live | None, stale: str, now: float, actions: Html) -> Html:
    kind = kind_of(live, bool(stale))
    name = html_tag("h1", watch.name, id=f"h-{watch.name}")
    pill = html_tag(
        "span", html_tag("span", "", class_="dot", aria_hidden="true"), state_text(live, bool(stale)), class_="state"
    )
    marks = [html_tag("span", "simulated", class_="mark")] if live and live.simulated else []
    says = html_tag("p", with_code(_says(watch, live, stale, now)), class_="says")
    title = html_tag("div", name, pill, *marks, actions, class_="title")
    return html_tag("div", title, says, _what(watch), class_=f"hero {kind}")


def _says(watch: DeploymentWatch, live: Live | None, stale: str, now: float) -> str:
    """Is it well; if not, why and until when."""
    if live is None or stale:
        last = f" Its last report, from {time_ago(live.at, now)}, is shown below." if live else ""
        return f"What it does now is unknown: {stale}.{last}"
    up, lasts = f"Up since {_since(live, now)}", lasting(now - live.since)
    if live.phase is DeploymentState.READY and not live.refusing:
        return f"{up}.{_probe(live, now)}"
    if live.refusing or live.phase not in (DeploymentState.READY, DeploymentState.DEGRADED):
        return refusal_text(live, now)
    wait = wait_reason(live, now)
    return f"{up}, {live.phase} for {lasts}{f'; {wait}' if wait else ''}.{_probe(live, now)}"


def _since(live: Live, now: float) -> str:
    """The time at which its ranks began to serve, whatever stalls came since."""
    at = live.up_since or live.since
    form = "%H:%M UTC" if now - at < 43_200 else "%Y-%m-%d %H:%M UTC"
    return f"{datetime.fromtimestamp(at, UTC).strftime(form)}, for {lasting(now - at)}"


def _probe(live: Live, now: float) -> str:
    if live.canary is None:
        return ""
    if live.canary.seconds is None:
        return f" The last probe request, {time_ago(live.canary.at, now)}, got no token: {live.canary.said}"
    kind = "simulated" if live.simulated else "real"
    return f" Last {kind} token asked for: {time_ago(live.canary.at, now)}, it took {duration(live.canary.seconds)}."


def _what(watch: DeploymentWatch) -> Html:
    desired = watch.desired
    rows = [("endpoint", watch.endpoint or UNKNOWN)]
    if desired:
        recipe = desired.recipe
        rows = [
            ("model", shortened(served_name(recipe), 120)),
            ("engine", f"{recipe.engine.name} {recipe.engine.version}"),
            ("recipe", recipe.label),
            *rows,
        ]
    cells = (html_tag("div", html_tag("dt", name), html_tag("dd", value)) for name, value in rows)
    return html_tag("dl", *cells, class_="what")


def _troubles(live: Live, stale: str) -> Html:
    """Sentences about what is wrong and does not stop it from serving."""
    said = [sentence for _, sentence in live.troubles]
    said += [live.reason] if live.reason and live.reason not in said and not live.refusing else []
    said += [live.quiet] if live.quiet else []
    if not said or stale:
        return Html()
    return html_tag("ul", *(html_tag("li", with_code(sentence)) for sentence in said), class_="troubles")


def _starting(live: Live, now: float) -> Html:
    """The progress of the ranks while they start."""
    if live.phase not in _STARTS:
        return Html()
    rows = [_loading(rank) for rank in live.ranks]
    usual = f", a start usually takes {duration(live.usual)}" if live.usual else ""
    title = f"Starting for {duration(max(now - live.since, 0.0))}{usual}"
    return html_tag("div", html_tag("h2", title), *rows, class_="starting")


def _loading(rank: LiveRank) -> Html:
    name = f"rank {rank.rank} on {rank.node}"
    phase = rank.phase or ("no phase was reported yet" if rank.running else "not started")
    known = rank.done is not None and bool(rank.total)
    amount = f"{rank.done:g} of {rank.total:g} {rank.unit}" if known else ""
    picture = bar_picture((rank.done or 0.0) / (rank.total or 1.0), f"{name}: {amount}") if known else Html()
    label = html_tag(
        "span", html_tag("b", name), f" {phase} ", html_tag("span", shortened(rank.text, 120), class_="soft")
    )
    return html_tag("div", html_tag("div", label, html_tag("span", amount), class_="row"), picture, class_="rank")


def _figures(watch: DeploymentWatch, board: ReportBoard, live: Live, stale: str, now: float) -> Html:
    history = watch.history
    serves = live.phase in SERVING and not stale
    known = live.engine if serves and live.engine and now - live.engine.at <= STALE else None
    engine = known or LiveEngine(0.0)
    rates = (history.decode, history.prefill) if engine.at else (Rate(), Rate())
    seen, kv = board.latency(watch), engine.kv_usage
    speed = [
        _rate("Decode", "tokens/s", rates[0], now),
        _rate("Prefill", "prompt tokens/s", rates[1], now),
        _latency("Time to first token", seen.first),
        _latency("Time per token", seen.per_token),
        _box("Requests", with_unit(number(seen.requests)), "in 10 min"),
        _box("Errors", with_unit(number(seen.failed + seen.limited + seen.refused)), seen.errors_text),
    ]
    load = [
        _box("Requests running", with_unit(number(engine.running)), _waiting(engine)),
        _box(
            "KV cache in use",
            with_unit(percent(kv)),
            bar_picture(kv, f"KV cache {percent(kv)} in use") if kv is not None else "",
        ),
        _box(
            "Prefix cache hits",
            with_unit(percent(history.hits.value if engine.at else None)),
            "of prompt tokens, 5 min",
        ),
    ]
    if live.engine and live.engine.draft_tokens is not None:
        accepted = percent(history.accepted.value if engine.at else None)
        load.append(_box("Draft acceptance", with_unit(accepted), "of drafted tokens, 5 min"))
    four = "figures four" if len(load) == 4 else "figures"
    tiers = [_tier(one, bool(engine.at)) for one in live.cache_tiers]
    shown = html_tag("dl", *tiers, class_="figures") if tiers else ""
    return join_html(html_tag("dl", *speed, class_="figures"), html_tag("dl", *load, class_=four), shown)


def _tier(one: LiveCacheTier, current: bool) -> Html:
    """A tier of the engine's cache. current: the engine's figures are of this moment."""
    one = one if current else LiveCacheTier(one.tier, one.size)
    found = with_unit(number(one.hits), "prompt tokens found")
    return _box(f"{one.tier.capitalize()} cache", found, one.text)


def _latency(name: str, spread: tuple[float, float] | None) -> Html:
    """Median and 95th percentile of what clients got through the gateway."""
    if spread is None:
        return _box(name, with_unit(UNKNOWN), "no streamed answer in 10 min")
    middle, high = map(seconds_text, spread)
    value, _, of = middle.partition(" ")
    return _box(name, with_unit(value, of), f"median of 10 min; 95 % within {high}")


def _waiting(engine: LiveEngine) -> str:
    apart = f", {number(engine.deferred)} of them deferred" if engine.deferred else ""
    return f"{number(engine.waiting)} waiting{apart}" if engine.waiting is not None else "waiting: unknown"


def _rate(name: str, of: str, rate: Rate, now: float) -> Html:
    most = max((value for _, value in rate.points), default=0.0)
    picture = sparkline(rate.points, SPAN, now, f"{name} over 10 min, at most {number(most, 1)} {of}")
    ends = (html_tag("span", text) for text in ("10 min ago", f"peak {number(most, 1)}" if rate.points else "", "now"))
    return _box(
        name, with_unit(number(rate.value, 1), of), join_html(picture, html_tag("span", *ends, class_="ends")), "wide"
    )


def _box(name: str, value: Html, below: str = "", kind: str = "") -> Html:
    rows = [
        html_tag("dt", name),
        html_tag("dd", value, class_="big"),
        html_tag("dd", below, class_="below") if below else "",
    ]
    return html_tag("div", *rows, class_=f"box {kind}".strip())


def _incidents(found: Sequence[Incident], now: float) -> Html:
    title = html_tag("h2", "Incidents")
    if not found:
        return html_tag("section", title, html_tag("p", "No incidents.", class_="soft"), class_="recent")
    rows = (incident_row(one, now) for one in found[:_NEW])
    more = html_tag("p", html_tag("a", "all incidents", href=f"{CONSOLE_PATH}/incidents"))
    return html_tag("section", title, html_tag("ul", *rows, class_="incidents"), more, class_="recent")


def day_strips(board: ReportBoard, only: str) -> Html:
    """The last day of each deployment, of four at most; made once in a while for all who watch.

    With several, what a mouse points at is left out, so that the page stays small: their tables have it.
    """
    now = board.now()
    made, found = board.past.get(only, (0.0, EMPTY))
    if abs(now - made) >= _MADE_EVERY:
        watches = board.visible(only)[:_STRIPS]
        found = without_controls(
            join_html(*(day_strip(one.name, *board.day(one), now, len(watches) == 1) for one in watches))
        )
        board.past[only] = now, found
    return found


def incident_row(one: Incident, now: float) -> Html:
    """One line: which, of what, how it ended, and when."""
    end = one.outcome_text if one.is_open else f"away for {one.away_text}" if one.away_text else "closed"
    what = shortened("; ".join(filter(None, (one.what, one.cause))), 160)
    link = html_tag(
        "a", f"{one.number}", href=f"{CONSOLE_PATH}/incidents/{one.number}", aria_label=f"incident {one.number}"
    )
    simulated = " (simulated)" if one.simulated else ""
    about = html_tag(
        "span", html_tag("span", f"{one.deployment}: ", class_="soft"), f"{what}{simulated}", class_="text"
    )
    ended = html_tag("span", end, class_=f"end {'bad' if one.is_open else ''}".strip())
    return html_tag("li", link, about, ended, html_tag("span", time_ago(one.opened_at, now), class_="soft"))
