"""A real engine through the real command: llama.cpp's server, a GGUF of random weights, a streamed chat."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

import sparkwright
from cluster.drive import assert_clean
from cluster.stage_drive import VENV, StageDriver, StageResult
from functional.tiny_gguf import TO_THE_LIMIT, write_tiny_gguf
from testbed import ContainerNode

SHIPPED = Path(sparkwright.__file__).parent / "recipes/shipped/tiny-llama-cpp.yaml"
GGUF = "/home/spark/models/tiny.gguf"
PORT = 8080


@pytest.fixture
def driver(tmp_path: Path, ssh_config: Path) -> StageDriver:
    return StageDriver(tmp_path, ssh_config)


@pytest.fixture
def derived() -> dict[str, Any]:
    """The shipped recipe with the virtual environment that holds xllamacpp, for a model of random weights."""
    shipped: dict[str, Any] = yaml.safe_load(SHIPPED.read_text())
    shipped["engine"]["venv"] = VENV
    shipped["serving"]["coherence"] = False
    return shipped


@pytest.fixture
def gguf_bytes(tmp_path: Path) -> bytes:
    return write_tiny_gguf(tmp_path / "tiny.gguf").read_bytes()


def up(drive: StageDriver, recipe: dict[str, Any]) -> StageResult:
    return drive.run("up", drive.write("tiny-llama-cpp.yaml", recipe))


def test_from_recipe_to_a_streamed_chat(
    driver: StageDriver,
    testbed_nodes: list[ContainerNode],
    derived: dict[str, Any],
    gguf_bytes: bytes,
    ssh_config: Path,
) -> None:
    """`up` ends ready with a real answer, what the plan had said is kept beside what came, `status` and `logs` agree,
    a client streams, `down` leaves nothing."""
    head = testbed_nodes[0]
    head.put(GGUF, gguf_bytes)
    told = up(driver, derived)
    assert told.code == 0, told.text
    assert "tiny-llama-cpp: ready" in told.out and "tokens, the first after" in told.out
    assert "SIMULATED" not in told.text
    compared = json.loads(driver.run("plan", "--history", "--json").out)["rows"]
    assert [(one["node"], one["quantity"], one["measured"] > 0) for one in compared] == [(head.name, "start", True)]
    assert "already serving" in driver.run("up", "./tiny-llama-cpp.yaml").out
    seen = json.loads(driver.run("status", "--json").out)
    assert [(d["name"], d["state"], d["simulated"]) for d in seen["deployments"]] == [
        ("tiny-llama-cpp", "ready", False)
    ]
    assert "listening on http://127.0.0.1:8080" in driver.run("logs", "tiny-llama-cpp", "--tail", "0").out
    with forwarded(ssh_config, head.name) as base:
        assert streamed_tokens(base) == 8
    assert driver.run("down", "tiny-llama-cpp").code == 0
    assert_clean([head])
    assert head.sh(f"ss -ltnH 'sport = :{PORT}'") == ""


@pytest.mark.full
def test_a_model_on_the_other_node_comes_to_the_head(
    driver: StageDriver, testbed_nodes: list[ContainerNode], derived: dict[str, Any], gguf_bytes: bytes
) -> None:
    """`up` copies the file from the node that has it to the node that serves, and the engine loads the copy."""
    head, spare = testbed_nodes
    spare.put(GGUF, gguf_bytes)
    assert "weights: copied from spark-2 to spark-1" in driver.run("plan", driver.write("tiny.yaml", derived)).out
    told = driver.run("up", "./tiny.yaml")
    assert told.code == 0, told.text
    assert "tokens, the first after" in told.out
    assert head.sh(f"sha256sum < {GGUF}") == spare.sh(f"sha256sum < {GGUF}")
    assert driver.run("down", "tiny-llama-cpp").code == 0


@pytest.mark.full
def test_a_file_that_is_no_model_ends_with_llama_cpps_reason(
    driver: StageDriver, testbed_nodes: list[ContainerNode], derived: dict[str, Any]
) -> None:
    """MODEL006 names the file before the start. With --force the engine exits, and the error quotes its log."""
    head = testbed_nodes[0]
    head.put(GGUF, b"this is no GGUF at all" * 100)
    up(driver, derived).is_one_message(1, "MODEL006", "spark-1", "tiny.gguf")
    told = driver.run("up", "./tiny-llama-cpp.yaml", "--force", "to hear llama.cpp's own word")
    told.is_one_message(5, "rank 0 on spark-1 exited with code 1", "invalid magic")
    assert not [p for p in head.processes() if "llama_server" in p.command]
    assert driver.run("down", "tiny-llama-cpp").code == 0
    assert_clean([head])


@pytest.mark.full
def test_a_missing_file_is_refused_before_the_start(
    driver: StageDriver, testbed_nodes: list[ContainerNode], derived: dict[str, Any]
) -> None:
    """MODEL002 names the path and the node that was inspected."""
    told = up(driver, derived)
    told.is_one_message(1, "MODEL002", "tiny.gguf not found on any node", "looked on spark-1", "~/models/tiny.gguf")
    assert_clean(testbed_nodes[:1])


@pytest.mark.full
def test_a_recipe_without_a_gguf_file_is_refused(
    driver: StageDriver, testbed_nodes: list[ContainerNode], derived: dict[str, Any]
) -> None:
    """llama.cpp loads one file: a hub id or a folder is no model for it."""
    derived["model"] = {"id": "acme/tiny"}
    told = driver.run("plan", driver.write("tiny-llama-cpp.yaml", derived))
    told.is_one_message(1, "ENG017", "GGUF")


@pytest.mark.full
def test_the_shipped_recipe_wants_llama_server_on_the_path(
    driver: StageDriver, testbed_nodes: list[ContainerNode], gguf_bytes: bytes
) -> None:
    """The shipped recipe runs `llama-server`. The error says so if the node has none."""
    testbed_nodes[0].put(GGUF, gguf_bytes)
    told = driver.run("up", "tiny-llama-cpp")
    told.is_one_message(1, "ENG018", "spark-1", "llama-server is not in the node's PATH")


@contextmanager
def forwarded(ssh_config: Path, name: str) -> Iterator[str]:
    """Open the ssh tunnel that `up` proposes to the user; yield the URL of its local end."""
    argv = ["ssh", "-F", str(ssh_config), "-o", "ExitOnForwardFailure=yes", "-L", f"18080:127.0.0.1:{PORT}"]
    tunnel = subprocess.Popen([*argv, name, "echo open; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert tunnel.stdout is not None and tunnel.stdout.readline() == b"open\n"
        yield "http://127.0.0.1:18080"
    finally:
        tunnel.communicate(timeout=60)


def streamed_tokens(base: str) -> int:
    """Stream one chat with some text in it; return the completion tokens that the server's usage reports."""
    body = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, "stream": True}
    body |= TO_THE_LIMIT | {"stream_options": {"include_usage": True}}
    with httpx.stream("POST", f"{base}/v1/chat/completions", json=body, timeout=60) as answer:
        assert answer.status_code == 200
        chunks = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {")]
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
    return int(chunks[-1]["usage"]["completion_tokens"])
