"""The front door's proxy on the nodes: Debian's own is too old (it makes cut streams look whole), so the wheel's."""

import platform
import shutil
import sys
from pathlib import Path

from testbed.node import Node
from testbed.rootfs import PYTHON, find_uv
from testbed.shell import logged

VERSION = "2.11.7"
PACKAGE = f"caddyserver=={VERSION}"
AT = "/usr/local/bin/caddy"


def fetched(root: Path) -> Path:
    """The binary, downloaded once."""
    kept = root / f"caddy-{VERSION}"
    if kept.exists():
        return kept
    folder = root / "caddy.new"
    shutil.rmtree(folder, ignore_errors=True)
    common = ["--target", str(folder), "--no-deps", "--only-binary", ":all:", "--python-version", PYTHON, PACKAGE]
    machine = platform.machine()
    if uv := find_uv():
        words = [uv, "pip", "install", "--python-platform", f"{machine}-manylinux_2_28", *common]
    else:
        words = [sys.executable, "-m", "pip", "install", f"--platform=manylinux2014_{machine}", *common]
    logged(words, root / "caddy.log")
    next(path for path in folder.rglob("caddy") if path.is_file()).rename(kept)  # installers put it elsewhere each
    shutil.rmtree(folder)
    return kept


def bring(node: Node, binary: Path) -> None:
    if node.sh(f"{AT} version 2>/dev/null", check=False).startswith(f"v{VERSION}"):
        return
    node.put(f"{AT}.new", binary.read_bytes(), user="root")
    node.sh(f"chmod 755 {AT}.new && mv {AT}.new {AT}")
