"""The scripts of facts, run by this machine's own shells."""

import os
import shutil
import subprocess
from pathlib import Path

from sparkwright.domain.command import Command, Completed
from sparkwright.facts.fact import Fact

SHELLS = [name for name in ("dash", "bash", "busybox") if shutil.which(name)]
BARE = "/usr/bin:/bin"


def run(command: Command, user: int | None = None, **env: str) -> Completed:
    done = subprocess.run(
        command.argv,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={"PATH": BARE, "HOME": os.environ.get("HOME", "/"), **env},
        check=False,
        user=user,
    )
    return Completed(done.returncode, done.stdout, done.stderr)


def read_fact(fact: Fact[object], **env: str) -> object:
    return fact.read(run(fact.command, **env))


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def path_with_tool(folder: Path, name: str, script: str) -> str:
    """A PATH on which `name` is this script, before the system's."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n" + script)
    (folder / name).chmod(0o755)
    return f"{folder}:{BARE}"
