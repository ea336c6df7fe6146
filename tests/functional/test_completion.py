"""Completion in real interactive shells, on a pseudo terminal, and Ctrl-C while the command is still loaded."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


SHELLS = {
    "bash": (
        ("bash", "--norc", "--noprofile", "-i"),
        'eval "$(_SPARKWRIGHT_COMPLETE=bash_source sparkwright)"',
    ),
    "zsh": (
        ("zsh", "-f", "-i"),
        'autoload -Uz compinit && compinit -u; eval "$(_SPARKWRIGHT_COMPLETE=zsh_source sparkwright)"',
    ),
    "fish": (("fish", "--no-config", "-i"), "_SPARKWRIGHT_COMPLETE=fish_source sparkwright | source"),
}
_ASKED, _ANSWER = re.compile(r"\x1b\[0?c"), b"\x1b[?62c"


class InteractiveShell:
    """An interactive shell whose `sparkwright` is this checkout."""

    def __init__(self, folder: Path, shell: str) -> None:
        (folder / "bin").mkdir()
        script = folder / "bin/sparkwright"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m sparkwright "$@"\n')
        script.chmod(0o755)
        kind = "xterm" if shell == "fish" else "dumb"
        environ = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder), "PS1": "$ ", "TERM": kind}
        pid, self.terminal = pty.fork()
        if not pid:
            os.chdir(folder)
            os.execvpe(shell, SHELLS[shell][0], environ)
        self.pid = pid

    def until(self, pattern: str) -> str:
        said, end = "", time.monotonic() + PATIENCE
        while not re.search(pattern, said):
            ready, _, _ = select.select([self.terminal], [], [], max(end - time.monotonic(), 0.0))
            assert ready, f"no {pattern!r} in {said!r}"
            came = os.read(self.terminal, 65536).decode("utf-8", "replace")
            if _ASKED.search(came):  # fish asks what terminal this is, and waits for it
                self.type(_ANSWER.decode())
            said += came
        return said

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@pytest.mark.parametrize("shell", ["bash", *(pytest.param(one, marks=pytest.mark.full) for one in ("zsh", "fish"))])
def test_tab_completes_in_a_real_shell(tmp_path: Path, shell: str) -> None:
    """Guards the script: a verb, a recipe, its profile behind @, and a file; nothing is printed in between."""
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    terminal = InteractiveShell(tmp_path, shell)
    (tmp_path / "own-recipe.yaml").write_text("")
    try:
        terminal.type(f'{SHELLS[shell][1]}; echo re""ady\n')
        terminal.until(r"ready\r?\n")
        for typed, wanted in (
            ("sparkwright expl\t", r"explain "),
            ("gloo-wrong-int\t", r"erface-loopback "),
            ("\x15sparkwright plan gpt-oss-1\t", r"gpt-oss-120b "),
            ("\x15sparkwright plan deepseek-v4-flash@51\t", r"(@|\b)512k "),
            ("\x15sparkwright up own\t", r"-recipe\.yaml "),
        ):
            terminal.type(typed)
            said = terminal.until(wanted)
            assert "stopped" not in said and "Traceback" not in said
    finally:
        terminal.close()


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
