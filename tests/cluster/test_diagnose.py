"""`diagnose` of deployments on real nodes: over ssh, from containers' logs, kernel logs and facts."""

import json

import pytest

from cluster.drive import NAME, QUICK, RUNTIMES, CommandDriver, assert_clean, engines
from testbed import ContainerNode

RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)


@RUNTIME
def test_a_killed_worker_is_the_cause_and_nothing_is_changed(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """There is no cause while all runs; after a SIGKILL the rank is named, and its head is left as it is."""
    driver.good("up", driver.recipe(runtime), "--json")
    well = driver.run("diagnose", NAME)
    assert well.code == 0 and "serves since rank 0 on spark-1" in well.out, str(well)
    assert "SIMULATED" in well.out and "rank 1 on spark-2" in well.out
    testbed_nodes[1].sh("pkill -9 -f -- '--[h]eadless'")
    done = driver.run("diagnose", NAME, "--json")
    assert done.code == 1, str(done)
    found = json.loads(done.out)
    (first, *_) = found["diagnosis"]["causes"]
    # As a process it goes with what writes its exit code down: then no signal is known.
    key = {"docker": "rank-killed-by-signal", "process": "peer-rank-died"}[runtime]
    assert first["key"] == key and found["simulated"], str(done)
    assert any("spark-2" in proof["text"] + proof["source"] for proof in first["proof"]), str(done)
    assert len(engines(testbed_nodes[0])) == 1
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
@RUNTIME
def test_a_failed_up_reports_why(driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str) -> None:
    """The cause with the line that proves it, by rank and node; later by name, from what the nodes still have."""
    done = driver.run("up", driver.recipe(runtime, {**QUICK, "SPARKWRIGHT_SIMULATOR_FAULT": "oom@load"}))
    assert done.code == 5 and "OutOfMemoryError" in done.err, str(done)
    assert "gpu-out-of-memory" in done.err and "on spark-" in done.err, str(done)
    again = driver.run("diagnose", NAME)
    assert again.code == 1 and "gpu-out-of-memory" in again.out, str(again)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
