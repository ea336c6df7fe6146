"""The statements of docs/guides/security.md, on two real nodes: who can reach what, and where no secret is."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cluster.drive import NAME, RUNTIMES, CommandDriver, assert_clean, containers
from cluster.stranger import Stranger, stranger
from patience import wait_until
from testbed import ContainerNode, Testbed, caddy

RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)
ENGINE_KEY = "sk-engine-4b1d9c77e2a05f36"
HUB_TOKEN = "hf_" + "q7Xw2LmN8vRt5ZbK"
GATEWAY = 8443
STATE = "/home/spark/.local/state/sparkwright"
WRONG = (
    *("", "x", "null", "undefined", "Bearer", "*", "default", "sk-", "sk-sw-", "sk-sw-" + "0" * 48),
    *("' or ''='", "%00", "../keys.json", "a" * 5000, ENGINE_KEY[:-1], ENGINE_KEY.upper(), HUB_TOKEN),
)


@pytest.fixture
def driver(driver: CommandDriver) -> CommandDriver:
    driver.supervise = True
    driver.env = {"DRILL_KEY": ENGINE_KEY, "HF_TOKEN": HUB_TOKEN, "SPARKWRIGHT_SUPERVISOR_SCALE": "0.3"}
    return driver


@pytest.fixture
def outsider(testbed: Testbed) -> Iterator[Stranger]:
    with stranger(testbed) as made:
        yield made


def served(drive: CommandDriver, runtime: str, engine_key: bool = True) -> Path:
    """Up and open to all; the folder with what `up` gave the user."""
    key = {"api_key_env": "DRILL_KEY"} if engine_key else {}
    recipe = drive.recipe(runtime, serving={"expose": "all", **key})
    done = drive.good("up", recipe)
    assert re.search(rf"https://\S+:{GATEWAY}/v1\n", done.out), str(done)
    assert ENGINE_KEY not in done.out + done.err
    folder = drive.folder / "home" / ".local" / "state" / "sparkwright" / "keys" / "testbed"
    assert default_key(folder) not in done.out + done.err
    return folder


def default_key(folder: Path) -> str:
    return (folder / "default.key").read_text().strip()


def client_status(
    who: Stranger, node: ContainerNode, key: str, ca: Path | None = None, path: str = "/v1/models"
) -> str:
    """The status that a client gets; 000 for none."""
    trust = ["--cacert", str(ca)] if ca else ["--insecure"]
    argv = ["curl", "-s", "-m", "10", *trust, "-o", "/dev/null", "-w", "%{http_code}", "--path-as-is"]
    return who.run(*argv, "-H", f"Authorization: Bearer {key}", f"https://{node.mgmt}:{GATEWAY}{path}")


@pytest.mark.full
@RUNTIME
def test_from_outside_only_ssh_and_the_gateway_answer(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], outsider: Stranger, runtime: str
) -> None:
    """All 65,535 ports of both nodes: nothing of the engine, its rendezvous, the supervisor or its figures."""
    served(driver, runtime, engine_key=runtime == "docker")
    assert [outsider.open_ports(node.mgmt) for node in testbed_nodes] == [[22, GATEWAY], [22]]
    driver.good("down", NAME)
    assert outsider.open_ports(testbed_nodes[0].mgmt) == [22]
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_only_a_known_key_gets_in(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], outsider: Stranger
) -> None:
    """Twenty wrong, missing or revoked keys get 401 from another host; the given CA suffices to trust the gateway."""
    folder = served(driver, "process")
    default = default_key(folder)
    assert client_status(outsider, testbed_nodes[0], default, folder / "ca.crt") == "200"
    made = driver.good("keys add", "laptop", "--json").json
    laptop = Path(made["file"]).read_text().strip()
    assert made["name"] == "laptop" and laptop not in json.dumps(made)
    assert client_status(outsider, testbed_nodes[0], laptop) == "200"
    driver.good("keys revoke", "laptop")
    wrong = (*WRONG, laptop, default[:-1], default + "0")
    assert len(wrong) == 20
    assert {key: client_status(outsider, testbed_nodes[0], key) for key in wrong} == dict.fromkeys(wrong, "401")
    assert [
        client_status(outsider, testbed_nodes[0], default, path=path)
        for path in ("/metrics", "/tokenize", "/v1/../health")
    ] == ["404"] * 3
    listed = driver.good("keys list")
    assert "default" in listed.out and "laptop" not in listed.out


@pytest.mark.full
def test_without_the_program_the_gateway_is_a_container(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], outsider: Stranger
) -> None:
    """The image caddy:2 in its place: the same gateway, back when it is killed, gone after `down`."""
    with caddy.in_an_image(testbed_nodes[0]):
        folder = served(driver, "process", engine_key=False)
        assert containers(testbed_nodes[0])[0]["Config"]["Image"] == "caddy:2"
        gateway = [
            client_status(outsider, testbed_nodes[0], key, folder / "ca.crt") for key in (default_key(folder), "wrong")
        ]
        assert gateway == ["200", "401"]
        testbed_nodes[0].sh("docker kill sparkwright-caddy-_gateway-8443")
        wait_until(lambda: client_status(outsider, testbed_nodes[0], "wrong") == "401", "the gateway to be back")
        driver.good("down", NAME)
        assert_clean(testbed_nodes)


def remembered(nodes: list[ContainerNode]) -> dict[str, str]:
    """Everything kept or shown anywhere, as root sees it: command lines, containers, units, journals, logs, audit."""
    found = {}
    for node in nodes:
        found[f"argv {node.name}"] = "\n".join(process.command for process in node.processes())
        found[f"inspect {node.name}"] = str(containers(node))
        found[f"logs {node.name}"] = "".join(node.sh(f"docker logs {name} 2>&1") for name in node.containers())
        found[f"journal {node.name}"] = node.sh("journalctl --no-pager --all 2>/dev/null", check=False)
        units = "/home/spark/.config/systemd /etc/systemd /run/systemd/system /run/user"
        found[f"units {node.name}"] = node.sh(f"grep -rhs '' --include='sparkwright*' {units}", check=False)
        secret = "! -name 'secrets.*' ! -path '*/ssh/id_*' ! -path '*/door/ca/*'"
        logs = f"find {STATE} /var/log -type f {secret}"
        found[f"files {node.name}"] = node.sh(f"{logs} -exec cat {{}} + | LC_ALL=C tr -cd '[:print:]\\n'")
    return found


# Another user of the node looks into all that was written since the test began, and into every process that lets it.
LOOK = """
import os, sys
since, secrets = float(sys.argv[1]), [line.strip().encode() for line in sys.stdin]
def holds(path):
    try:
        with open(path, "rb") as file:
            text = file.read(1 << 26)
    except OSError:
        return False
    return any(secret in text for secret in secrets)
