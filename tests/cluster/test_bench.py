"""`bench` of a deployment on two nodes: the engine by its name, and the gateway as its users reach it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.drive import NAME, CallResult, CommandDriver
from functional.command import run_warm
from patience import wait_until
from sparkwright.loadgen.validity import ERRORS
from testbed import ContainerNode

GATEWAY = 8443
# About twenty milliseconds a token, so that this machine's own delays are small beside them.
STEADY = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0", "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "3"}
SMALL = """
title: A few short requests
repeats: 2
deadline: 60s
levels:
  - {name: one, single: {prompt: 64, output: 8}, requests: 4, warmup: 1, concurrency: 2}
"""
LONG = """
title: Long enough to lose a rank in it
repeats: 1
deadline: 40s
levels:
  - {name: one, single: {prompt: 64, output: 20}, requests: 40, warmup: 0, concurrency: 2}
"""


@pytest.fixture
def driver(driver: CommandDriver) -> Iterator[CommandDriver]:
    driver.supervise = True
    driver.env = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.3", "DRILL_KEY": "sk-of-the-engine"}
    for name, text in (
        ("small", SMALL),
        ("long", LONG),
        ("gates.txt", "errors == 0\n"),
        ("wrong.key", "sk-sw-wrong\n"),
    ):
        (driver.folder / (name if "." in name else f"{name}.yaml")).write_text(text)
    yield driver


SHORT = ("--profile", "./small.yaml", "--json")


def measured(done: CallResult) -> dict[str, Any]:
    """The run; a machine that is busy with other tests may put the client behind, and nothing else may be wrong."""
    assert done.out, str(done)
    (run,) = done.json["runs"]
    assert [why for why in run["invalid"] if "the client" not in why] == [], str(done)
    found: dict[str, Any] = run
    return found


def keys_folder(drive: CommandDriver) -> Path:
    return drive.folder / "home/.local/state/sparkwright/keys/testbed"


def check_conditions(run: dict[str, Any]) -> dict[str, Any]:
    """The recorded conditions, asserted for every run of a deployment of ours."""
    found: dict[str, Any] = run["run"]["conditions"]
    assert found["ours"] and found["simulated"] and found["deployment"] == NAME
    assert all(found[name] for name in ("recipe_hash", "engine_version", "client", "clock", "tokenizer")), found
    assert found["image"].startswith("sha256:") and "--served-model-name" in found["flags"]
    assert not any("sk-" in word for word in found["flags"])
    assert [line.split(":")[0] for line in found["nodes"]] == ["spark-1", "spark-2"]
    assert found["tokenizer"] == "/tokenize of the server"
    (level,) = run["levels"]
    assert level["server"]["memory_available_least"] > 1e9 and level["server"]["generation_tokens_total"] >= 8 * 4
    return found


def bench(drive: CommandDriver, *words: str, home: str = "home") -> CallResult:
    return drive.run("bench", *words, env={"HOME": str(drive.folder / home)})


def command_output(drive: CommandDriver, *words: str) -> str:
    """The output of a command that needs no cluster."""
    env = {**os.environ, "HOME": str(drive.folder / "home")}
    code, out, err = run_warm(words, env, drive.folder)
    assert code == 0, err
    return out


def requests(drive: CommandDriver) -> list[str]:
    """The requests of the newest run that are kept so far."""
    return command_output(drive, "runs", "export", "last", "--format", "csv").splitlines()[1:]


@pytest.mark.full
def test_the_gateway_is_measured_with_all_that_the_engine_reports(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """The gateway lets neither figures nor tokenizer through: they come from the engine behind it, all the rest too.

    Its key and its authority are found where `up` left them.
    """
    url = f"https://{testbed_nodes[0].mgmt}:{GATEWAY}/v1"
    driver.good("up", driver.recipe("docker", STEADY, serving={"expose": "all", "api_key_env": "DRILL_KEY"}))
    engine = check_conditions(measured(bench(driver, NAME, *SHORT)))
    assert engine["front_door"] == "" and "port 8000 through ssh" in engine["endpoint"]
    run = measured(bench(driver, url, *SHORT))
    assert check_conditions(run)["front_door"] == url
    text = command_output(driver, "report", run["run"]["id"], "--format", "md")
    assert url in text and engine["recipe_hash"] in text and engine["image"] in text and "simulated" in text.lower()
    refused = bench(driver, url, *SHORT, "--key-file", "wrong.key")
    assert (refused.code, "401" in refused.err, "Traceback" in refused.err) == (2, True, False), str(refused)
    stranger = bench(driver, url, *SHORT, "--key-file", str(keys_folder(driver) / "default.key"), home="elsewhere")
    assert (stranger.code, "certificate is not trusted" in stranger.err) == (5, True), str(stranger)
    assert "SSL_CERT_FILE" in stranger.err and "Traceback" not in stranger.err


@pytest.mark.full
def test_a_gateway_on_the_heads_loopback_is_measured_through_ssh(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """A deployment is measured by its name; a run that was stopped goes on through the same gateway."""
    driver.good("up", driver.recipe("process", STEADY))
    run = measured(bench(driver, NAME, "--gateway", *SHORT))
    found = run["run"]["conditions"]
    assert found["front_door"] == f"https://127.0.0.1:{GATEWAY}/v1" and found["endpoint"].endswith("through ssh)")
    assert found["recipe_hash"] and run["levels"][0]["server"]["memory_available_least"] > 1e9
    going = driver.start("bench", NAME, "--gateway", "--profile", "./long.yaml").saw("1 of 1")
    stopped = going.interrupt().finish()
    assert stopped.code == 130 and "--resume" in stopped.err, str(stopped)
    resumed = bench(driver, "--resume", "last", "--seconds", "10", "--json")
    assert measured(resumed)["run"]["conditions"]["front_door"] == found["front_door"]


@pytest.mark.full
def test_a_run_outlives_a_restart_of_what_it_measures(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """A rank is killed in the middle: requests fail and are counted, the run ends in time and reports what it is
    worth."""
    url = f"https://{testbed_nodes[0].mgmt}:{GATEWAY}/v1"
    driver.good("up", driver.recipe("docker", STEADY, serving={"expose": "all"}))
    going = driver.start("bench", url, "--profile", "./long.yaml", "--gate", "gates.txt").saw("1 of 1")
    wait_until(lambda: len(requests(driver)) >= 4, "the first answers")
    testbed_nodes[1].sh(f"docker kill sparkwright-{NAME}-rank1")
    done = going.finish(90)
    assert (done.code, "FAIL  errors == 0" in done.out, "Traceback" in done.err) == (1, True, False), str(done)
    run = json.loads(command_output(driver, "runs", "show", "last", "--json"))["run"]
    (level,) = run["levels"]
    assert run["run"]["state"] == "done" and 0 < level["good"] < level["sent"] == 40, run
    failed = level["sent"] - level["good"]  # few, where a busy machine asks seldom while the rank is away
    assert any("failed" in doubt for doubt in level["doubts"]) == (failed > ERRORS * level["sent"]), level["doubts"]
    assert set(level["errors"]) <= {"http-503", "http-502", "aborted", "cut", "error-in-stream"}, level["errors"]
