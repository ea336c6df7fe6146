"""Keys: where they are, where they are not, and who can listen."""

import httpx
import pytest

from cluster.drive import NAME, QUICK, RUNTIMES, CommandDriver, assert_clean, containers
from testbed import ContainerNode

RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)
KEY = "sk-tests-0f8c1e5b'\"$x"
ENV = {"DRILL_KEY": KEY}
STATE = f"/home/spark/.local/state/sparkwright/deployments/{NAME}"


def client_status(node: ContainerNode, url: str, key: str = "") -> str:
    header = f"-H 'Authorization: Bearer {key}'" if key else ""
    quoted = header.replace(KEY, "sk-tests-0f8c1e5b'\\''\"$x")
    return node.sh(f"curl -s -m 60 -o /dev/null -w '%{{http_code}}' {quoted} {url}/v1/models", check=False)


def everywhere(drive: CommandDriver, nodes: list[ContainerNode]) -> dict[str, str]:
    """All that others may read or that is kept: argv, inspect, logs, state files, audit, what we saved here."""
    found = {}
    for node in nodes:
        found[f"argv {node.name}"] = "\n".join(p.command for p in node.processes())
        found[f"inspect {node.name}"] = str(containers(node))
        names = node.containers()
        found[f"logs {node.name}"] = "".join(node.sh(f"docker logs {name} 2>&1") for name in names)
        files = "find /home/spark/.local/state /run/lock /tmp /dev/shm -type f ! -name secrets.env"
        found[f"files {node.name}"] = node.sh(f"{files} -exec cat {{}} + || true")  # some are written anew
    home = drive.folder / "home"
    found["here"] = "".join(p.read_text(errors="replace") for p in home.rglob("*") if p.is_file())
    return found


@pytest.mark.full
@RUNTIME
def test_a_key_is_in_one_private_file_and_nowhere_else(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """Not in argv, not in `docker inspect`, not in logs, state or audit; 0600; gone after `down`."""
    recipe = driver.recipe(runtime, serving={"api_key_env": "DRILL_KEY"})
    done = driver.good("up", recipe, "--json", env=ENV)
    assert done.json["answer"]["completion_tokens"] > 0
    assert testbed_nodes[0].sh(f"stat -c '%a %U' {STATE}/rank0/secrets.env") == "600 spark"
    assert [where for where, text in everywhere(driver, testbed_nodes).items() if "sk-tests" in text] == []
    assert "sk-tests" not in done.out + done.err
    assert client_status(testbed_nodes[0], "http://127.0.0.1:8000") == "401"
    assert client_status(testbed_nodes[0], "http://127.0.0.1:8000", KEY) == "200"
    assert driver.good("status", env=ENV).out.count(": ready") == 1
    unproven = driver.run("status")
    assert "$DRILL_KEY, is not set here" in unproven.out and ": ready" not in unproven.out, str(unproven)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_key_that_is_not_set_is_asked_for(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """The variable is named before anything is done, with a way to make a good value."""
    done = driver.run("up", driver.recipe("process", serving={"api_key_env": "DRILL_KEY"}))
    assert done.code == 2 and "DRILL_KEY" in done.err and "openssl rand" in done.err, str(done)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_an_old_key_does_not_outlive_its_recipe(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A deployment that is replaced by one without a key has none, in either runtime."""
    driver.good("up", driver.recipe("docker", serving={"api_key_env": "DRILL_KEY"}), env=ENV)
    refused = driver.run("up", driver.recipe("process"))
    assert refused.code == 2 and "DRILL_KEY is not set" in refused.err and "--no-rollback" in refused.err, str(refused)
    driver.good("up", driver.recipe("process"), "--no-rollback")
    assert client_status(testbed_nodes[0], "http://127.0.0.1:8000") == "200"
    assert testbed_nodes[0].sh(f"find {STATE} -name secrets.env") == ""


@pytest.mark.full
def test_without_a_word_only_loopback_listens(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Nobody reaches the endpoint from another machine unless the recipe reports it."""
    driver.good("up", driver.recipe("process"))
    assert client_status(testbed_nodes[0], "http://127.0.0.1:8000") == "200"
    for address in (testbed_nodes[0].mgmt, testbed_nodes[0].fabric):
        assert client_status(testbed_nodes[1], f"http://{address}:8000") == "000"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://{testbed_nodes[0].mgmt}:8000/v1/models", timeout=60)


@pytest.mark.full
@RUNTIME
def test_expose_fabric_listens_there_only(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """The other node reaches it over the fabric, with a key as without; the management network does not."""
    recipe = driver.recipe(runtime, QUICK, serving={"expose": "fabric"})
    driver.good("up", recipe)
    assert client_status(testbed_nodes[1], f"http://{testbed_nodes[0].fabric}:8000") == "200"
    assert client_status(testbed_nodes[0], f"http://{testbed_nodes[0].mgmt}:8000") == "000"
    assert client_status(testbed_nodes[0], "http://127.0.0.1:8000") == "000"
    assert driver.good("status").out.count(": ready") == 1