def fresh(path):
    try:
        return os.lstat(path).st_ctime >= since and os.path.isfile(path) and not os.path.islink(path)
    except OSError:
        return False
for top, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if os.path.join(top, f) not in ("/proc", "/sys")]
    for path in (os.path.join(top, name) for name in files):
        if fresh(path) and holds(path):
            print(path)
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("cmdline", "environ"):
        if holds(f"/proc/{pid}/{name}"):
            print(f"/proc/{pid}/{name}")
"""


def seen_by_another_user(node: ContainerNode, since: str, secrets: Sequence[str]) -> list[str]:
    """The places with a secret. The secrets go in by stdin: the search itself shows them to nobody."""
    argv = ["python3", "-c", LOOK, since]
    done = node.exec(argv, user="nodocker", input="\n".join(secrets) + "\n", timeout=120)
    # The program itself knows how a private key begins; it is new where another test had moved it.
    return [path for path in done.stdout.split() if path != "/usr/local/bin/caddy"]


@pytest.mark.full
@RUNTIME
def test_secrets_are_where_they_must_be_and_nowhere_else(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], outsider: Stranger, runtime: str
) -> None:
    """No key, token or private half in any command line, inspect output, unit, journal, log or readable file."""
    since = testbed_nodes[0].sh("date +%s")
    folder = served(driver, runtime)
    default = default_key(folder)
    for key in (default, "wrong-key-of-a-stranger-81c2"):
        client_status(outsider, testbed_nodes[0], key)
    secrets = (ENGINE_KEY, HUB_TOKEN, default, "wrong-key-of-a-stranger-81c2", "PRIVATE KEY-----")
    found = [
        (where, secret) for where, text in remembered(testbed_nodes).items() for secret in secrets if secret in text
    ]
    assert found == []
    testbed_nodes[0].write("/tmp/everybody", ENGINE_KEY)
    assert seen_by_another_user(testbed_nodes[0], since, secrets) == ["/tmp/everybody"], (
        "the search itself finds what is there"
    )
    assert seen_by_another_user(testbed_nodes[1], since, secrets) == []
    kept = [path for path in driver.folder.rglob("*") if path.is_file() and path.parent != folder]
    for secret in secrets[:3]:
        assert [path for path in kept if secret.encode() in path.read_bytes()] == []
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.key")} == {0o600}
