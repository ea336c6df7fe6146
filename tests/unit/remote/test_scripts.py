"""The shell scripts that lie next to the modules that send them to nodes."""

import re
import subprocess
from pathlib import Path

import pytest

import sparkwright
from sparkwright.domain.cluster import Transfer
from sparkwright.remote import staging
from sparkwright.remote.host import script_texts

SCRIPTS = sorted(Path(sparkwright.__file__).parent.rglob("*.sh"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_script_is_shell_and_each_section_is_used(path: Path) -> None:
    """Guards that a node's sh can parse what it is sent, and that no section is left over."""
    found = subprocess.run(["sh", "-n", str(path)], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    users = SCRIPTS if path.stem == "host" else [path]
    code = "".join(one.with_suffix(".py").read_text() for one in users)
    sections = re.findall(r"^#: (\w+)$", path.read_text(), re.MULTILINE)
    assert [name for name in sections if not re.search(f"[\"']{name}[\"']", code)] == []


def test_comments_above_a_section_stay_here() -> None:
    """Guards that a node gets the section from its first line of code, with the values that the module fills in."""
    text = script_texts("sparkwright.remote.service", MARK="# ours:")("mine")
    assert text.startswith("\nmine() {")
    assert "# ours:" in text
    assert "@MARK@" not in text


def test_every_ssh_of_a_copy_notices_a_dead_network() -> None:
    """A connection whose other end is gone lasts for hours without it, and the copy with it."""
    peer = staging.Peer("ai", "10.0.0.2", 22, "10.0.0.2 ssh-ed25519 KEY\n", name="spark-2", source="spark-1")
    copies = staging.push_tree("/a", "/b", peer, Transfer()), staging.copy_tree("/a", "/b", peer)
    assert '"patience": 60.0' in " ".join(copies[0].argv), "both ends give up a silent peer after a minute"
    for command in (*copies, staging.copy_image("a:1", peer)):
        assert "-o ServerAliveInterval=5 -o ServerAliveCountMax=6" in command.argv[2]
        assert "KEY" not in " ".join(command.argv[3:]) and len(" ".join(command.argv[3:])) < 500
