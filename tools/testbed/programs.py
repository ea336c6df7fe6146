"""Other engines' programs on the nodes and in the engine's image: each is the simulator in that engine's dialect.

In HOME/bin, which is the nodes' venv and first in the image's PATH, and as Python modules for `python3 -m`.
"""

from collections.abc import Iterator
from pathlib import Path

from testbed.rootfs import HOME

LIB = f"{HOME}/programs/lib"
OTHERS = Path(__file__).resolve().parents[1] / "simulators"
OWN = ("vllm", "sparkwright-twin")  # the second replaces the base image's
NAMES = (*OWN, "trtllm-serve", "trtllm-llmapi-launch", "llama-server", "rpc-server", "tensorfold")
IN_APP = ("llama-server", "rpc-server")  # where the published images have them
MODULES = {"vllm/entrypoints/cli/main": "vllm", "sglang/launch_server": "sglang"}
SCRIPT = """#!/bin/sh
py=/{home}/bin/python3
[ -x $py ] || py=/usr/bin/python3
{others}exec $py -m {module} "$@"
"""
# The simulator itself needs no Ray; over one it is a program of ours.
ON_RAY = 'case " $* " in *" --distributed-executor-backend ray "*) exec $py -m simulators vllm "$@" ;; esac\n'
MODULE = """import sys

from simulators.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["{word}", *sys.argv[1:]]))
"""


def program_files() -> Iterator[tuple[str, bytes, int]]:
    """Path from the root, content, mode."""
    for path in sorted(OTHERS.glob("*.py")):
        yield f"{LIB}/simulators/{path.name}", path.read_bytes(), 0o644
    for name in NAMES:
        module = "sparkwright.simulator" if name in OWN else f"simulators {name}"
        script = SCRIPT.format(home=HOME, module=module, others=ON_RAY if name == "vllm" else "").encode()
        yield f"{HOME}/bin/{name}", script, 0o755
        if name in IN_APP:
            yield f"app/{name}", script, 0o755
    for module, word in MODULES.items():
        folder = module.split("/")[:-1]
        for depth in range(1, len(folder) + 1):
            yield f"{LIB}/{'/'.join(folder[:depth])}/__init__.py", b"", 0o644
        yield f"{LIB}/{module}.py", MODULE.format(word=word).encode(), 0o644
