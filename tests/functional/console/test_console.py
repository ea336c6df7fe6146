"""The console of a deployment that lives: in a browser, through the real gateway."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from contextlib import suppress

import pytest

from functional.console.conftest import EVIL, sign_in
from functional.console.demo_pictures import day
from functional.console.desk import Desk
from functional.report.browser import DESK, PHONE, Page
from functional.test_runs import fill, ten
from patience import wait_until


def text(page: Page) -> str:
    """The page's text, in one line."""
    return " ".join(page.script('return document.body ? document.body.innerText : ""').split())


def reads(page: Page, *words: str) -> None:
    """Waits for a change by the page's own events, without a reload."""
    wait_until(lambda: all(word in text(page) for word in words), f"{words} in {text(page)[:2000]}")


def test_a_rank_is_killed_and_comes_back_while_the_page_is_open(desk: Desk, window: Page, operator: str) -> None:
    """Guards the whole way on one open page: ready, refused with the reason, starting, ready again, an incident."""
    page = sign_in(window, desk, operator)
    page.script("document.body.dataset.same = 'page'")
    reads(page, "Up since", "spark-1", "spark-2", "simulated", "112.1 GiB available", "41 °C")
    before = desk.live()
    desk.kill(1)
    reads(page, "New requests get 503", "rank 1 on spark-2", "open")
    desk.wait_until(lambda live: live.phase == "ready" and (not before or live.last_incident > before.last_incident))
    reads(page, "Up since", "rank killed by an external signal", "away for")
    assert page.script("return document.body.dataset.same") == "page" and not page.complaints, page.complaints


def test_a_hostile_model_name_is_text(desk: Desk, window: Page, operator: str) -> None:
    """Guards that a name which is a script is shown as its letters, and runs nowhere; no other host is asked."""
    page = sign_in(window, desk, operator)
    reads(page, EVIL)
    assert page.script("return [document.title, document.images.length]") == ["Overview · sparkwright", 0]
    assert all(one.startswith((desk.url(), "data:")) for one in page.requests), page.requests


@pytest.mark.full
@pytest.mark.parametrize("size, theme", [(DESK, "light"), (DESK, "dark"), (PHONE, "light")])
def test_everyone_can_read_it(desk: Desk, window: Page, operator: str, size: tuple[int, int], theme: str) -> None:
    """Guards contrast, names, landmarks and structure of each page as axe-core checks them, and that nothing is cut."""
    sign_in(window, desk, operator)
    for path in (
        "",
        "logs",
        "incidents",
        "incidents/1",
        "usage",
        "requests",
        "connect",
        "runs",
        "chat",
        "keys",
        "keys/limit?name=me",
        "stop/twin",
        "switch/twin",
        "login",
    ):
        page = window.open(desk.url(path), size, theme)
        assert (found := page.violations()) == [], (path, found)
        assert page.overflow() <= 0, path


def test_a_phone_shows_which_page_it_is(desk: Desk, window: Page, operator: str) -> None:
    """Guards the last pages of the row that scrolls: the present one is in sight, and the page does not scroll."""
    sign_in(window, desk, operator)
    box = "const b = document.querySelector('header nav [aria-current]').getBoundingClientRect()"
    for path in ("", "incidents", "usage", "keys"):
        page = window.open(desk.url(path), PHONE)
        left, right = page.script(f"{box}; return [b.left, b.right]")
        assert 0 <= left < right <= PHONE[0], (path, left, right)
        assert page.script("return scrollX") == 0


def test_the_keyboard_reaches_all(desk: Desk, window: Page, operator: str) -> None:
    """Guards a user without a mouse: content in one step, then each action and link, and the focus survives updates."""
    page = sign_in(window, desk, operator)
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


def press_tab(page: Page) -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)


def test_a_page_is_small(desk: Desk, operator: str) -> None:
    """Guards a slow line: each page with style and script is below 150 kB."""
    cookie = desk.signed_in(operator)
    shared = sum(len(desk.get(f"assets/{name}").content) for name in ("console.css", "console.js"))
    paths = (
        "",
        "requests",
        "connect",
        "chat",
        "incidents",
        "incidents/1",
        "logs",
        "usage",
        "runs",
        "keys",
        "stop/twin",
    )
    for path in paths:
        assert len(desk.get(path, cookie).content) + shared < 150_000, path


