"""The first page: each deployment at one look. Rendered once for all who watch."""

from collections.abc import Iterator, Sequence

from sparkwright.console import usage
from sparkwright.console.board import Board, Watch
from sparkwright.console.charts import bar, sparkline
from sparkwright.console.figures import UNKNOWN, ago, clean, clock, kind_of, number, percent, short, state_text, unit
from sparkwright.domain.incident import Incident
from sparkwright.domain.live import STALE, DeploymentState, Live, LiveEngine, LiveNode, LiveRank
from sparkwright.domain.units import GIB, duration, gib
from sparkwright.engines.engine import served_name
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.gateway.decide import refusal_text, waits
from sparkwright.report.markup import Html, join, tag
from sparkwright.supervision.rates import SPAN, Rate

_NEW = 3
_STARTS = (DeploymentState.STARTING, DeploymentState.LOADING, DeploymentState.STAGING)


def overview(board: Board, only: str) -> Html:
    """The live part of the page, for a key that opens one deployment or all."""
    watches = board.visible(only)
    if not watches:
        return tag("p", "Nothing is supervised on this head node.", class_="empty")
    incidents = board.incidents(only)
    used = tag("section", usage.today(board.used(only)), aria_label="Used today")
    return clean(join(*(_deployment(watch, incidents, board) for watch in watches), used))


def _deployment(watch: Watch, incidents: Sequence[Incident], board: Board) -> Html:
    now = board.now()
    stale, live = watch.stale(now), watch.live
    mine = [one for one in incidents if one.deployment == watch.name][:_NEW]
    parts = [_hero(watch, live, stale, now)]
    if watch.name in board.notes:
        parts.append(tag("p", short(board.notes[watch.name]), class_="noted", role="status"))
    if live:
        parts += [_troubles(live, stale), _starting(live, now), _figures(watch, live, stale, now), _nodes(live, now)]
    parts.append(_incidents(watch.name, mine, now))
    body = join(*(part for part in parts if part))
    return tag("section", body, class_="deployment", id=f"d-{watch.name}", aria_labelledby=f"h-{watch.name}")


def _hero(watch: Watch, live: Live | None, stale: str, now: float) -> Html:
    kind = kind_of(live, bool(stale))
    name = tag("h1", watch.name, id=f"h-{watch.name}")
    pill = tag("span", tag("span", "", class_="dot", aria_hidden="true"), state_text(live, bool(stale)), class_="state")
    marks = [tag("span", "simulated", class_="mark")] if live and live.simulated else []
    says = tag("p", _says(watch, live, stale, now), class_="says")
    return tag("div", tag("div", name, pill, *marks, class_="title"), says, _what(watch), class_=f"hero {kind}")


def _says(watch: Watch, live: Live | None, stale: str, now: float) -> str:
    """Is it well; if not, why and until when."""
    if live is None or stale:
        last = f" Its last report, from {ago(live.at, now)}, is shown below." if live else ""
        return f"What it does now is unknown: {stale}.{last}"
    lasts = duration(max(now - live.since, 0.0))
    if live.phase is DeploymentState.READY and not live.refusing:
        return f"Serves, and has been {live.phase} for {lasts}.{_probe(live, now)}"
    if live.refusing or live.phase not in (DeploymentState.READY, DeploymentState.DEGRADED):
        return short(refusal_text(live, now))
    wait = waits(live, now)
    return short(f"Serves, but is {live.phase} for {lasts}{f'; {wait}' if wait else ''}.{_probe(live, now)}")


def _probe(live: Live, now: float) -> str:
    if live.canary is None:
        return ""
    if live.canary.seconds is None:
        return f" The last probe request, {ago(live.canary.at, now)}, got no token: {live.canary.said}"
    kind = "simulated" if live.simulated else "real"
    return f" Last {kind} token asked for: {ago(live.canary.at, now)}, it took {duration(live.canary.seconds)}."


