"""The console of a deployment that lives: in a browser, through the real gateway."""

from __future__ import annotations

import json
import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from functional.console.conftest import (
    EVIL,
    chat_status,
    is_done,
    is_true_on_page,
    operate,
    page_text,
    press_tab,
    sign_in,
    stopped,
    wait_for_text,
)
from functional.console.demo_pictures import write_day
from functional.console.desk import ConsoleCluster
from functional.report.browser import DESK, PHONE, BrowserPage
from functional.test_runs import add_runs, run_of_ten
from patience import wait_until


def test_a_rank_is_killed_and_comes_back_while_the_page_is_open(
    console_cluster: ConsoleCluster, window: BrowserPage, operator: str
) -> None:
    """Guards the whole way on one open page: ready, refused with the reason, starting, ready again, an incident."""
    page = sign_in(window, console_cluster, operator)
    page.script("document.body.dataset.same = 'page'")
    wait_for_text(page, "Up since", "spark-1", "spark-2", "simulated", "112.1 GiB available", "41 °C")
    before = console_cluster.live()
    console_cluster.kill(1)
    wait_for_text(page, "New requests get 503", "rank 1 on spark-2", "open")
    console_cluster.wait_until(
        lambda live: live.phase == "ready" and (not before or live.last_incident > before.last_incident)
    )
    wait_for_text(page, "Up since", "rank killed by an external signal", "away for")
    assert page.script("return document.body.dataset.same") == "page" and not page.complaints, page.complaints