def test_a_browser_without_scripts(desk: Desk, window: Page, operator: str) -> None:
    """Guards that state, plans and chat work there, and that the page loads itself again."""
    page = sign_in(window, desk, operator)
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(desk.url())
        page.script("document.body.dataset.same = 'page'")
        assert "Up since" in text(page) and "spark-2" in text(page)
        wait_until(lambda: is_so(page, "document.body.dataset.same !== 'page'"), "loaded again")
        page.open(desk.url("chat"))
        page.script("document.getElementById('prompt').value = '<b>hello'; document.getElementById('chat').submit()")
        wait_until(lambda: is_so(page, "document.querySelectorAll('.turn').length == 2"), "an answer")
        assert "<b>hello" in text(page)
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


def is_so(page: Page, what: str) -> bool:
    """False, too, while another page is being loaded."""
    with suppress(AssertionError):
        return bool(page.script(f"return document.body && {what}"))
    return False


def test_a_chat_streams(desk: Desk, window: Page, operator: str) -> None:
    """Guards the way of a prompt: through the gateway with the visitor's key, counted, its text never markup."""
    page = sign_in(window, desk, operator)
    page.open(desk.url("chat"))
    say = "document.getElementById('prompt').value = arguments[0]; document.getElementById('chat').requestSubmit()"
    page.script(say, EVIL)
    reads(page, EVIL, "answer tokens")
    wait_until(lambda: not page.script("return document.querySelector('#chat [type=submit]').disabled"), "it may go on")
    page.script(say, "and again")
    wait_until(lambda: text(page).count("answer tokens") == 2, "a second answer")
    assert page.script("return [document.title, document.images.length]") == ["Chat · sparkwright", 0]
    used = json.loads(desk.run("keys", "list", "--json"))["usage"]
    assert [row["requests"] for row in used if row["key"] == "me"] and not page.complaints
    page.open(desk.url("usage"))
    reads(page, "By key", "me", "answer tokens")


def test_it_is_whole_without_a_script(desk: Desk, operator: str) -> None:
    """Guards that the state is in the page as it is sent, which then refreshes itself."""
    page = desk.get("", desk.signed_in(operator)).text
    assert "Up since" in page and "spark-2" in page
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in page


def test_a_revoked_key_loses_its_page(desk: Desk, window: Page) -> None:
    """Guards that an open page is emptied, and its session is nobody, once the key is revoked."""
    sign_in(window, desk, key := desk.key("guest", "viewer"))
    cookie = desk.signed_in(key)
    desk.run("keys", "revoke", "guest")
    wait_until(lambda: "Sign in" in text(window) and "spark-1" not in text(window), "the page is gone")
    assert desk.get("", cookie).status_code == 303
    assert desk.post("login", key=key).status_code == 401


def test_who_gets_in(desk: Desk, operator: str) -> None:
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
            assert desk.get(path, cookie).status_code == 303, path
    for path in ("nothing", "keys/add/more", "incidents/x"):
        lost = desk.get(path)
        assert lost.status_code == 404 and "no such page" in lost.text and "Content-Security-Policy" in lost.headers
    refused = desk.post("login", key=desk.key("agent", "client"))
    assert refused.status_code == 401 and "opens the API only" in refused.text
    answer = desk.post("login", key=operator)
    flags = answer.headers["Set-Cookie"].lower()
    assert all(word in flags for word in ("httponly", "samesite=strict", "secure", "path=/console"))
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_a_form_of_another_page_does_nothing(desk: Desk, operator: str) -> None:
    """Guards against forged requests: without the session's token nothing happens, signed in or not."""
    cookie = desk.signed_in(operator)
    assert desk.post("logout", cookie, token="x").status_code == 403
    assert desk.post("logout", cookie).status_code == 403
    assert desk.get("", cookie).status_code == 200


def test_a_viewer_changes_nothing(desk: Desk) -> None:
    """Guards that a viewer's key gets no page or form of an operator, not even with a token of its own."""
    cookie = desk.signed_in(desk.key("wall", "viewer"))
    assert "Restart" not in desk.get("", cookie).text and "console/keys" not in desk.get("", cookie).text
    own = re.findall(r'name="token" value="(\w+)"', desk.get("", cookie).text)[0]
    for path in ("keys", "keys/add", "keys/revoke", "restart/twin", "stop/twin", "start/twin", "switch/twin", "chat"):
        assert desk.get(path, cookie).status_code == 403, path
        assert desk.post(path, cookie, token=own, sure="yes").status_code == 403, path