def _what(watch: Watch) -> Html:
    desired = watch.desired
    rows = [("endpoint", watch.endpoint or UNKNOWN)]
    if desired:
        recipe = desired.recipe
        rows = [
            ("model", short(served_name(recipe), 120)),
            ("engine", f"{recipe.engine.name} {recipe.engine.version}"),
            ("recipe", recipe.label),
            *rows,
        ]
    cells = (tag("div", tag("dt", name), tag("dd", value)) for name, value in rows)
    return tag("dl", *cells, class_="what")


def _troubles(live: Live, stale: str) -> Html:
    """Sentences about what is wrong and does not stop it from serving."""
    said = [short(sentence) for _, sentence in live.troubles]
    said += [short(live.reason)] if live.reason and live.reason not in said and not live.refusing else []
    said += [short(live.quiet)] if live.quiet else []
    if not said or stale:
        return Html()
    return tag("ul", *(tag("li", sentence) for sentence in said), class_="troubles")


def _starting(live: Live, now: float) -> Html:
    """How far the ranks are, while they start."""
    if live.phase not in _STARTS:
        return Html()
    rows = [_loading(rank) for rank in live.ranks]
    usual = f", a start usually takes {duration(live.usual)}" if live.usual else ""
    title = f"Starting for {duration(max(now - live.since, 0.0))}{usual}"
    return tag("div", tag("h2", title), *rows, class_="starting")


def _loading(rank: LiveRank) -> Html:
    name = f"rank {rank.rank} on {rank.node}"
    phase = rank.phase or ("no phase was reported yet" if rank.running else "not started")
    known = rank.done is not None and bool(rank.total)
    amount = f"{rank.done:g} of {rank.total:g} {rank.unit}" if known else ""
    picture = bar((rank.done or 0.0) / (rank.total or 1.0), f"{name}: {amount}") if known else Html()
    label = tag("span", tag("b", name), f" {phase} ", tag("span", short(rank.text, 120), class_="soft"))
    return tag("div", tag("div", label, tag("span", amount), class_="row"), picture, class_="rank")


def _figures(watch: Watch, live: Live, stale: str, now: float) -> Html:
    history = watch.history
    engine = _current(live, stale, now)
    rates = (history.decode, history.prefill) if engine.at else (Rate(), Rate())
    kv = engine.kv_usage
    boxes = [
        _rate("Decode", "tokens/s", rates[0], now),
        _rate("Prefill", "prompt tokens/s", rates[1], now),
        _box("Requests running", unit(number(engine.running)), _waiting(engine)),
        _box("KV cache in use", unit(percent(kv)), bar(kv, f"KV cache {percent(kv)} in use") if kv is not None else ""),
        _box("Prefix cache hits", unit(percent(history.hits.value if engine.at else None)), "of prompt tokens, 5 min"),
    ]
    if engine.draft_tokens is not None or not engine.at:
        accepted = percent(history.accepted.value if engine.at else None)
        boxes.append(_box("Draft acceptance", unit(accepted), "of drafted tokens, 5 min"))
    return tag("dl", *boxes, class_="figures")


def _current(live: Live, stale: str, now: float) -> LiveEngine:
    """Its figures, all unknown where they are not of this moment."""
    serves = live.phase in (DeploymentState.READY, DeploymentState.DEGRADED) and not stale
    known = live.engine if serves and live.engine and now - live.engine.at <= STALE else None
    return known or LiveEngine(0.0)


def _waiting(engine: LiveEngine) -> str:
    return f"{number(engine.waiting)} waiting" if engine.waiting is not None else "waiting: unknown"


def _rate(name: str, of: str, rate: Rate, now: float) -> Html:
    most = max((value for _, value in rate.points), default=0.0)
    picture = sparkline(rate.points, SPAN, now, f"{name} over 10 min, at most {number(most, 1)} {of}")
    return _box(name, unit(number(rate.value, 1), of), picture, "wide")


