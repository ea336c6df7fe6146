"""The machines: memory with its floor and the time left, temperatures, watts, clocks. Each is shown once."""

from collections.abc import Collection, Iterator, Sequence

from sparkwright.console.board import DeploymentWatch
from sparkwright.console.charts import bar_picture
from sparkwright.console.figures import UNKNOWN, number, time_ago, with_unit
from sparkwright.domain.live import STALE, LiveNode, LiveRank
from sparkwright.domain.units import GIB, duration, gib
from sparkwright.report.markup import Html, html_tag

Runs = tuple[str, LiveRank]  # of which deployment
_FLOOR, _LEFT = "floor", "time left"


def section(watches: Sequence[DeploymentWatch], now: float) -> Html:
    """The nodes in the newest report of any supervisor."""
    lives = [watch.live for watch in watches if watch.live]
    if not any(live.nodes for live in lives):
        return Html()
    newest: dict[str, LiveNode] = {}
    for node in (node for live in lives for node in live.nodes):
        known = newest.setdefault(node.node, node)
        newest[node.node] = max(known, node, key=lambda one: (one.reached, now - one.at < STALE, one.floor > 0, one.at))
    runs = [(live.deployment if len(lives) > 1 else "", rank) for live in lives for rank in live.ranks]
    told = {name for node in newest.values() if node.reached for name in _known(node)}
    cards = (_node(node, [one for one in runs if one[1].node == node.node], now, told) for node in newest.values())
    return html_tag("section", html_tag("h2", "Nodes"), html_tag("div", *cards, class_="nodes"))


def _node(node: LiveNode, ranks: Sequence[Runs], now: float, told: Collection[str]) -> Html:
    """told: what is known of any node; the rest is not shown."""
    runs = "; ".join(f"{of} rank {r.rank} {'runs' if r.running else 'does not run'}".strip() for of, r in ranks)
    title = html_tag(
        "div", html_tag("h3", node.node), html_tag("span", runs or "no rank was seen", class_="soft"), class_="row"
    )
    if not node.reached:
        why = f"cannot be asked now (last try {time_ago(node.at, now)})" if node.at else "not sampled yet"
        return html_tag("article", title, html_tag("p", why, class_="unknown"), class_="node away")
    known = ((name, value or with_unit(UNKNOWN)) for name, value in _facts(node) if name in told)
    facts = (html_tag("div", html_tag("dt", name), html_tag("dd", value)) for name, value in known)
    return html_tag("article", title, _memory(node, told), html_tag("dl", *facts, class_="facts"), class_="node")


def _known(node: LiveNode) -> Iterator[str]:
    yield from (name for name, value in _facts(node) if value is not None)
    yield from (name for name, known in ((_FLOOR, node.floor), (_LEFT, node.per_hour)) if known not in (None, 0))


def _memory(node: LiveNode, told: Collection[str]) -> Html:
    if node.available is None or not node.total:
        return html_tag("p", "memory: ", html_tag("span", UNKNOWN, class_="unknown"), class_="memory")
    used = 1 - node.available / node.total
    floor = 1 - node.floor / node.total if node.floor else None
    low = bool(node.floor and node.available < 1.25 * node.floor)
    taken = gib(node.total - node.available)
    said = f"{taken} used, {gib(node.available)} available of {gib(node.total)}"
    limit = f"floor {gib(node.floor)}" if node.floor else "floor unknown" if _FLOOR in told else ""
    row = html_tag("div", html_tag("span", said), html_tag("span", limit, class_="soft") if limit else "", class_="row")
    picture = bar_picture(used, f"{node.node}: {', '.join(filter(None, (said, limit)))}", floor, "low" if low else "")
    trend = html_tag("p", _trend(node), class_="soft") if _LEFT in told else ""
    needs = f"its engine printed that it needs {gib(node.claimed)}" if node.claimed else ""
    return html_tag("div", row, picture, trend, html_tag("p", needs, class_="soft") if needs else "", class_="memory")


def _trend(node: LiveNode) -> str:
    if node.per_hour is None:
        return "time left: unknown"
    if node.time_left is None:
        return "stable"
    return f"shrinks by {abs(node.per_hour) / GIB:.1f} GiB/h: {duration(node.time_left)} until its floor"


def _facts(node: LiveNode) -> Iterator[tuple[str, Html | None]]:
    yield "GPU", _figure(node.gpu_busy, "%")
    yield "temperature", _figure(node.gpu_temperature, "°C")
    yield "power", _figure(node.gpu_power, "W")
    yield "clock", _figure(node.gpu_clock, "MHz")
    yield "swap", None if node.swap_used is None else with_unit(gib(node.swap_used))
    yield "pressure", None if node.pressure is None else with_unit(number(node.pressure, 1), "%")


def _figure(value: float | None, of: str) -> Html | None:
    return None if value is None else with_unit(number(value), of)