@pytest.mark.full
def test_an_operator_restarts_after_the_plan(desk: Desk, window: Page, operator: str) -> None:
    """Guards the restart: its plan first, then the supervisor's own way, and what came of it on the page."""
    page = sign_in(window, desk, operator)
    page.open(desk.url("restart/twin"))
    for part in ("rank 0 on spark-1", "rank 1 on spark-2", "sparkwright restart twin"):
        assert part in text(page)
    before = desk.live()
    page.script("document.querySelector('button.danger').click()")
    reads(page, "Restart twin, asked for by me")
    reads(page, "done in", "Up since")
    after = desk.live()
    assert before and after and after.relaunches == before.relaunches + 1 and after.incidents == before.incidents


@pytest.mark.full
def test_an_operator_stops_and_starts(desk: Desk, window: Page, operator: str) -> None:
    """Guards the stop: no rank is left, clients get the reason, nothing starts it but an operator."""
    page = sign_in(window, desk, operator)
    page.open(desk.url("stop/twin"))
    for part in ("Stop twin?", "rank 1 on spark-2", "until it is started again", "sparkwright down twin"):
        assert part in text(page)
    page.script("document.querySelector('button.danger').click()")
    reads(page, "Stop twin, asked for by me", "done in", "halted", "stopped by an operator")
    assert not desk.pids(0) and not desk.pids(1)
    with desk.client() as client:
        answer = client.get(desk.api("models"), headers={"Authorization": f"Bearer {operator}"})
    assert answer.status_code == 503 and "stopped by an operator" in answer.text and "Retry-After" in answer.headers
    os.kill(before := desk.service("supervisor"), signal.SIGKILL)
    wait_until(lambda: desk.service("supervisor") not in (0, before), "another supervisor")
    page.open(desk.url("start/twin"))
    reads(page, "memory on spark-2 takes", "that it can have", "are left")
    page.script("document.querySelector('button.primary').click()")
    reads(page, "Start twin, asked for by me", "done in", "Up since")


@pytest.mark.full
def test_two_deployments_on_one_page_and_a_switch(desk: Desk, window: Page, operator: str) -> None:
    """Guards several behind one gateway: both are seen, one takes the other's place, a failed switch goes back."""
    desk.up("other", behind="twin", served="other-tiny")
    page = sign_in(window, desk, operator)
    reads(page, "twin ready", "other ready", "other rank 0 runs; twin rank 0 runs")
    operate(page, desk, "stop/other")
    is_done(page, "Stop other")
    reads(page, "other halted")
    operate(page, desk, "switch/twin?to=other")
    is_done(page, "Switch twin to other")
    reads(page, "other ready", "twin halted")
    desk.faults("twin").write_text("die@load")
    operate(page, desk, "switch/other?to=twin")
    reads(page, "rolled back: other serves again", "other ready")
    desk.faults("twin").unlink()
    operate(page, desk, "start/twin")
    is_done(page, "Start twin")
    reads(page, "twin ready")
    desk.run("down", "other")
    reads(page, "Up since")
    wait_until(lambda: "other" not in text(page), "only one is left")


def operate(page: Page, desk: Desk, path: str) -> None:
    page.open(desk.url(path))
    page.script("document.querySelector('main form button').click()")


def is_done(page: Page, what: str) -> None:
    """Waits for an operation's end: another one is refused before."""
    done = re.compile(rf"{what}, asked for by me at [\d:]+ UTC: done in")
    wait_until(lambda: bool(done.search(text(page))), f"{what} in {text(page)[:2000]}")


def test_an_operator_adds_and_revokes_keys(desk: Desk, window: Page, operator: str) -> None:
    """Guards that a key is shown once and opens what its role allows, and that a revoked one opens nothing."""
    page = sign_in(window, desk, operator)
    page.open(desk.url("keys"))
    script = "document.getElementById('name').value = arguments[0]; document.querySelector('.fields button').click()"
    page.script(script, "<b>x</b>")
    reads(page, "<b>x</b>", "a name has small letters")
    page.script(script, "new-agent")
    reads(page, "The new key, shown this once")
    key = page.script("return document.querySelector('code.fresh').textContent")
    assert key.startswith("sk-sw-") and key not in desk.get("keys", desk.signed_in(operator)).text
    models, headers = desk.api("models"), {"Authorization": f"Bearer {key}"}
    with desk.client() as client:
        wait_until(lambda: client.get(models, headers=headers).status_code == 200, "the key opens the API")
        page.script("document.querySelector('[aria-label=\"Revoke new-agent\"]').click()")
        reads(page, "Revoke new-agent?", "401 at once")
        page.script("document.querySelector('button.danger').click()")
        wait_until(lambda: client.get(models, headers=headers).status_code == 401, "the key opens nothing")
    reads(page, "Add a key")
    assert "new-agent" not in text(page)


