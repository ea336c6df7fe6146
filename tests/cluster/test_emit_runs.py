"""The files of `plan --emit`, carried to two nodes and started there as their own instructions state: without us.

Commands and their order come out of the written texts; systemd, Docker Compose, dockerd and sh are the real ones.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.drive import NAME, CommandDriver
from cluster.engines_drive import listening, put_models, recipe, streamed
from cluster.stage_drive import wait_for
from testbed import ContainerNode
from testbed.shell import together

KEY = "sk-emit-$HOME"  # nobody may expand it on its way
LAUNCH_KEY = "c0ffee" * 10
UNIT = f"sparkwright-{NAME}.service"
UNDO = f"systemctl stop {UNIT}; rm -rf /etc/systemd/system/{UNIT} /etc/sparkwright; systemctl daemon-reload"
LIMITS = {"context": 2048, "sequences": 4, "batched_tokens": 2048}
# form, engine, runtime: each form and each runtime, with launchers, with a key of the launch, with a secret file.
CASES = [
    ("systemd", "trtllm", "process"),
    ("systemd", "sglang", "docker"),
    ("systemd", "sglang", "process"),
    ("compose", "trtllm", "docker"),
    ("compose", "sglang", "docker"),
    ("shell", "vllm-ray", "docker"),
    ("shell", "sglang", "process"),
]
KEYLESS = ("trtllm",)  # its server looks at no key: ENG021
ACTIVE = {"systemd": f"systemctl is-active {UNIT}", "compose": "docker-compose ps", "shell": "./rank.sh status"}


@pytest.fixture(autouse=True)
def prepared(driver: CommandDriver, testbed_nodes: list[ContainerNode], tmp_path: Path) -> Iterator[None]:
    """Weights where the recipes look for them; afterwards what root has installed goes again."""
    driver.simulated = True
    put_models(testbed_nodes, tmp_path)
    yield
    together(lambda node: node.sh(UNDO, check=False), testbed_nodes)


def emitted(drive: CommandDriver, form: str, engine: str, runtime: str) -> Path:
    """The written folder, with everything filled in that is left to the user."""
    own = {} if engine in KEYLESS else {"api_key_env": "MY_KEY"}
    plan = recipe(drive, engine, runtime, serving={**LIMITS, **own})
    drive.good("plan", plan, "--emit", form, "--out", "out", env={"MY_KEY": KEY})
    folder = drive.folder / "out"
    for path in filter(Path.is_file, folder.rglob("*")):
        assert KEY not in path.read_text()
        if path.stat().st_mode & 0o777 == 0o600:
            path.write_text(filled(path.read_text()))
    return folder


def filled(text: str) -> str:
    """A file of settings or a JSON object, as emitted, with values."""
    if text.startswith("{"):
        return json.dumps(dict.fromkeys(json.loads(text), KEY))
    return re.sub(r"^(\w*API_KEY)=$", rf"\1='{KEY}'", text, flags=re.M).replace("=\n", f"={LAUNCH_KEY}\n")


def copy_to_node(drive: CommandDriver, folder: Path, node: ContainerNode) -> None:
    """`scp` to the user's home, as anybody would."""
    words = ("scp", "-q", "-r", "-F", str(drive.testbed.ssh_config), str(folder / node.name), f"spark@{node.name}:")
    subprocess.run(words, check=True, timeout=60, stdin=subprocess.DEVNULL)


def written_steps(folder: Path, form: str) -> tuple[list[str], list[str], list[str]]:
    """The commands in the instructions: nodes in the order of starting; those that prepare and start; those that
    end."""
    if form == "shell":
        text = next(folder.glob("*/rank.sh")).read_text()
        begin, end = ["./rank.sh start"], ["./rank.sh stop"]
    else:
        text = (folder / "README.md").read_text()
        quoted = [words for words in text.split("`")[1::2] if " " in words]
        commands = [re.sub("^docker compose", "docker-compose", words) for words in quoted]
        at = next(n for n, command in enumerate(commands) if command.split()[-1] == "-f" or "-fu" in command)
        begin, end = commands[:at], commands[at + 1 :]
    (order,) = re.findall(r"in this order: (.*) \(head\)", text)
    return order.replace("then ", "").split(", "), begin, end


def run_in_folder(node: ContainerNode, form: str, command: str) -> str:
    """Run in the carried folder: by root where systemd is asked, else by the ssh user."""
    user = "root" if form == "systemd" else "spark"
    return node.sh(f"cd /home/spark/{node.name} && {command}", user=user)


@pytest.mark.full
@pytest.mark.parametrize(("form", "engine", "runtime"), CASES)
def test_it_serves_as_written_and_ends_as_written(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], form: str, engine: str, runtime: str
) -> None:
    """Followed word by word, the instructions end in a streamed answer for the key, and then in nothing left."""
    before = [listening(node) for node in testbed_nodes]
    folder = emitted(driver, form, engine, runtime)
    order, begin, end = written_steps(folder, form)
    assert order == ["spark-2", "spark-1"] and begin and end
    for name in order:
        node = driver.testbed.node(name)
        copy_to_node(driver, folder, node)
        for command in begin:
            run_in_folder(node, form, command)
    wait_for(testbed_nodes[0], f"curl -sfo /dev/null -H 'Authorization: Bearer {KEY}' http://127.0.0.1:8000/v1/models")
    assert "simulated" in streamed(testbed_nodes[0], KEY)
    assert not [
        node.name
        for node in testbed_nodes
        if not re.search("^active|Up|running", run_in_folder(node, form, ACTIVE[form]), re.M)
    ]
    for node in testbed_nodes:
        for command in end:
            run_in_folder(node, form, command)
    together(
        lambda node: node.sh(UNDO if form == "systemd" else f"rm -r /home/spark/{node.name}", check=False),
        testbed_nodes,
    )
    assert [left for node in testbed_nodes for left in node.leftovers() if not left.endswith("/log")] == []
    assert [listening(node) for node in testbed_nodes] == before
