"""`sparkwright plan --emit` as a user calls it, and what it wrote really serving: two simulated ranks, without us."""

import http.client
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from functional.command import UserShell
from patience import wait_until
from sparkwright.cli.demo import cluster_yaml
from sparkwright.simulator.nodes import make_cluster

NODES = ("demo-1", "demo-2")


@pytest.fixture
def user_shell(tmp_path: Path) -> Iterator[UserShell]:
    one = UserShell(tmp_path)
    (tmp_path / "cluster.yaml").write_text(cluster_yaml(make_cluster(tmp_path / "nodes")))
    yield one
    one.clean()


def chat_answer(port: int) -> str:
    """One chat with the endpoint; '' while nobody listens."""
    body = json.dumps({"model": "twin-tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        answer = json.load(connection.getresponse())
    except OSError:
        return ""
    finally:
        connection.close()
    return str(answer["choices"][0]["message"]["content"]) if "choices" in answer else ""


def test_the_emitted_scripts_serve(user_shell: UserShell) -> None:
    """Started in the written order by sh alone, the ranks answer a chat; stopped, they leave no process."""
    code, _, err = user_shell.run("plan", "twin", "--cluster", "cluster.yaml", "--emit", "shell", "--out", "out")
    assert (code, err) == (0, "")
    scripts = {path.parent.name: path for path in (user_shell.folder / "out").glob("*/rank.sh")}
    head, *workers = (line.partition(" on ")[2].split(",")[0] for line in _titles(scripts))
    port = int(scripts[head].read_text().partition("--port ")[2].split()[0])
    try:
        for node in (*workers, head):
            subprocess.run([str(scripts[node]), "start"], env=user_shell.environ, check=True, timeout=60)
        wait_until(lambda: chat_answer(port), "the ranks to answer", poll=0.1)
        assert subprocess.run([str(scripts[head]), "start"], env=user_shell.environ, timeout=60).returncode == 1
    finally:
        ended = [subprocess.run([str(scripts[node]), "stop"], env=user_shell.environ, timeout=60) for node in scripts]
    assert [one.returncode for one in ended] == [0, 0]
    assert chat_answer(port) == ""
    shutil.rmtree(user_shell.folder / "nodes")
    assert user_shell.left == []


def test_the_scripts_of_two_groups_serve_side_by_side(user_shell: UserShell) -> None:
    """Groups are those that `up --replicas` would choose, each with its own ports where nodes are one machine."""
    words = ("--replicas", "2", "--cluster", "cluster.yaml", "--emit", "shell", "--folder", "out")
    code, _, err = user_shell.run("plan", "simulator@one-node", *words)
    assert code == 0, err
    scripts = sorted((user_shell.folder / "out").glob("*/*/rank.sh"))
    assert [path.parent.parent.name for path in scripts] == ["simulator-r1", "simulator-r2"]
    assert len({path.parent.name for path in scripts}) == 2
    ports = [int(path.read_text().partition("--port ")[2].split()[0]) for path in scripts]
    assert ports[1] == ports[0] + 1
    try:
        for script in scripts:
            subprocess.run([str(script), "start"], env=user_shell.environ, check=True, timeout=60)
        wait_until(lambda: all(chat_answer(port) for port in ports), "both groups to answer", poll=0.1)
    finally:
        ended = [subprocess.run([str(script), "stop"], env=user_shell.environ, timeout=60) for script in scripts]
    assert [one.returncode for one in ended] == [0, 0]
    shutil.rmtree(user_shell.folder / "nodes")
    assert user_shell.left == []


def _titles(scripts: dict[str, Path]) -> list[str]:
    """The second line of each script, rank 0 first: `# rank 0 of ... on NODE, simulated`."""
    return sorted(path.read_text().splitlines()[1] for path in scripts.values())


def test_files_hold_no_secret_and_a_filled_one_stays(user_shell: UserShell) -> None:
    """The key of the caller's environment is in no file; a second emit leaves the filled-in template alone."""
    recipe = user_shell.folder / "keyed.yaml"
    shipped = (
        "name: keyed\ntitle: with a key\nmodel: {id: a/b, simulated: true}\nengine: {name: simulator, version: 0.21.0, "
    )
    recipe.write_text(f"{shipped}runtime: process}}\nserving: {{api_key_env: MY_KEY}}\n")
    words = (
        "plan",
        "./keyed.yaml",
        "--cluster",
        "cluster.yaml",
        "--emit",
        "systemd",
        "--out",
        "out",
        "--force",
        "test",
    )
    code, _, err = user_shell.run(*words, MY_KEY="k-only-here-4711")
    assert code == 0, err
    files = [path for path in (user_shell.folder / "out").rglob("*") if path.is_file()]
    assert files and not [path for path in files if "k-only-here-4711" in path.read_text()]
    (template,) = [path for path in files if path.name == "secrets.env"]
    assert template.stat().st_mode & 0o777 == 0o600 and "VLLM_API_KEY=\n" in template.read_text()
    template.write_text("VLLM_API_KEY=mine\n")
    assert user_shell.run(*words, MY_KEY="k-only-here-4711")[0] == 0
    assert template.read_text() == "VLLM_API_KEY=mine\n"


def test_one_file_is_ready_for_a_pipe(user_shell: UserShell) -> None:
    """Kubernetes' single file is all of stdout; what a form cannot express is a usage error."""
    words = ("--cluster", "cluster.yaml", "--emit")
    code, out, err = user_shell.run("plan", "twin", *words, "k8s")
    assert (code, out) == (2, "") and "runtime is process" in err and "hint" in err
    code, out, err = user_shell.run("plan", "twin", *words, "shell")
    assert code == 0 and out.startswith("# ==> ")
