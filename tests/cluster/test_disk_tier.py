"""A tier of a real engine's KV cache in a live `status`: llama.cpp's slots on a disk of the node."""

from pathlib import Path

import pytest
import yaml

from cluster.drive import CommandDriver, assert_clean
from cluster.test_replicas import ask_chat
from cluster.test_several import GatewaySite
from patience import wait_until
from testbed import ContainerNode

FOLDER = "/home/spark/kv"
LONG = "You count boats in the old harbour and write the number down. " * 12


@pytest.mark.full
def test_a_tier_on_a_disk_is_seen_live(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """`status` shows what the folder holds once a context is saved, and after kill -9 how much came back; clients get
    answers before and after it."""
    driver.supervise, driver.env = True, {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.3"}
    site = GatewaySite(driver, testbed_nodes[0])
    path = Path(site.llama())
    recipe = yaml.safe_load(path.read_text())
    recipe["serving"] |= {"disk_cache": FOLDER, "disk_cache_size": "1GiB"}
    path.write_text(yaml.safe_dump(recipe))
    driver.good("up", str(path))

    def tier(field: str) -> float:
        found = [one[field] for one in site.live("tiny")["cache_tiers"] if one["tier"] == "disk"]
        return (found or [None])[0] or 0

    with site.client() as client:
        assert ask_chat(client, "tiny", LONG).status_code == 200
        wait_until(lambda: tier("used") > 10_000, lambda: driver.run("status").out, poll=2)
        assert "disk cache of the engine:" in driver.run("status").out
        testbed_nodes[0].sh("pkill -KILL -f '[l]lama'")
        wait_until(lambda: tier("restored") > 100, lambda: driver.run("status").out, poll=2)
        print(driver.run("status").out)
        assert "tokens restored after the start" in driver.run("status").out
        assert ask_chat(client, "tiny", LONG).status_code == 200
    driver.good("down", "tiny")
    assert_clean(testbed_nodes)
