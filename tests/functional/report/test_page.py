"""The report's page in a real browser: what it draws is what the store holds, and it bothers nobody."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import runs
from functional.report.browser import PHONE, Page
from functional.report.conftest import Shown, shown
from sparkwright.domain.summary import LevelSummary

EVIL = "</script><img src=x onerror='document.title=\"taken\"'>"


def level(found: Shown, name: str, part: str = "") -> LevelSummary:
    return next(one for one in found.summaries[0].levels if (one.plan.name, one.part) == (name, part))


def expected(one: LevelSummary, x: float, metric: str, statistic: str = "median") -> list[float]:
    found = one.metrics[metric]
    interval = getattr(found, statistic)
    return [x, interval.value, interval.low, interval.high, found.count]


@pytest.mark.full
def test_plots_show_what_the_store_holds(page: Page, one: Shown) -> None:
    """Every point of the curves against depth, users and turn: value, interval and count, to the last digit."""
    page.show(one.path)
    for metric in ("decode", "prefill", "ttft"):
        points = page.plot(f"{metric}-depth", "values")[0]["points"]
        assert points == [expected(level(one, f"d{depth}"), depth, metric) for depth in runs.DEPTHS]
    median, p99 = page.plot("ttft-concurrency", "values")
    wanted = [(level(one, f"{users} users"), users) for users in runs.USERS]
    assert median["points"] == [expected(each, users, "ttft") for each, users in wanted]
    assert p99["points"] == [expected(each, users, "ttft", "p99") for each, users in wanted]
    for curve, name in zip(page.plot("ttft-turn", "values"), ("1 agent", "1 agent, cold"), strict=True):
        turns = range(1, runs.TURNS + 1)
        assert curve["points"] == [expected(level(one, name, f"turn {turn}"), turn, "ttft") for turn in turns]


@pytest.mark.full
def test_the_library_draws_those_values(page: Page, one: Shown) -> None:
    """The drawn values are the given ones in order, nothing between and nothing left out; intervals are inside the
    axis."""
    page.show(one.path)
    drawn = page.plot("decode-depth", "drawn")
    medians = [level(one, f"d{depth}").metrics["decode"].median for depth in runs.DEPTHS]
    assert drawn["xs"] == list(runs.DEPTHS) and drawn["columns"] == [[one.value for one in medians]]
    assert drawn["y"][0] == 0 and drawn["y"][1] >= max(one.high for one in medians)


def test_the_timeline_is_that_of_the_request(page: Page, one: Shown) -> None:
    """The slowest of a level, chosen by the viewer: its first token and its last, and its total."""
    page.show(one.path)
    run = one.summaries[0].run
    first = next(each for each in run.levels if each.plan.name == "d4096")
    slowest = max(first.rows, key=lambda row: row.reads.at[0])
    index = page.script(
        "return window.sparkwright.data.timelines.findIndex(t => t.level === 'd4096' && t.label.startsWith('slowest'))"
    )
    page.script(
        "const s = document.getElementById('timeline-request'); s.value = String(arguments[0]);"
        "s.dispatchEvent(new Event('change'))",
        index,
    )
    points = page.plot("timeline", "values")[0]["points"]
    assert points[0] == [0, 0] and points[1][0] == pytest.approx(slowest.reads.at[0], abs=1e-4)
    assert points[-1] == [pytest.approx(slowest.reads.at[-1], abs=1e-4), 128]


def test_nothing_leaves_the_page(page: Page, one: Shown) -> None:
    """One request: the file itself. And its own policy finds nothing to complain of."""
    page.show(one.path)
    for _ in range(3):  # through all themes and back
        page.script("document.getElementById('theme').click()")
    assert [url for url in page.requests if not url.startswith("data:")] == [one.path.as_uri()]
    assert page.script("return performance.getEntriesByType('resource').length") == 0
    assert page.complaints == []


def test_the_policy_stops_what_would_leave(page: Page, one: Shown) -> None:
    """A script of the page that tried to call home would be refused by the browser."""
    page.show(one.path)
    assert (
        page.script(
            "return new Promise(done => { const i = new Image(); i.onload = () => done('went out');"
            "i.onerror = () => done('refused'); i.src = 'http://127.0.0.1:9/x.png'; })"
        )
        == "refused"
    )
    assert any("Content Security Policy" in line for line in page.complaints)


def test_dragging_zooms_and_a_double_click_shows_all(page: Page, one: Shown) -> None:
    """Dragging shows the second to the fourth depth; the rest is out of sight until it is asked for."""
    page.show(one.path)
    box = page.over("decode-depth")
    whole = page.plot("decode-depth", "drawn")
    at = [page.script(_POSITION, "decode-depth", n) for n in range(len(runs.DEPTHS))]
    y = box["top"] + box["height"] / 2
    page.mouse("mousePressed", box["left"] + at[1] - 9, y)
    page.mouse("mouseMoved", box["left"] + at[2], y)
    page.mouse("mouseMoved", box["left"] + at[3] + 9, y)
    page.mouse("mouseReleased", box["left"] + at[3] + 9, y)
    zoomed = page.plot("decode-depth", "drawn")
    assert zoomed["xs"] == list(runs.DEPTHS[1:4])
    assert page.script("return [...document.querySelectorAll('button')].some(b => b.innerText === 'Show all')")
    page.script("window.sparkwright.plots.get('decode-depth').chart.over.dispatchEvent(new MouseEvent('dblclick'))")
    assert page.plot("decode-depth", "drawn")["x"] == whole["x"]


_POSITION = "const f = window.sparkwright.plots.get(arguments[0]); return f.chart.valToPos(f.at[arguments[1]], 'x')"


def test_the_mouse_shows_values(page: Page, one: Shown) -> None:
    """Value, interval and count of what is under it."""
    page.show(one.path)
    box = page.over("decode-depth")
    x = page.script(_POSITION, "decode-depth", 1)
    page.mouse("mouseMoved", box["left"] + x, box["top"] + 60)
    time.sleep(0.1)  # the browser's next frame
    text = page.script("return window.sparkwright.plots.get('decode-depth').tip.innerText")
    found = level(one, "d4096").metrics["decode"]
    assert "4K tokens" in text and f"{found.median.value:.1f} tokens/s" in text and f"n = {found.count}" in text


def test_keys_reach_every_value(page: Page, one: Shown) -> None:
    """Arrows go from value to value, plus zooms, zero shows all: no mouse is needed."""
    page.show(one.path)
    page.script("document.getElementById('plot-decode-depth').focus()")
    said = []
    for _ in range(2):
        page.press("ArrowRight")
        said.append(page.script("return window.sparkwright.plots.get('decode-depth').live.textContent"))
    assert said[0].startswith("0 tokens") and said[1].startswith("4K tokens")
    whole = page.plot("decode-depth", "drawn")["x"]
    page.press("+")
    near = page.plot("decode-depth", "drawn")["x"]
    assert near[1] - near[0] < whole[1] - whole[0]
    page.press("0")
    assert page.plot("decode-depth", "drawn")["x"] == whole


def test_a_finger_zooms_and_taps(page: Page, one: Shown) -> None:
    """Sideways drag zooms, a tap shows values, two taps show all."""
    page.show(one.path, PHONE)
    box = page.over("ttft-turn")
    y = box["top"] + box["height"] / 2
    whole = page.plot("ttft-turn", "drawn")["xs"]
    page.finger("touchStart", box["left"] + box["width"] * 0.2, y)
    for share in (0.3, 0.4, 0.5, 0.6):
        page.finger("touchMove", box["left"] + box["width"] * share, y)
    page.finger("touchEnd")
    seen = page.plot("ttft-turn", "drawn")["xs"]
    assert len(whole) == 10 and 2 < len(seen) < 7
    for _ in range(2):
        page.finger("touchStart", box["left"] + box["width"] / 2, y)
        page.finger("touchEnd")
    assert page.plot("ttft-turn", "drawn")["xs"] == whole
    assert "cold" in page.script("return window.sparkwright.plots.get('ttft-turn').tip.textContent")


@pytest.mark.parametrize("which", ["one", "two"])
def test_a_phone_scrolls_in_one_direction_only(page: Page, which: str, request: pytest.FixtureRequest) -> None:
    """Nothing is wider than a screen of 360 pixels; wide tables scroll inside of themselves."""
    page.show(request.getfixturevalue(which).path, PHONE)
    assert page.script("return [document.documentElement.scrollWidth, innerWidth]") == [360, 360]
    width = page.script("return Math.max(...[...document.querySelectorAll('.plot canvas')].map(c => c.clientWidth))")
    assert 250 < width <= 328


def test_dark_is_dark_by_the_system_and_by_the_button(page: Page, one: Shown) -> None:
    """Paper and ink change places, in the plots too, and the choice stays."""
    paper = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert max(page.show(one.path, theme="dark").script(paper)) < 60
    assert min(page.show(one.path, theme="light").script(paper)) > 230
    light = page.script("return window.sparkwright.plots.get('decode-depth').looks[0].colour")
    for _ in range(2):
        page.script("document.getElementById('theme').click()")
    assert max(page.script(paper)) < 60
    assert page.script("return window.sparkwright.plots.get('decode-depth').looks[0].colour") != light
    until = time.monotonic() + 10  # the browser writes the choice down when it finds time
    while max(page.show(one.path, theme="light").script(paper)) > 60:
        assert time.monotonic() < until
    page.script("localStorage.clear()")


def test_paper_is_white_and_wide_enough(page: Page, one: Shown) -> None:
    """Printed from a dark screen, on A4: dark ink, and no table runs off the sheet."""
    page.show(one.path, (794, 1123), theme="dark")
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    page.call("Emulation.setEmulatedMedia", media="print", features=[dark])
    page.script("dispatchEvent(new Event('beforeprint'))")
    assert page.script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.script("return document.documentElement.scrollWidth") <= 794


@pytest.mark.full
def test_runs_are_laid_over_each_other(page: Page, two: Shown) -> None:
    """Both engines on one plot, distinguished by letter, and the verdict as text."""
    page.show(two.path)
    values = page.plot("decode-depth", "values")
    assert [curve["run"] for curve in values] == [0, 1]
    for curve, summary in zip(values, two.summaries, strict=True):
        medians = [one.metrics["decode"].median.value for one in summary.levels if one.plan.name in ("d0", "d4096")]
        assert [point[1] for point in curve["points"]] == medians
    text = page.script("return document.body.innerText")
    assert "worse" in text and "sglang 0.5.23" in text and "A: At turn 4" in text and "B: At turn 4" in text


@pytest.mark.full
def test_a_hostile_name_is_only_a_name(page: Page, tmp_path: Path) -> None:
    """Shown as it is written; nothing of it runs, nothing of it becomes an element."""
    plans = [replace(plan, name=f"{plan.name} {EVIL}") for plan in runs.depth_plans((0, 4096))]
    found = shown(tmp_path, [runs.run(plans, model=EVIL, engine=EVIL, endpoint=EVIL, nodes=(EVIL,))])
    page.show(found.path)
    assert EVIL in page.script("return document.querySelector('h1').innerText")
    assert page.script("return document.querySelectorAll('img').length") == 0
    assert page.script("return document.title").startswith("</script>") and page.complaints == []
    assert page.script("return document.querySelector('optgroup').label").endswith(EVIL)


def test_without_javascript_the_figures_are_there(page: Page, one: Shown) -> None:
    """Headlines, the sentence on turn 10 and all tables are text."""
    path = one.path.with_name("plain.html")
    head, _, _ = one.path.read_text(encoding="utf-8").partition('<script type="application/json"')
    path.write_text(head, encoding="utf-8")
    text = page.show(path).script("return document.body.innerText")
    for wanted in ("SIMULATED", "At turn 10", "Turn by turn", "Conditions", "5f1c09a4d2e7"):
        assert wanted in text


def test_a_common_page_is_small(one: Shown) -> None:
    """It goes by mail and opens on a phone."""
    assert one.path.stat().st_size < 400_000
