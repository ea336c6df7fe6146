"""The report's page in a real browser: what it draws is what the store holds, and it bothers nobody."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import runs
from functional.report.browser import PHONE, BrowserPage
from functional.report.conftest import ShownReport, make_report
from patience import wait_until
from sparkwright.domain.summary import LevelSummary

EVIL = "</script><img src=x onerror='document.title=\"taken\"'>"


def find_level(found: ShownReport, name: str, part: str = "") -> LevelSummary:
    return next(one for one in found.summaries[0].levels if (one.plan.name, one.part) == (name, part))


def expected(one: LevelSummary, x: float, metric: str, statistic: str = "median") -> list[float]:
    found = one.metrics[metric]
    interval = getattr(found, statistic)
    return [x, interval.value, interval.low, interval.high, found.count]


@pytest.mark.full
def test_plots_show_what_the_store_holds(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """Every point of the curves against depth, users and turn: value, interval and count, to the last digit."""
    browser_page.show(one_run.path)
    for metric in ("decode", "prefill", "ttft"):
        points = browser_page.plot(f"{metric}-depth", "values")[0]["points"]
        assert points == [expected(find_level(one_run, f"d{depth}"), depth, metric) for depth in runs.DEPTHS]
    median, p99 = browser_page.plot("ttft-concurrency", "values")
    wanted = [(find_level(one_run, f"{users} users"), users) for users in runs.USERS]
    assert median["points"] == [expected(each, users, "ttft") for each, users in wanted]
    assert p99["points"] == [expected(each, users, "ttft", "p99") for each, users in wanted]
    for curve, name in zip(browser_page.plot("ttft-turn", "values"), ("1 agent", "1 agent, cold"), strict=True):
        turns = range(1, runs.TURNS + 1)
        assert curve["points"] == [expected(find_level(one_run, name, f"turn {turn}"), turn, "ttft") for turn in turns]


@pytest.mark.full
def test_the_library_draws_those_values(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """The drawn values are the given ones in order, nothing between and nothing left out; intervals are inside the
    axis."""
    browser_page.show(one_run.path)
    drawn = browser_page.plot("decode-depth", "drawn")
    medians = [find_level(one_run, f"d{depth}").metrics["decode"].median for depth in runs.DEPTHS]
    assert drawn["xs"] == list(runs.DEPTHS) and drawn["columns"] == [[one.value for one in medians]]
    assert drawn["y"][0] == 0 and drawn["y"][1] >= max(one.high for one in medians)


def test_the_timeline_is_that_of_the_request(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """The slowest of a level, chosen by the viewer: its first token and its last, and its total."""
    browser_page.show(one_run.path)
    run = one_run.summaries[0].run
    first = next(each for each in run.levels if each.plan.name == "d4096")
    slowest = max(first.rows, key=lambda row: row.reads.at[0])
    index = browser_page.script(
        "return window.sparkwright.data.timelines.findIndex(t => t.level === 'd4096' && t.label.startsWith('slowest'))"
    )
    browser_page.script(
        "const s = document.getElementById('timeline-request'); s.value = String(arguments[0]);"
        "s.dispatchEvent(new Event('change'))",
        index,
    )
    points = browser_page.plot("timeline", "values")[0]["points"]
    assert points[0] == [0, 0] and points[1][0] == pytest.approx(slowest.reads.at[0], abs=1e-4)
    assert points[-1] == [pytest.approx(slowest.reads.at[-1], abs=1e-4), 128]


def test_nothing_leaves_the_page(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """One request: the file itself. And its own policy finds nothing to complain of."""
    browser_page.show(one_run.path)
    for _ in range(3):  # through all themes and back
        browser_page.script("document.getElementById('theme').click()")
    assert [url for url in browser_page.requests if not url.startswith("data:")] == [one_run.path.as_uri()]
    assert browser_page.script("return performance.getEntriesByType('resource').length") == 0
    assert browser_page.complaints == []


def test_the_policy_stops_what_would_leave(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """A script of the page that tried to call home would be refused by the browser."""
    browser_page.show(one_run.path)
    assert (
        browser_page.script(
            "return new Promise(done => { const i = new Image(); i.onload = () => done('went out');"
            "i.onerror = () => done('refused'); i.src = 'http://127.0.0.1:9/x.png'; })"
        )
        == "refused"
    )
    assert any("Content Security Policy" in line for line in browser_page.complaints)


def test_dragging_zooms_and_a_double_click_shows_all(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """Dragging shows the second to the fourth depth; the rest is out of sight until it is asked for."""
    browser_page.show(one_run.path)
    box = browser_page.over("decode-depth")
    whole = browser_page.plot("decode-depth", "drawn")
    at = [browser_page.script(_POSITION, "decode-depth", n) for n in range(len(runs.DEPTHS))]
    y = box["top"] + box["height"] / 2
    browser_page.mouse("mousePressed", box["left"] + at[1] - 9, y)
    browser_page.mouse("mouseMoved", box["left"] + at[2], y)
    browser_page.mouse("mouseMoved", box["left"] + at[3] + 9, y)
    browser_page.mouse("mouseReleased", box["left"] + at[3] + 9, y)
    zoomed = browser_page.plot("decode-depth", "drawn")
    assert zoomed["xs"] == list(runs.DEPTHS[1:4])
    assert browser_page.script("return [...document.querySelectorAll('button')].some(b => b.innerText === 'Show all')")
    browser_page.script(
        "window.sparkwright.plots.get('decode-depth').chart.over.dispatchEvent(new MouseEvent('dblclick'))"
    )
    assert browser_page.plot("decode-depth", "drawn")["x"] == whole["x"]


_POSITION = "const f = window.sparkwright.plots.get(arguments[0]); return f.chart.valToPos(f.at[arguments[1]], 'x')"


def test_the_mouse_shows_values(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """Value, interval and count of what is under it."""
    browser_page.show(one_run.path)
    box = browser_page.over("decode-depth")
    x = browser_page.script(_POSITION, "decode-depth", 1)
    browser_page.mouse("mouseMoved", box["left"] + x, box["top"] + 60)
    tip = "return window.sparkwright.plots.get('decode-depth').tip.innerText"
    wait_until(lambda: browser_page.script(tip), "the tip, which comes with the browser's next frame")
    text = browser_page.script(tip)
    found = find_level(one_run, "d4096").metrics["decode"]
    assert "4K tokens" in text and f"{found.median.value:.1f} tokens/s" in text and f"n = {found.count}" in text


def test_keys_reach_every_value(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """Arrows go from value to value, plus zooms, zero shows all: no mouse is needed."""
    browser_page.show(one_run.path)
    browser_page.script("document.getElementById('plot-decode-depth').focus()")
    said = []
    for _ in range(2):
        browser_page.press("ArrowRight")
        said.append(browser_page.script("return window.sparkwright.plots.get('decode-depth').live.textContent"))
    assert said[0].startswith("0 tokens") and said[1].startswith("4K tokens")
    whole = browser_page.plot("decode-depth", "drawn")["x"]
    browser_page.press("+")
    near = browser_page.plot("decode-depth", "drawn")["x"]
    assert near[1] - near[0] < whole[1] - whole[0]
    browser_page.press("0")
    assert browser_page.plot("decode-depth", "drawn")["x"] == whole


def test_a_finger_zooms_and_taps(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """Sideways drag zooms, a tap shows values, two taps show all."""
    browser_page.show(one_run.path, PHONE)
    box = browser_page.over("ttft-turn")
    y = box["top"] + box["height"] / 2
    whole = browser_page.plot("ttft-turn", "drawn")["xs"]
    browser_page.finger("touchStart", box["left"] + box["width"] * 0.2, y)
    for share in (0.3, 0.4, 0.5, 0.6):
        browser_page.finger("touchMove", box["left"] + box["width"] * share, y)
    browser_page.finger("touchEnd")
    seen = browser_page.plot("ttft-turn", "drawn")["xs"]
    assert len(whole) == 10 and 2 < len(seen) < 7
    now = time.time()
    for tap in (now, now + 0.1):  # however long the browser takes for the first one
        browser_page.finger("touchStart", box["left"] + box["width"] / 2, y, when=tap)
        browser_page.finger("touchEnd", when=tap + 0.05)
    assert browser_page.plot("ttft-turn", "drawn")["xs"] == whole
    assert "cold" in browser_page.script("return window.sparkwright.plots.get('ttft-turn').tip.textContent")


@pytest.mark.parametrize("which", ["one_run", "two_runs"])
def test_a_phone_scrolls_in_one_direction_only(
    browser_page: BrowserPage, which: str, request: pytest.FixtureRequest
) -> None:
    """Nothing is wider than a screen of 360 pixels; wide tables scroll inside of themselves."""
    browser_page.show(request.getfixturevalue(which).path, PHONE)
    assert browser_page.script("return [document.documentElement.scrollWidth, innerWidth]") == [360, 360]
    width = browser_page.script(
        "return Math.max(...[...document.querySelectorAll('.plot canvas')].map(c => c.clientWidth))"
    )
    assert 250 < width <= 328


def test_dark_is_dark_by_the_system_and_by_the_button(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """Paper and ink change places, in the plots too, and the choice stays."""
    paper = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert max(browser_page.show(one_run.path, theme="dark").script(paper)) < 60
    assert min(browser_page.show(one_run.path, theme="light").script(paper)) > 230
    light = browser_page.script("return window.sparkwright.plots.get('decode-depth').looks[0].colour")
    for _ in range(2):
        browser_page.script("document.getElementById('theme').click()")
    assert max(browser_page.script(paper)) < 60
    assert browser_page.script("return window.sparkwright.plots.get('decode-depth').looks[0].colour") != light
    until = time.monotonic() + 10  # the browser writes the choice down when it finds time
    while max(browser_page.show(one_run.path, theme="light").script(paper)) > 60:
        assert time.monotonic() < until
    browser_page.script("localStorage.clear()")


def test_paper_is_white_and_wide_enough(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """Printed from a dark screen, on A4: dark ink, and no table runs off the sheet."""
    browser_page.show(one_run.path, (794, 1123), theme="dark")
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser_page.call("Emulation.setEmulatedMedia", media="print", features=[dark])
    browser_page.script("dispatchEvent(new Event('beforeprint'))")
    assert browser_page.script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser_page.script("return document.documentElement.scrollWidth") <= 794


@pytest.mark.full
def test_runs_are_laid_over_each_other(browser_page: BrowserPage, two_runs: ShownReport) -> None:
    """Both engines on one plot, distinguished by letter, and the verdict as text."""
    browser_page.show(two_runs.path)
    values = browser_page.plot("decode-depth", "values")
    assert [curve["run"] for curve in values] == [0, 1]
    for curve, summary in zip(values, two_runs.summaries, strict=True):
        medians = [one.metrics["decode"].median.value for one in summary.levels if one.plan.name in ("d0", "d4096")]
        assert [point[1] for point in curve["points"]] == medians
    text = browser_page.script("return document.body.innerText")
    assert "worse" in text and "sglang 0.5.23" in text and "A: At turn 4" in text and "B: At turn 4" in text


@pytest.mark.full
def test_a_hostile_name_is_only_a_name(browser_page: BrowserPage, tmp_path: Path) -> None:
    """Shown as it is written; nothing of it runs, nothing of it becomes an element."""
    plans = [replace(plan, name=f"{plan.name} {EVIL}") for plan in runs.depth_plans((0, 4096))]
    found = make_report(tmp_path, [runs.run(plans, model=EVIL, engine=EVIL, endpoint=EVIL, nodes=(EVIL,))])
    browser_page.show(found.path)
    assert EVIL in browser_page.script("return document.querySelector('h1').innerText")
    assert browser_page.script("return document.querySelectorAll('img').length") == 0
    assert browser_page.script("return document.title").startswith("</script>") and browser_page.complaints == []
    assert browser_page.script("return document.querySelector('optgroup').label").endswith(EVIL)


def test_without_javascript_the_figures_are_there(browser_page: BrowserPage, one_run: ShownReport) -> None:
    """Headlines, the sentence on turn 10 and all tables are text."""
    path = one_run.path.with_name("plain.html")
    head, _, _ = one_run.path.read_text(encoding="utf-8").partition('<script type="application/json"')
    path.write_text(head, encoding="utf-8")
    text = browser_page.show(path).script("return document.body.innerText")
    for wanted in ("SIMULATED", "At turn 10", "Turn by turn", "Conditions", "5f1c09a4d2e7"):
        assert wanted in text


def test_a_common_page_is_small(one_run: ShownReport) -> None:
    """It goes by mail and opens on a phone."""
    assert one_run.path.stat().st_size < 400_000