@pytest.mark.full
def test_logs_come_as_they_are_written(desk: Desk, window: Page, operator: str) -> None:
    """Guards that lines of both ranks are there and follow live, through a restart, and are never markup.
    Restarted and not killed: faults of the one deployment of all tests add up until it is given up."""
    page = sign_in(window, desk, operator)
    page.open(desk.url("logs/twin"))
    reads(page, "Kernel JIT monitor activated")
    again, before = "the ranks were started again", desk.live()
    seen = text(page).count(again)
    desk.run("restart", "twin")
    wait_until(lambda: text(page).count(again) > seen, again)
    ranks = "return new Set([...document.querySelectorAll('.rank')].map(r => r.textContent)).size"
    wait_until(lambda: page.script(ranks) == 2, "lines of both ranks")
    assert page.script("return document.images.length + document.scripts.length") == 1 and not page.complaints
    desk.wait_until(lambda live: live.phase == "ready" and live.relaunches > (before.relaunches if before else 0))


def test_a_report_is_shown_with_its_plots(desk: Desk, window: Page, operator: str) -> None:
    """Guards `report --console`: listed, drawn by our own script only, and none by a name that is a path."""
    fill(desk.shell, ten(0.1, "r-1a"))
    desk.run("report", "last", "--console")
    page = sign_in(window, desk, operator)
    page.open(desk.url("runs"))
    reads(page, "r-1a", "acme/model")
    page.script("document.querySelector('main a[href*=runs]').click()")
    wait_until(lambda: bool(page.script("return document.querySelectorAll('canvas').length")), "plots")
    assert not page.complaints, page.complaints
    cookie = desk.signed_in(operator)
    assert len(desk.get("runs/r-1a", cookie).content) < 150_000
    assert desk.get("runs/..%2f..%2fdoor%2fkeys", cookie).status_code == 404


@pytest.mark.full
def test_it_answers_while_all_else_is_down(desk: Desk, window: Page, operator: str) -> None:
    """Guards that with a supervisor that hangs the page calls the state unknown, and takes it up again after."""
    page = sign_in(window, desk, operator)
    pid = desk.service("supervisor")
    os.kill(pid, signal.SIGSTOP)
    try:
        reads(page, "What it does now is unknown: its supervisor has not reported for")
    finally:
        os.kill(pid, signal.SIGCONT)
    reads(page, "Up since")


def test_it_comes_back_when_it_was_killed(desk: Desk, window: Page, operator: str) -> None:
    """Guards that the console's process is started again, and that open pages and sessions continue with it."""
    page = sign_in(window, desk, operator)
    os.kill(before := desk.service("console"), signal.SIGKILL)
    wait_until(lambda: desk.service("console") not in (0, before), "another process")
    page.script("window.since = Number(document.body.dataset.updated || 0)")
    wait_until(lambda: bool(page.script("return Number(document.body.dataset.updated) > window.since")), "events again")
    assert page.script("return document.getElementById('lost').hidden")
    page.open(desk.url("chat"))
    reads(page, "it keeps keys in memory only", "sign in again")


def test_fifty_pages_at_once(desk: Desk, operator: str) -> None:
    """Guards that fifty viewers all get the state, from one process."""
    cookie, got = desk.signed_in(operator), list[str]()

    def view() -> None:
        with desk.client(cookie) as client, client.stream("GET", "live") as answer:
            got.append(json.loads(next(answer.iter_lines()).removeprefix("data: ")))

    viewers = [threading.Thread(target=view) for _ in range(50)]
    for one in viewers:
        one.start()
    for one in viewers:
        one.join()
    assert len(got) == 50 and all("Nodes" in one for one in got)


def ask(desk: Desk, key: str, stream: bool) -> int:
    """One request of a client; the status."""
    chat = {"model": EVIL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8, "stream": stream}
    with desk.client() as client:
        answer = client.post(desk.api("chat/completions"), json=chat, headers={"Authorization": f"Bearer {key}"})
    return answer.status_code