def test_a_hostile_model_name_is_text(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards that a name which is a script is shown as its letters, and runs nowhere; no other host is asked."""
    page = sign_in(window, console_cluster, operator)
    wait_for_text(page, EVIL)
    assert page.script("return [document.title, document.images.length]") == ["Overview · sparkwright", 0]
    assert all(one.startswith((console_cluster.url(), "data:")) for one in page.requests), page.requests


@pytest.mark.full
@pytest.mark.parametrize("size, theme", [(DESK, "light"), (DESK, "dark"), (PHONE, "light")])
def test_everyone_can_read_it(
    console_cluster: ConsoleCluster, window: BrowserPage, operator: str, size: tuple[int, int], theme: str
) -> None:
    """Guards contrast, names, landmarks and structure of each page as axe-core checks them, and that nothing is cut."""
    sign_in(window, console_cluster, operator)
    paths = "logs incidents incidents/1 usage requests connect runs chat keys keys/limit?name=me stop/twin switch/twin"
    for path in ("", *paths.split(), "login"):
        page = window.open(console_cluster.url(path), size, theme)
        assert (found := page.violations()) == [], (path, found)
        assert page.overflow() <= 0, path


def test_a_phone_shows_which_page_it_is(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards the last pages of the row that scrolls: the present one is in sight, and the page does not scroll."""
    sign_in(window, console_cluster, operator)
    box = "const b = document.querySelector('header nav [aria-current]').getBoundingClientRect()"
    for path in ("", "incidents", "usage", "keys"):
        page = window.open(console_cluster.url(path), PHONE)
        left, right = page.script(f"{box}; return [b.left, b.right]")
        assert 0 <= left < right <= PHONE[0], (path, left, right)
        assert page.script("return scrollX") == 0


def test_the_keyboard_reaches_all(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards a user without a mouse: content in one step, then each action and link, and the focus survives updates."""
    page = sign_in(window, console_cluster, operator)
    stops = []
    for _ in range(18):
        press_tab(page)
        stops.append(page.script("const e = document.activeElement; return e.ariaLabel || e.textContent"))
    assert stops[0] == "Skip to content" and stops[2:4] == ["Overview", "Requests"]
    assert {"Sign out", "Restart twin", "Stop twin"} <= set(stops), stops
    page.script("document.querySelector('[aria-label=\"Stop twin\"]').focus()")
    page.script("window.since = Number(document.body.dataset.updated || 0)")
    wait_until(lambda: bool(page.script("return Number(document.body.dataset.updated) > window.since")), "an update")
    assert page.script("return document.activeElement.ariaLabel") == "Stop twin"


def test_a_page_is_small(console_cluster: ConsoleCluster, operator: str) -> None:
    """Guards a slow line: each page with style and script is below 150 kB."""
    cookie = console_cluster.signed_in(operator)
    shared = sum(len(console_cluster.get(f"assets/{name}").content) for name in ("console.css", "console.js"))
    paths = ("", "requests", "connect", "chat", "incidents", "incidents/1", "logs")
    for path in (*paths, "usage", "runs", "keys", "stop/twin"):
        assert len(console_cluster.get(path, cookie).content) + shared < 150_000, path


def test_a_browser_without_scripts(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards that state, plans and chat work there, and that the page loads itself again."""
    page = sign_in(window, console_cluster, operator)
    console_cluster.wait_until_ready()
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(console_cluster.url())
        page.script("document.body.dataset.same = 'page'")
        assert "Up since" in page_text(page) and "spark-2" in page_text(page)
        wait_until(lambda: is_true_on_page(page, "document.body.dataset.same !== 'page'"), "loaded again")
        page.open(console_cluster.url("chat"))
        page.script("document.getElementById('prompt').value = '<b>hello'; document.getElementById('chat').submit()")
        wait_until(lambda: is_true_on_page(page, "document.querySelectorAll('.turn').length == 2"), "an answer")
        assert "<b>hello" in page_text(page)
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


def test_a_chat_streams(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards the way of a prompt: through the gateway with the visitor's key, counted, its text never markup."""
    page = sign_in(window, console_cluster, operator)
    page.open(console_cluster.url("chat"))
    console_cluster.wait_until_ready()
    say = "document.getElementById('prompt').value = arguments[0]; document.getElementById('chat').requestSubmit()"
    page.script(say, EVIL)
    wait_for_text(page, EVIL, "answer tokens")
    wait_until(lambda: not page.script("return document.querySelector('#chat [type=submit]').disabled"), "it may go on")
    page.script(say, "and again")
    wait_until(lambda: page_text(page).count("answer tokens") == 2, "a second answer")
    assert page.script("return [document.title, document.images.length]") == ["Chat · sparkwright", 0]
    used = json.loads(console_cluster.run("keys", "list", "--json"))["usage"]
    assert [row["requests"] for row in used if row["key"] == "me"] and not page.complaints
    page.open(console_cluster.url("usage"))
    wait_for_text(page, "By key", "me", "answer tokens")


@pytest.mark.full
def test_a_chat_says_whether_the_engine_or_the_connection_is_silent(
    console_cluster: ConsoleCluster, window: BrowserPage, operator: str
) -> None:
    """Guards who waits: an engine that gives nothing for a while is waited for, a dead stream is called lost."""
    page = sign_in(window, console_cluster, operator)
    page.open(console_cluster.url("chat"))
    console_cluster.wait_until_ready()
    say = "document.getElementById('prompt').value = 'Hello'; document.getElementById('chat').requestSubmit()"
    supervisor, console = (console_cluster.service(one) for one in ("supervisor", "console"))
    with stopped(supervisor):  # it would start the engine again
        with stopped(*console_cluster.pids(0)):
            page.script(say)
            wait_for_text(page, "nothing has come for", "still waiting")
        wait_for_text(page, "answer tokens")
        assert "still waiting" not in page_text(page)
        wait_until(lambda: not page.script("return document.querySelector('#chat [type=submit]').disabled"), "its end")
        with stopped(*console_cluster.pids(0)), stopped(console):
            page.script(say)
            wait_for_text(page, "the connection was lost: nothing was heard for 40 s")
    assert not page.complaints, page.complaints
    page.open(console_cluster.url())
    wait_for_text(page, "Up since")  # the next test reads its report, which is old by now


def test_it_is_whole_without_a_script(console_cluster: ConsoleCluster, operator: str) -> None:
    """Guards that the state is in the page as it is sent, which then refreshes itself."""
    page = console_cluster.get("", console_cluster.signed_in(operator)).text
    assert "Up since" in page and "spark-2" in page
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in page


def test_a_revoked_key_loses_its_page(console_cluster: ConsoleCluster, window: BrowserPage) -> None:
    """Guards that an open page is emptied, and its session is nobody, once the key is revoked."""
    sign_in(window, console_cluster, key := console_cluster.key("guest", "viewer"))
    cookie = console_cluster.signed_in(key)
    console_cluster.run("keys", "revoke", "guest")
    wait_until(lambda: "Sign in" in page_text(window) and "spark-1" not in page_text(window), "the page is gone")
    assert console_cluster.get("", cookie).status_code == 303
    assert console_cluster.post("login", key=key).status_code == 401


def test_who_gets_in(console_cluster: ConsoleCluster, operator: str) -> None:
    """Guards that no page or event is given without a session, and that an API client's key makes none."""
    for path in (
        "",
        "live",
        "incidents",
        "incidents/1",
        "usage",
        "runs",
        "runs/x",
        "logs",
        "logs/twin/live",
        "keys",
        "stop/twin",
        "chat/twin/say",
    ):
        for cookie in ("", "sparkwright-twin=x", "sparkwright-twin=0.9999999999.0"):
            assert console_cluster.get(path, cookie).status_code == 303, path
    for path in ("nothing", "keys/add/more", "incidents/x"):
        lost = console_cluster.get(path)
        assert lost.status_code == 404 and "no such page" in lost.text and "Content-Security-Policy" in lost.headers
    refused = console_cluster.post("login", key=console_cluster.key("agent", "client"))
    assert refused.status_code == 401 and "opens the API only" in refused.text
    answer = console_cluster.post("login", key=operator)
    flags = answer.headers["Set-Cookie"].lower()
    assert all(word in flags for word in ("httponly", "samesite=strict", "secure", "path=/console"))
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_a_form_of_another_page_does_nothing(console_cluster: ConsoleCluster, operator: str) -> None:
    """Guards against forged requests: without the session's token nothing happens, signed in or not."""
    cookie = console_cluster.signed_in(operator)
    assert console_cluster.post("logout", cookie, token="x").status_code == 403
    assert console_cluster.post("logout", cookie).status_code == 403
    assert console_cluster.get("", cookie).status_code == 200


def test_a_viewer_changes_nothing(console_cluster: ConsoleCluster) -> None:
    """Guards that a viewer's key gets no page or form of an operator, not even with a token of its own."""
    cookie = console_cluster.signed_in(console_cluster.key("wall", "viewer"))
    assert (
        "Restart" not in console_cluster.get("", cookie).text
        and "console/keys" not in console_cluster.get("", cookie).text
    )
    own = re.findall(r'name="token" value="(\w+)"', console_cluster.get("", cookie).text)[0]
    for path in ("keys", "keys/add", "keys/revoke", "restart/twin", "stop/twin", "start/twin", "switch/twin", "chat"):
        assert console_cluster.get(path, cookie).status_code == 403, path
        assert console_cluster.post(path, cookie, token=own, sure="yes").status_code == 403, path


@pytest.mark.full
def test_an_operator_restarts_after_the_plan(
    console_cluster: ConsoleCluster, window: BrowserPage, operator: str
) -> None:
    """Guards the restart: its plan first, then the supervisor's own way, and what came of it on the page."""
    page = sign_in(window, console_cluster, operator)
    page.open(console_cluster.url("restart/twin"))
    for part in ("rank 0 on spark-1", "rank 1 on spark-2", "sparkwright restart twin"):
        assert part in page_text(page)
    before = console_cluster.live()
    page.script("document.querySelector('button.danger').click()")
    wait_for_text(page, "Restart twin, asked for by me")
    wait_for_text(page, "done in", "Up since")
    after = console_cluster.live()
    assert before and after and after.relaunches == before.relaunches + 1 and after.incidents == before.incidents


@pytest.mark.full
def test_an_operator_stops_and_starts(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards the stop: no rank is left, clients get the reason, nothing starts it but an operator."""
    page = sign_in(window, console_cluster, operator)
    page.open(console_cluster.url("stop/twin"))
    for part in ("Stop twin?", "rank 1 on spark-2", "until it is started again", "sparkwright down twin"):
        assert part in page_text(page)
    page.script("document.querySelector('button.danger').click()")
    wait_for_text(page, "Stop twin, asked for by me", "done in", "halted", "stopped by an operator")
    assert not console_cluster.pids(0) and not console_cluster.pids(1)
    with console_cluster.client() as client:
        answer = client.get(console_cluster.api("models"), headers={"Authorization": f"Bearer {operator}"})
    assert answer.status_code == 503 and "stopped by an operator" in answer.text and "Retry-After" in answer.headers
    os.kill(before := console_cluster.service("supervisor"), signal.SIGKILL)
    wait_until(lambda: console_cluster.service("supervisor") not in (0, before), "another supervisor")
    page.open(console_cluster.url("start/twin"))
    wait_for_text(page, "memory on spark-2 takes", "that it can have", "are left")
    page.script("document.querySelector('button.primary').click()")
    wait_for_text(page, "Start twin, asked for by me", "done in", "Up since")


@pytest.mark.full
def test_two_deployments_on_one_page_and_a_switch(
    console_cluster: ConsoleCluster, window: BrowserPage, operator: str
) -> None:
    """Guards several behind one gateway: both are seen, one takes the other's place, a failed switch goes back."""
    console_cluster.up("other", behind="twin", served="other-tiny")
    page = sign_in(window, console_cluster, operator)
    wait_for_text(page, "twin ready", "other ready", "other rank 0 runs; twin rank 0 runs")
    operate(page, console_cluster, "stop/other")
    is_done(page, "Stop other")
    wait_for_text(page, "other halted")
    operate(page, console_cluster, "switch/twin?to=other")
    is_done(page, "Switch twin to other")
    wait_for_text(page, "other ready", "twin halted")
    console_cluster.faults("twin").write_text("die@load")
    operate(page, console_cluster, "switch/other?to=twin")
    wait_for_text(page, "rolled back: other serves again", "other ready")
    console_cluster.faults("twin").unlink()
    operate(page, console_cluster, "start/twin")
    is_done(page, "Start twin")
    wait_for_text(page, "twin ready")
    console_cluster.run("down", "other")
    wait_for_text(page, "Up since")
    wait_until(lambda: "other" not in page_text(page), "only one is left")


def test_an_operator_adds_and_revokes_keys(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards that a key is shown once and opens what its role allows, and that a revoked one opens nothing."""
    page = sign_in(window, console_cluster, operator)
    page.open(console_cluster.url("keys"))
    script = "document.getElementById('name').value = arguments[0]; document.querySelector('.fields button').click()"
    page.script(script, "<b>x</b>")
    wait_for_text(page, "<b>x</b>", "a name has small letters")
    page.script(script, "new-agent")
    wait_for_text(page, "The new key, shown this once")
    key = page.script("return document.querySelector('code.fresh').textContent")
    assert key.startswith("sk-sw-") and key not in console_cluster.get("keys", console_cluster.signed_in(operator)).text
    models, headers = console_cluster.api("models"), {"Authorization": f"Bearer {key}"}
    with console_cluster.client() as client:
        wait_until(lambda: client.get(models, headers=headers).status_code == 200, "the key opens the API")
        page.script("document.querySelector('[aria-label=\"Revoke new-agent\"]').click()")
        wait_for_text(page, "Revoke new-agent?", "401 at once")
        page.script("document.querySelector('button.danger').click()")
        wait_until(lambda: client.get(models, headers=headers).status_code == 401, "the key opens nothing")
    wait_for_text(page, "Add a key")
    assert "new-agent" not in page_text(page)


@pytest.mark.full
def test_logs_come_as_they_are_written(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards that lines of both ranks are there and follow live, through a restart, and are never markup.
    Restarted and not killed: faults of the one deployment of all tests add up until it is given up."""
    page = sign_in(window, console_cluster, operator)
    page.open(console_cluster.url("logs/twin"))
    wait_for_text(page, "Kernel JIT monitor activated")
    again, before = "the ranks were started again", console_cluster.live()
    seen = page_text(page).count(again)
    console_cluster.run("restart", "twin")
    wait_until(lambda: page_text(page).count(again) > seen, again)
    ranks = "return new Set([...document.querySelectorAll('.rank')].map(r => r.textContent)).size"
    wait_until(lambda: page.script(ranks) == 2, "lines of both ranks")
    assert page.script("return document.images.length + document.scripts.length") == 1 and not page.complaints
    console_cluster.wait_until(
        lambda live: live.phase == "ready" and live.relaunches > (before.relaunches if before else 0)
    )


def test_a_report_is_shown_with_its_plots(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards `report --console`: listed, drawn by our own script only, and none by a name that is a path."""
    add_runs(console_cluster.shell, run_of_ten(0.1, "r-1a"))
    console_cluster.run("report", "last", "--console")
    page = sign_in(window, console_cluster, operator)
    page.open(console_cluster.url("runs"))
    wait_for_text(page, "r-1a", "acme/model")
    page.script("document.querySelector('main a[href*=runs]').click()")
    wait_until(lambda: is_true_on_page(page, "document.querySelectorAll('canvas').length"), "plots")
    assert not page.complaints, page.complaints
    cookie = console_cluster.signed_in(operator)
    assert len(console_cluster.get("runs/r-1a", cookie).content) < 150_000
    assert console_cluster.get("runs/..%2f..%2fdoor%2fkeys", cookie).status_code == 404


@pytest.mark.full
def test_it_answers_while_all_else_is_down(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards that with a supervisor that hangs the page calls the state unknown, and takes it up again after."""
    page = sign_in(window, console_cluster, operator)
    pid = console_cluster.service("supervisor")
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for_text(page, "What it does now is unknown: its supervisor has not reported for")
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for_text(page, "Up since")


@pytest.mark.full
def test_a_page_that_hears_nothing_says_so(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards a stream that stops without an end: the page calls what it shows old, and follows again by itself."""
    page = sign_in(window, console_cluster, operator)
    wait_for_text(page, "Up since")
    os.kill(pid := console_cluster.service("console"), signal.SIGSTOP)
    try:
        wait_until(lambda: not page.script("return document.getElementById('lost').hidden"), "it calls the page old")
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: bool(page.script("return document.getElementById('lost').hidden")), "events again")


@pytest.mark.full
def test_a_page_whose_stream_never_begins_says_so(
    console_cluster: ConsoleCluster, window: BrowserPage, operator: str
) -> None:
    """Guards a console that stops between its page and the page's stream: no error ever comes, and nothing is heard."""
    page = sign_in(window, console_cluster, operator)
    live = page.script("return document.querySelector('main').dataset.live")
    page.call("Fetch.enable", patterns=[{"urlPattern": f"*{live}*"}])
    try:
        page.open(console_cluster.url())
        wait_until(lambda: not page.script("return document.getElementById('lost').hidden"), "it calls the page old")
    finally:
        page.call("Fetch.disable")
    wait_until(lambda: bool(page.script("return document.getElementById('lost').hidden")), "events again")


def test_it_comes_back_when_it_was_killed(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards that the console's process is started again, and that open pages and sessions continue with it."""
    page = sign_in(window, console_cluster, operator)
    os.kill(before := console_cluster.service("console"), signal.SIGKILL)
    wait_until(lambda: console_cluster.service("console") not in (0, before), "another process")
    page.script("window.since = Number(document.body.dataset.updated || 0)")
    wait_until(lambda: bool(page.script("return Number(document.body.dataset.updated) > window.since")), "events again")
    assert page.script("return document.getElementById('lost').hidden")
    page.open(console_cluster.url("chat"))
    wait_for_text(page, "it keeps keys in memory only", "sign in again")


def test_fifty_pages_at_once(console_cluster: ConsoleCluster, operator: str) -> None:
    """Guards that fifty viewers all get the state, from one process."""
    cookie = console_cluster.signed_in(operator)

    def view(_: int) -> Any:
        with console_cluster.client(cookie) as client, client.stream("GET", "live") as answer:
            return json.loads(next(answer.iter_lines()).removeprefix("data: "))

    with ThreadPoolExecutor(50) as pool:
        assert all("Nodes" in one for one in pool.map(view, range(50)))


def test_requests_are_listed_as_they_come(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards the way of a request through the gateway onto an open page: its figures, and what a limit refused."""
    page = sign_in(window, console_cluster, operator)
    page.open(console_cluster.url("requests?key=counted"))
    wait_for_text(page, "No request")
    page.script("document.body.dataset.same = 'page'")
    console_cluster.run("keys", "add", "counted", "--per-minute", "1")
    (folder,) = console_cluster.shell.folder.glob(".local/state/sparkwright/keys/*")
    key = (folder / "counted.key").read_text().strip()
    wait_until(lambda: chat_status(console_cluster, key, stream=True) == 200, "the key is known")
    wait_until(lambda: chat_status(console_cluster, key, stream=True) == 429, "the limit")
    wait_for_text(page, "counted", "429 refused", "first token")
    answered = (
        "[...document.querySelectorAll('#requests tbody tr')].filter(row => row.cells[9].innerText.includes('200'))"
    )
    wait_until(lambda: is_true_on_page(page, f"{answered}.length"), "the answered one, which may be listed later")
    cells = page.script(f"return {answered}[0].innerText").split("\t")
    assert "–" not in cells[6:8] and page.script("return document.body.dataset.same") == "page"
    page.open(console_cluster.url())
    wait_for_text(page, "Time to first token", "median of 10 min", "× 429")


def test_the_last_day_is_a_strip(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards a day of history, made by a fast clock: drawn with its gap, told to a mouse, and as a table."""
    write_day(console_cluster.state, "twin")
    cookie = console_cluster.signed_in(operator)
    # The strip is made again every 20 s: before that it shows the few minutes in which this deployment ran.
    wait_until(lambda: "ago: failed" in console_cluster.get("days", cookie).text, "the day that was made")
    page = sign_in(window, console_cluster, operator)
    parts = "return document.querySelectorAll('[aria-label^=\"tokens/s\"] polyline').length"
    wait_until(lambda: is_true_on_page(page, "document.querySelectorAll('.day .columns i').length == 96"), "the strip")
    # Other tests stop this deployment for real, in the last minutes of the strip.
    bad = "return [...document.querySelectorAll('.states .bad')].filter(one => one.x.baseVal.value < 200).length"
    assert page.script(parts) >= 2 and page.script(bad) == 1
    titles = page.script("return [...document.querySelectorAll('.columns i')].map(i => i.title)")
    assert any("failed" in one for one in titles) and any("nothing was recorded" in one for one in titles)
    page.script("document.querySelector('.day details').open = true")
    wait_for_text(page, "hours ago", "23 to 24")
    page.script("window.since = Number(document.body.dataset.updated || 0)")
    wait_until(lambda: bool(page.script("return Number(document.body.dataset.updated) > window.since")), "an update")
    assert page.script("return document.querySelectorAll('.columns i').length") == 96, "an event leaves it alone"


def test_a_script_gets_into_no_settings(console_cluster: ConsoleCluster, operator: str) -> None:
    """Guards what would be pasted into a shell: a model's name that no file can hold makes no settings."""
    cookie = console_cluster.signed_in(operator)
    assert "settings cannot hold" in console_cluster.get("connect", cookie).text
    assert console_cluster.get("ca.crt", cookie).text.startswith("-----BEGIN CERTIFICATE-----")


def test_logs_are_searched_and_downloaded(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards the filter as a reader uses it, and the file."""
    page = sign_in(window, console_cluster, operator)
    page.open(console_cluster.url("logs/twin"))
    wait_for_text(page, "Kernel JIT monitor activated")
    shown = "return [...document.querySelectorAll('#log .line:not([hidden]):not(.note)')].map(l => l.textContent)"
    assert not [line for line in page.script(shown) if '" 200' in line]
    sift = "const f = document.getElementById('words'); f.value = arguments[0]; f.dispatchEvent(new Event('input', "
    page.script(sift + "{bubbles: true}))", "jit MONITOR")
    assert page.script(shown) and all("JIT monitor" in line for line in page.script(shown))
    cookie = console_cluster.signed_in(operator)

    def text() -> str:
        return console_cluster.get("logs/twin/download", cookie).text

    wait_until(lambda: all(rank in text() for rank in ("rank 0  ", "rank 1  ")), lambda: text()[-2000:])


def test_limits_of_a_key_are_set(console_cluster: ConsoleCluster, window: BrowserPage, operator: str) -> None:
    """Guards the form: shown, changed, and refused for what is no number."""
    console_cluster.run("keys", "add", "limited")
    page = sign_in(window, console_cluster, operator)
    page.open(console_cluster.url("keys/limit?name=limited"))
    fill = "document.getElementById('at_once').value = arguments[0]; document.querySelector('.fields button').click()"
    page.script(fill, "many")
    wait_for_text(page, "Requests at once: expected a number")
    page.open(console_cluster.url("keys/limit?name=limited"))
    page.script(fill, "7")
    wait_for_text(page, "7 at once")
    assert '"at_once": 7' in (console_cluster.state / "door/keys.json").read_text()
