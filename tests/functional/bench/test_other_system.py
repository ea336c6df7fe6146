"""A laptop that is no Linux."""

import subprocess
import sys

PROGRAM = """
import select, sys
for name in [name for name in dir(select) if "EPOLL" in name.upper()]:
    delattr(select, name)
from sparkwright.cli.main import run_command_line
run_command_line()
"""


def test_a_bench_without_epoll_is_refused_in_one_sentence() -> None:
    """Guards a laptop with macOS: it can do everything else, and reads why not this."""
    argv = [sys.executable, "-c", PROGRAM, "bench", "quick", "http://127.0.0.1:9/v1"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert "bench measures on Linux only" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and done.returncode == 2