def _box(name: str, value: Html, below: str = "", kind: str = "") -> Html:
    rows = [tag("dt", name), tag("dd", value, class_="big"), tag("dd", below, class_="below") if below else ""]
    return tag("div", *rows, class_=f"box {kind}".strip())


def _nodes(live: Live, now: float) -> Html:
    cards = (_node(node, [rank for rank in live.ranks if rank.node == node.node], now) for node in live.nodes)
    return tag("div", tag("h2", "Nodes"), tag("div", *cards, class_="nodes"))


def _node(node: LiveNode, ranks: Sequence[LiveRank], now: float) -> Html:
    runs = "; ".join(f"rank {rank.rank} {'runs' if rank.running else 'does not run'}" for rank in ranks)
    title = tag("div", tag("h3", node.node), tag("span", runs or "no rank was seen", class_="soft"), class_="row")
    if not node.reached:
        why = f"cannot be asked now (last try {ago(node.at, now)})" if node.at else "not sampled yet"
        return tag("article", title, tag("p", why, class_="unknown"), class_="node away")
    facts = (tag("div", tag("dt", name), tag("dd", value)) for name, value in _facts(node))
    return tag("article", title, _memory(node), tag("dl", *facts, class_="facts"), class_="node")


def _memory(node: LiveNode) -> Html:
    if node.available is None or not node.total:
        return tag("p", "memory: ", tag("span", UNKNOWN, class_="unknown"), class_="memory")
    used = 1 - node.available / node.total
    floor = 1 - node.floor / node.total if node.floor else None
    low = bool(node.floor and node.available < 1.25 * node.floor)
    said = f"{gib(node.available)} available of {gib(node.total)}"
    limit = f"floor {gib(node.floor)}" if node.floor else "floor unknown"
    row = tag("div", tag("span", said), tag("span", limit, class_="soft"), class_="row")
    picture = bar(used, f"{node.node}: {said}, {limit}", floor, "low" if low else "")
    return tag("div", row, picture, tag("p", _trend(node), class_="soft"), class_="memory")


def _trend(node: LiveNode) -> str:
    if node.per_hour is None:
        return "time left: unknown"
    if node.time_left is None:
        return "does not shrink"
    return f"shrinks by {abs(node.per_hour) / GIB:.1f} GiB/h: {duration(node.time_left)} until its floor"


def _facts(node: LiveNode) -> Iterator[tuple[str, Html]]:
    yield "GPU", unit(number(node.gpu_busy), "%")
    yield "temperature", unit(number(node.gpu_temperature), "°C")
    yield "power", unit(number(node.gpu_power), "W")
    yield "clock", unit(number(node.gpu_clock), "MHz")
    yield "swap", unit(UNKNOWN if node.swap_used is None else gib(node.swap_used))
    yield "pressure", unit(number(node.pressure, 1), "%")


def _incidents(name: str, found: Sequence[Incident], now: float) -> Html:
    title = tag("h2", "Incidents")
    if not found:
        return tag("div", title, tag("p", "none is remembered", class_="soft"), class_="recent")
    rows = (incident_row(one, now) for one in found)
    more = tag("a", "all incidents", href=f"{CONSOLE_PATH}/incidents")
    return tag("div", title, tag("ul", *rows, class_="incidents"), tag("p", more), class_="recent")


def incident_row(one: Incident, now: float) -> Html:
    """One line: when, what, and how it ended."""
    end = "open" if one.is_open else f"away for {duration(one.away)}" if one.away is not None else "closed"
    what = short(one.cause or one.what, 160)
    link = tag("a", f"{one.number}", href=f"{CONSOLE_PATH}/incidents/{one.number}", aria_label=f"incident {one.number}")
    simulated = " (simulated)" if one.simulated else ""
    return tag(
        "li",
        link,
        tag("span", f"{what}{simulated}", class_="text"),
        tag("span", end, class_=f"end {'bad' if one.is_open else ''}".strip()),
        tag("span", clock(one.opened_at), class_="soft"),
    )
