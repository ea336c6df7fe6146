"""One simulated deployment for all tests of the console, and a browser that is signed in."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from functional.console.desk import ConsoleCluster, made_desk
from functional.gateway.gateways import has_caddy
from functional.report.browser import BROWSER, BrowserPage, PageLeft, browser
from patience import wait_until


@pytest.fixture(scope="module")
def console_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleCluster]:
    """It serves a model whose name would be a script. It ends with the module: its polling takes a tenth of a core."""
    if not has_caddy():
        pytest.skip("caddy is not installed")
    with made_desk(tmp_path_factory.mktemp("desk")) as made:
        made.up(served=EVIL)
        yield made


EVIL = "<script>document.title='taken'</script><img/src=x/onerror=alert(1)>"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserPage]:
    if not BROWSER:
        pytest.skip("chromium is not installed")
    with browser(tmp_path_factory.mktemp("browser"), "--ignore-certificate-errors") as opened:
        yield opened


@pytest.fixture(scope="module")
def operator(console_cluster: ConsoleCluster) -> str:
    return console_cluster.key("me", "operator")


def sign_in(page: BrowserPage, desk: ConsoleCluster, key: str, name: str = "twin") -> BrowserPage:
    # An `up` behind the same gateway has just made a new console: until it listens, Caddy answers.
    form = "return !!document.getElementById('key')"
    wait_until(lambda: bool(page.open(desk.url("login", name)).script(form)), "the form of a new console")
    page.script("document.getElementById('key').value = arguments[0]; document.querySelector('form').submit()", key)
    wait_until(lambda: is_true_on_page(page, "!!document.getElementById('live')"), "the first page after signing in")
    return page


def page_text(page: BrowserPage) -> str:
    """The page's text, in one line; none while another page takes its place."""
    try:
        return " ".join(page.script('return document.body ? document.body.innerText : ""').split())
    except PageLeft:
        return ""


def wait_for_text(page: BrowserPage, *words: str) -> None:
    """Waits for a change by the page's own events, without a reload."""
    wait_until(lambda: all(word in page_text(page) for word in words), lambda: f"{words} in {page_text(page)[:2000]}")


def is_true_on_page(page: BrowserPage, what: str) -> bool:
    """False, too, while another page is being loaded."""
    with suppress(AssertionError):
        return bool(page.script(f"return document.body && {what}"))
    return False


def press_tab(page: BrowserPage) -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Processes that stand still for a while."""
    assert pids and all(pids)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def operate(page: BrowserPage, desk: ConsoleCluster, path: str) -> None:
    page.open(desk.url(path))
    page.script("document.querySelector('main form button').click()")


def is_done(page: BrowserPage, what: str) -> None:
    """Waits for an operation's end: another one is refused before."""
    done = re.compile(rf"{what}, asked for by me at [\d:]+ UTC: done in")
    wait_until(lambda: bool(done.search(page_text(page))), lambda: f"{what} in {page_text(page)[:2000]}")


def chat_status(desk: ConsoleCluster, key: str, stream: bool) -> int:
    """One request of a client; the status."""
    chat = {"model": EVIL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8, "stream": stream}
    with desk.client() as client:
        answer = client.post(desk.api("chat/completions"), json=chat, headers={"Authorization": f"Bearer {key}"})
    return answer.status_code
