"""Figures, times and states as the console shows them; a value that is not known reads `unknown`."""

from datetime import UTC, datetime

from sparkwright.domain import units
from sparkwright.domain.live import DeploymentState, Live, phase_text
from sparkwright.domain.printable import printable
from sparkwright.domain.units import duration, grouped
from sparkwright.report.markup import Html, html_tag, join_html

UNKNOWN = "unknown"
_LONG = 400
_KINDS = {
    DeploymentState.READY: "good",
    DeploymentState.DEGRADED: "doubt",
    DeploymentState.FAILED: "bad",
    DeploymentState.NEEDS_REBOOT: "bad",
    DeploymentState.NEEDS_POWER_CYCLE: "bad",
    DeploymentState.STOPPED: "off",
    DeploymentState.ON_DEMAND: "off",
    DeploymentState.HALTED: "off",
}


def kind_of(live: Live | None, stale: bool) -> str:
    """good, busy, doubt, bad, or off for what is not known."""
    return "off" if live is None or stale else _KINDS.get(live.phase, "busy")


def state_text(live: Live | None, stale: bool) -> str:
    return UNKNOWN if live is None or stale else phase_text(live.phase)


def number(value: float | None, digits: int = 0) -> str:
    """`1,234`; one decimal below ten where `digits` allows it."""
    return UNKNOWN if value is None else grouped(value, digits)


def percent(part: float | None) -> str:
    return UNKNOWN if part is None else units.percent(part, fine=True)


def with_unit(text: str, of: str = "") -> Html:
    """A figure with its unit; `unknown` has a style of its own."""
    if text == UNKNOWN:
        return html_tag("span", UNKNOWN, class_="unknown")
    return html_tag(
        "span", html_tag("span", text, class_="value"), html_tag("span", f" {of}", class_="unit") if of else ""
    )


def time_element(at: float) -> Html:
    """A moment in UTC, with its day."""
    moment = datetime.fromtimestamp(at, UTC)
    return html_tag("time", moment.strftime("%Y-%m-%d %H:%M:%S UTC"), datetime=moment.isoformat(timespec="seconds"))


def time_ago(at: float, now: float) -> str:
    return f"{lasting(now - at)} ago"


def lasting(seconds: float) -> str:
    """The duration, with days from two days on."""
    days, rest = divmod(max(seconds, 0.0), 86400.0)
    return f"{days:.0f} days {rest // 3600:.0f} h" if days >= 2 else duration(max(seconds, 0.0))


def without_controls(page: Html) -> Html:
    """The page without characters that control a screen or reverse text."""
    return Html(printable(page))


def with_code(text: str) -> Html:
    """A sentence from outside; what is between backticks is code."""
    parts = shortened(text).split("`")
    return join_html(*(html_tag("code", part) if place % 2 else part for place, part in enumerate(parts)))


def shortened(text: str, most: int = _LONG) -> str:
    """Text from outside, bounded."""
    return text if len(text) <= most else f"{text[:most]} …"
