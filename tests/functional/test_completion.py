"""Completion in a real interactive bash, on a pseudo terminal, and Ctrl-C while the command is still loaded."""

import os
import pty
import re
import select
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE = 60.0


class Bash:
    """An interactive bash whose `sparkwright` is this checkout."""

    def __init__(self, folder: Path) -> None:
        (folder / "bin").mkdir()
        script = folder / "bin/sparkwright"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m sparkwright "$@"\n')
        script.chmod(0o755)
        environ = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder), "PS1": "$ ", "TERM": "dumb"}
        pid, self.terminal = pty.fork()
        if not pid:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environ)
        self.pid = pid

    def until(self, pattern: str) -> str:
        said, end = "", time.monotonic() + _PATIENCE
        while not re.search(pattern, said):
            ready, _, _ = select.select([self.terminal], [], [], max(end - time.monotonic(), 0.0))
            assert ready, f"no {pattern!r} in {said!r}"
            said += os.read(self.terminal, 65536).decode("utf-8", "replace")
        return said

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def test_tab_completes_in_a_real_bash(tmp_path: Path) -> None:
    """Guards the script: a verb, a recipe, its profile behind @, and a file; nothing is printed in between."""
    bash = Bash(tmp_path)
    (tmp_path / "own-recipe.yaml").write_text("")
    try:
        bash.type('eval "$(_SPARKWRIGHT_COMPLETE=bash_source sparkwright)"; echo re""ady\n')
        bash.until("ready")
        for typed, wanted in (
            ("sparkwright expl\t", r"sparkwright explain "),
            ("gloo-wrong-int\t", r"erface-loopback "),
            ("\x15sparkwright plan gpt-oss-1\t", r"gpt-oss-120b "),
            ("\x15sparkwright plan deepseek-v4-flash@51\t", r"\b512k "),
            ("\x15sparkwright up own\t", r"-recipe\.yaml "),
        ):
            bash.type(typed)
            said = bash.until(wanted)
            assert "stopped" not in said and "Traceback" not in said
    finally:
        bash.close()


def test_ctrl_c_while_modules_are_loaded_prints_no_traceback() -> None:
    """Guards the first 0.3 s: the interrupt comes from inside of an import, wherever that is."""
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["sparkwright"]
    module, function = entry.split(":")
    for name in ("click", "sparkwright.domain.errors", "sparkwright.cli.recipes"):
        code = f"""
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
sys.argv = ["sparkwright", "recipes", "list"]
from {module} import {function}
{function}()
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr.strip()) == (130, "stopped"), name
