"""The command as on a Mac: another platform name, no epoll, nothing of Linux in os and socket, and no /proc to read.

Not run here, for it takes a real Mac: Apple's OpenSSH, BSD tools, case-insensitive paths, the keychain's agent; and not
run at all: `bench`, `soak` and `tune`, whose load client is Linux's, and nodes that are `local`. All
unit tests of the CLI run but the slow ones that are marked full.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patience import CALL
from unit.for_each import for_each

pytestmark = pytest.mark.full

MAC = """
import os, select, selectors, signal, socket, sys, sysconfig
sysconfig.get_config_vars()  # of the Python that runs here, which has no other file
for module, names in {
    select: ["epoll"],
    selectors: ["EpollSelector"],
    os: ["sched_getaffinity", "sched_setaffinity", "pidfd_open", "posix_fadvise", "copy_file_range", "memfd_create",
         "eventfd", "O_TMPFILE", "O_DIRECT", "getrandom", "splice", "setns", "unshare"],
    socket: ["AF_NETLINK", "AF_PACKET", "SO_PEERCRED"],
    signal: ["pidfd_send_signal"],
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

selectors.DefaultSelector = selectors.PollSelector  # a Mac has kqueue

def refuse(event, given):
    if event in ("open", "os.listdir", "os.scandir") and str(given[0]).startswith(("/proc", "/sys/")):
        raise AssertionError(f"{event} {given[0]}")

sys.addaudithook(refuse)
sys.platform = "darwin"
"""
RUN = MAC + "from sparkwright.cli.main import run\nsys.exit(run(sys.argv[1:], False))\n"
IMPORT = (
    MAC
    + """
import importlib
from sparkwright.cli.main import VERBS, run
for module, attribute, _ in VERBS.values():
    getattr(importlib.import_module(f"sparkwright.cli.{module}"), attribute)
assert not any(run([verb, "--help"], False) for verb in VERBS)
"""
)
UNIT = MAC + "import pytest\nsys.exit(pytest.main(sys.argv[1:]))\n"
LOG = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


def python(folder: Path, program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    argv = (sys.executable, "-c", program, *words)
    return subprocess.run(argv, capture_output=True, text=True, cwd=folder, env=env, timeout=CALL)


def test_every_verb_is_imported_and_prints_its_help(tmp_path: Path) -> None:
    """Guards the start of each command: no module needs what a Mac lacks."""
    done = python(tmp_path, IMPORT)
    assert done.returncode == 0, done.stderr[-2000:]


@for_each(
    "words, code, shown",
    [
        (("recipes", "list"), 0, "gpt-oss-120b"),
        (("plan", "gpt-oss-120b", "--nodes", "1", "--why"), 0, "KV"),
        (("explain", "NET011"), 0, "NET011"),
        (("diagnose", "crash.log"), 1, "memory"),
        (("runs", "list"), 0, ""),
        (("check",), 3, "refused"),
        (("status",), 3, "refused"),
        (("init", "--dry-run"), 3, "may not log in"),
        (("bench", "http://127.0.0.1:9"), 2, "Linux only"),
    ],
)
def test_the_main_verbs_run(tmp_path_factory: object, words: tuple[str, ...], code: int, shown: str) -> None:
    """Guards what a laptop is for: plans, logs, and the way to nodes, which ends at an ssh that reaches nobody."""
    folder = tmp_path_factory.mktemp("mac")  # type: ignore[attr-defined]
    (folder / "cluster.yaml").write_text("nodes: [{name: a, ssh: 'nobody@127.0.0.1'}]\n")
    (folder / "ssh").write_text("Host *\n  Port 9\n")
    (folder / "crash.log").write_text(LOG)
    ssh = ("--ssh-config", str(folder / "ssh")) if words[0] in ("check", "status", "init") else ()
    done = python(folder, RUN, *words, *ssh)
    printed = done.stdout + done.stderr
    assert (done.returncode, shown in printed) == (code, True), f"{words}: {done.returncode}\n{printed[-2000:]}"


def test_the_units_of_the_cli(tmp_path: Path) -> None:
    """Guards what the commands print and decide, on the platform of most laptops."""
    tests = str(Path(__file__).parents[1] / "unit/cli")
    done = python(tmp_path, UNIT, "-q", "-p", "no:cacheprovider", "-m", "not full", tests)
    assert done.returncode == 0, done.stdout[-3000:]