def test_requests_are_listed_as_they_come(desk: Desk, window: Page, operator: str) -> None:
    """Guards the way of a request through the gateway onto an open page: its figures, and what a limit refused."""
    page = sign_in(window, desk, operator)
    page.open(desk.url("requests?key=counted"))
    reads(page, "No request")
    page.script("document.body.dataset.same = 'page'")
    desk.run("keys", "add", "counted", "--per-minute", "1")
    (folder,) = desk.shell.folder.glob(".local/state/sparkwright/keys/*")
    key = (folder / "counted.key").read_text().strip()
    wait_until(lambda: ask(desk, key, stream=True) == 200, "the key is known")
    wait_until(lambda: ask(desk, key, stream=True) == 429, "the limit")
    reads(page, "counted", "429 refused", "first token")
    row = page.script("return [...document.querySelectorAll('#requests tbody tr')].pop().innerText").split()
    assert "ms" in row and "200" in row and page.script("return document.body.dataset.same") == "page"
    page.open(desk.url())
    reads(page, "Time to first token", "median of 10 min", "× 429")


def test_the_last_day_is_a_strip(desk: Desk, window: Page, operator: str) -> None:
    """Guards a day of history, made by a fast clock: drawn with its gap, told to a mouse, and as a table."""
    day(desk.state, "twin")
    cookie = desk.signed_in(operator)
    # The strip is made again every 20 s: before that it shows the few minutes in which this deployment ran.
    wait_until(lambda: "ago: failed" in desk.get("days", cookie).text, "the day that was made")
    page = sign_in(window, desk, operator)
    parts = "return document.querySelectorAll('[aria-label^=\"tokens/s\"] polyline').length"
    wait_until(lambda: is_so(page, "document.querySelectorAll('.day .columns i').length == 96"), "the strip")
    # Other tests stop this deployment for real, in the last minutes of the strip.
    bad = "return [...document.querySelectorAll('.states .bad')].filter(one => one.x.baseVal.value < 200).length"
    assert page.script(parts) >= 2 and page.script(bad) == 1
    titles = page.script("return [...document.querySelectorAll('.columns i')].map(i => i.title)")
    assert any("failed" in one for one in titles) and any("nothing was recorded" in one for one in titles)
    page.script("document.querySelector('.day details').open = true")
    reads(page, "hours ago", "23 to 24")
    page.script("window.since = Number(document.body.dataset.updated || 0)")
    wait_until(lambda: bool(page.script("return Number(document.body.dataset.updated) > window.since")), "an update")
    assert page.script("return document.querySelectorAll('.columns i').length") == 96, "an event leaves it alone"


def test_a_script_gets_into_no_settings(desk: Desk, operator: str) -> None:
    """Guards what would be pasted into a shell: a model's name that no file can hold makes no settings."""
    cookie = desk.signed_in(operator)
    assert "settings cannot hold" in desk.get("connect", cookie).text
    assert desk.get("ca.crt", cookie).text.startswith("-----BEGIN CERTIFICATE-----")


def test_logs_are_searched_and_downloaded(desk: Desk, window: Page, operator: str) -> None:
    """Guards the filter as a reader uses it, and the file."""
    page = sign_in(window, desk, operator)
    page.open(desk.url("logs/twin"))
    reads(page, "Kernel JIT monitor activated")
    shown = "return [...document.querySelectorAll('#log .line:not([hidden]):not(.note)')].map(l => l.textContent)"
    assert not [line for line in page.script(shown) if '" 200' in line]
    sift = "const f = document.getElementById('words'); f.value = arguments[0]; f.dispatchEvent(new Event('input', "
    page.script(sift + "{bubbles: true}))", "jit MONITOR")
    assert page.script(shown) and all("JIT monitor" in line for line in page.script(shown))
    text = desk.get("logs/twin/download", desk.signed_in(operator)).text
    assert "rank 0  " in text and "rank 1  " in text


def test_limits_of_a_key_are_set(desk: Desk, window: Page, operator: str) -> None:
    """Guards the form: shown, changed, and refused for what is no number."""
    desk.run("keys", "add", "limited")
    page = sign_in(window, desk, operator)
    page.open(desk.url("keys/limit?name=limited"))
    fill = "document.getElementById('at_once').value = arguments[0]; document.querySelector('.fields button').click()"
    page.script(fill, "many")
    reads(page, "Requests at once: expected a number")
    page.open(desk.url("keys/limit?name=limited"))
    page.script(fill, "7")
    reads(page, "7 at once")
    assert '"at_once": 7' in (desk.state / "door/keys.json").read_text()
