"""The console of the live two-node cluster in Chromium: two deployments, each state, a killed rank and back."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.drive import NAME, CommandDriver, assert_clean
from cluster.test_supervised import TENTH, USER
from functional.console.pictures import save_screenshot
from functional.report.browser import BROWSER, BrowserPage, browser
from patience import PATIENCE
from testbed import ContainerNode, harm

GATEWAY = 8443
OTHER = "spare"
# A boot of eight seconds or so: each state is there to be seen.
SLOW = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.1", "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "0"}
PICTURES = os.environ.get("SPARKWRIGHT_PICTURES", "")


@pytest.fixture
def browser_page(tmp_path: Path) -> Iterator[BrowserPage]:
    if not BROWSER:
        pytest.skip("chromium is not installed")
    (folder := tmp_path / "browser").mkdir()
    with browser(folder, "--ignore-certificate-errors") as opened:
        yield opened


def wait_for_text(page: BrowserPage, *words: str) -> str:
    """Waits until the page shows the words, without a reload."""
    end = time.monotonic() + PATIENCE
    while True:
        text = " ".join(page.script('return document.body ? document.body.innerText : ""').split())
        if all(word in text for word in words):
            return text
        assert time.monotonic() < end, f"{words} in {text[:3000]}"
        time.sleep(0.1)


def save_picture(page: BrowserPage, name: str) -> None:
    if PICTURES:
        save_screenshot(page, name, Path(PICTURES))


@pytest.mark.full
def test_every_state_of_the_live_cluster(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], browser_page: BrowserPage
) -> None:
    """Guards one open page through it all: ready, a killed rank, loading, back; a hung supervisor; stop and switch of
    two deployments behind one gateway; what is given up."""
    head, worker = testbed_nodes
    harm.small_state(worker, "24m")
    driver.supervise, driver.env = True, dict(TENTH)
    driver.good("up", driver.recipe("process", SLOW, serving={"expose": "all"}))
    key = driver.good("keys add", "me", "--role", "operator", "--show", "--json").json["key"]
    at = f"https://{head.mgmt}:{GATEWAY}/console/"
    browser_page.open(f"{at}login")
    browser_page.script(
        "document.getElementById('key').value = arguments[0]; document.querySelector('form').submit()", key
    )
    wait_for_text(browser_page, "Up since", "spark-1", "spark-2", "available of")
    save_picture(browser_page, "cluster-ready")
    harm.fill_state(worker)
    wait_for_text(browser_page, "degraded", "disk full on spark-2")
    save_picture(browser_page, "cluster-degraded")
    harm.empty_state(worker)
    wait_for_text(browser_page, "Up since")
    worker.sh("pkill -KILL -f '[s]parkwright.simulator serve'")
    wait_for_text(browser_page, "New requests get 503", "Starting for")
    save_picture(browser_page, "cluster-loading")
    wait_for_text(browser_page, "Up since", "away for")
    supervisor = f"systemctl --user kill --signal={{}} sparkwright-supervisor-{NAME}.service"
    head.sh(f"{USER.partition(' ')[0]} {supervisor.format('STOP')}", user="spark")
    wait_for_text(browser_page, "What it does now is unknown")
    save_picture(browser_page, "cluster-unknown")
    head.sh(f"{USER.partition(' ')[0]} {supervisor.format('CONT')}", user="spark")
    wait_for_text(browser_page, "Up since")
    two_deployments(driver, browser_page, at)
    worker.sh("chmod 000 /opt/sparkwright/bin")
    try:
        worker.sh("pkill -KILL -f '[s]parkwright.simulator serve'")
        wait_for_text(browser_page, "failed", "it was given up")
        save_picture(browser_page, "cluster-failed")
    finally:
        worker.sh("chmod 755 /opt/sparkwright/bin")
    # Other test nodes on this machine come and go, and Chromium sees their devices
    complaints = [one for one in browser_page.complaints if "ERR_NETWORK_CHANGED" not in one]
    assert not complaints, complaints
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


def two_deployments(drive: CommandDriver, page: BrowserPage, at: str) -> None:
    operate(page, f"{at}stop/{NAME}")
    wait_for_text(page, "halted", "done in")
    drive.good("up", drive.recipe("process", SLOW, serving={"expose": "all"}, name=OTHER), "--name", OTHER)
    wait_for_text(page, f"{OTHER} ready", f"{NAME} halted")
    save_picture(page, "cluster-two")
    operate(page, f"{at}switch/{OTHER}?to={NAME}")
    wait_for_text(page, f"Switch {OTHER} to {NAME}, asked for by me", "done in", f"{NAME} ready", f"{OTHER} halted")
    drive.good("down", OTHER)
    wait_for_text(page, "Up since")


def operate(page: BrowserPage, address: str) -> None:
    page.open(address)
    page.script("document.querySelector('main form button').click()")
