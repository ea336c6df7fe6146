"""Nodes and settings for the sshd of the tests."""

import os
from pathlib import Path
from typing import Any

from fakes.sshd import Sshd
from sparkwright.adapters.ssh import SshSettings
from sparkwright.domain.cluster import Node, NodePaths

# A developer's own agent must not decide a test.
ENVIRON = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}


def settings(server: Sshd, **changed: Any) -> SshSettings:
    values: dict[str, Any] = {
        "config": server.config,
        "control": server.control,
        "environ": ENVIRON,
        "persist": 5,
        **changed,
    }
    return SshSettings(**values)


def make_node(folder: Path, ssh: str = "node", **changed: Any) -> Node:
    return Node("spark-1", ssh, paths=NodePaths(state=str(folder / "state")), **changed)
