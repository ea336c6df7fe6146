"""Our wrapper around SGLang's server, run for real around a stand-in that prints its key as SGLang does."""

import subprocess
import sys
from pathlib import Path

from sparkwright.engines import launchers

WRAPPER = Path(launchers.__file__).with_name("sglang_server.py")
# Reads --config as SGLang does, logs all arguments, and starts a scheduler anew (spawn) that logs them, too.
SCHEDULER = """
import logging

def scheduler(args):
    logging.basicConfig(level="INFO", format="child %(message)s")
    logging.info("server_args=%s", args)
"""
STAND_IN = """
import json, logging, multiprocessing, sys
from sglang.scheduler import scheduler

def arguments():
    argv = sys.argv[1:]
    at = argv.index("--config")
    return {**json.load(open(argv[at + 1])), "rest": argv[:at] + argv[at + 2:]}

if __name__ == "__main__":
    logging.basicConfig(level="INFO", format="main %(message)s")
    logging.info(f"server_args={arguments()}")
    logging.info("%d of %s", "odd", arguments())
    child = multiprocessing.get_context("spawn").Process(target=scheduler, args=(arguments(),))
    child.start()
    child.join()
    sys.exit(child.exitcode or 7)
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    package = folder / "sglang"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "scheduler.py").write_text(SCHEDULER)
    (package / "launch_server.py").write_text(STAND_IN)
    env = {"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"}
    return subprocess.run((sys.executable, str(WRAPPER), *words), env=env, capture_output=True, text=True, timeout=60)


def test_the_key_reaches_the_server_and_no_log(tmp_path: Path) -> None:
    """The server's own process and those it starts again print a mask; all other arguments and the exit code pass.

    A log call that is wrong in itself shows no arguments and ends nothing.
    """
    key = tmp_path / "sglang.yaml"
    key.write_text('{"api-key": "k-only-here"}')
    done = run(tmp_path, "--tp-size", "2", "--config", str(key))
    printed = done.stdout + done.stderr
    assert "k-only-here" not in printed
    told = "server_args={'api-key': '***', 'rest': ['--tp-size', '2']}"
    assert f"main {told}" in printed
    assert f"child {told}" in printed
    assert "main %d of %s (its arguments do not fit)" in printed
    assert done.returncode == 7
