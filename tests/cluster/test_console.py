"""The console of the live two-node cluster in Chromium: two deployments, each state, a killed rank and back."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.drive import NAME, Drive, assert_clean
from cluster.test_supervised import TENTH, USER
from functional.console.pictures import shot
from functional.report.browser import BROWSER, Page, browser
from testbed import Node, harm

GATEWAY = 8443
OTHER = "spare"
# A boot of eight seconds or so: each state is there to be seen.
SLOW = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.1", "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "0"}
PICTURES = os.environ.get("SPARKWRIGHT_PICTURES", "")


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    if not BROWSER:
        pytest.skip("chromium is not installed")
    (folder := tmp_path / "browser").mkdir()
    with browser(folder, "--ignore-certificate-errors") as opened:
        yield opened


def reads(page: Page, *words: str, within: float = 120) -> str:
    """Waits until the page shows the words, without a reload."""
    end = time.monotonic() + within
    while True:
        text = " ".join(page.script('return document.body ? document.body.innerText : ""').split())
        if all(word in text for word in words):
            return text
        assert time.monotonic() < end, f"{words} in {text[:3000]}"
        time.sleep(0.1)


def taken(page: Page, name: str) -> None:
    if PICTURES:
        shot(page, name, Path(PICTURES))


@pytest.mark.full
def test_every_state_of_the_live_cluster(drive: Drive, nodes: list[Node], page: Page) -> None:
    """Guards one open page through it all: ready, a killed rank, loading, back; a hung supervisor; stop and switch of
    two deployments behind one gateway; what is given up."""
    head, worker = nodes
    harm.small_state(worker, "24m")
    drive.supervise, drive.env = True, dict(TENTH)
    drive.good("up", drive.recipe("process", SLOW, serving={"expose": "all"}))
    key = drive.good("keys add", "me", "--role", "operator", "--show", "--json").json["key"]
    at = f"https://{head.mgmt}:{GATEWAY}/console/"
    page.open(f"{at}login")
    page.script("document.getElementById('key').value = arguments[0]; document.querySelector('form').submit()", key)
    reads(page, "Up since", "spark-1", "spark-2", "available of")
    taken(page, "cluster-ready")
    harm.fill_state(worker)
    reads(page, "degraded", "disk full on spark-2")
    taken(page, "cluster-degraded")
    harm.empty_state(worker)
    reads(page, "Up since")
    worker.sh("pkill -KILL -f '[s]parkwright.simulator serve'")
    reads(page, "New requests get 503", "Starting for")
    taken(page, "cluster-loading")
    reads(page, "Up since", "away for")
    supervisor = f"systemctl --user kill --signal={{}} sparkwright-supervisor-{NAME}.service"
    head.sh(f"{USER.partition(' ')[0]} {supervisor.format('STOP')}", user="spark")
    reads(page, "What it does now is unknown")
    taken(page, "cluster-unknown")
    head.sh(f"{USER.partition(' ')[0]} {supervisor.format('CONT')}", user="spark")
    reads(page, "Up since")
    two_deployments(drive, page, at)
    worker.sh("chmod 000 /opt/sparkwright/bin")
    try:
        worker.sh("pkill -KILL -f '[s]parkwright.simulator serve'")
        reads(page, "failed", "it was given up", within=180)
        taken(page, "cluster-failed")
    finally:
        worker.sh("chmod 755 /opt/sparkwright/bin")
    # Other test nodes on this machine come and go, and Chromium sees their devices
    complaints = [one for one in page.complaints if "ERR_NETWORK_CHANGED" not in one]
    assert not complaints, complaints
    drive.good("down", NAME)
    assert_clean(nodes)


def two_deployments(drive: Drive, page: Page, at: str) -> None:
    operate(page, f"{at}stop/{NAME}")
    reads(page, "halted", "done in")
    drive.good("up", drive.recipe("process", SLOW, serving={"expose": "all"}, name=OTHER), "--name", OTHER)
    reads(page, f"{OTHER} ready", f"{NAME} halted")
    taken(page, "cluster-two")
    operate(page, f"{at}switch/{OTHER}?to={NAME}")
    reads(page, f"Switch {OTHER} to {NAME}, asked for by me", "done in", f"{NAME} ready", f"{OTHER} halted")
    drive.good("down", OTHER)
    reads(page, "Up since")


def operate(page: Page, address: str) -> None:
    page.open(address)
    page.script("document.querySelector('main form button').click()")
