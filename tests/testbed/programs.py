"""Other engines' programs on the nodes and in the engine's image: each is the simulator in that engine's dialect.

In HOME/bin, which is the nodes' venv and first in the image's PATH, and as Python modules for `python3 -m`.
"""

from collections.abc import Iterator
from pathlib import Path

from testbed.rootfs import HOME

LIB = f"{HOME}/programs/lib"
OTHERS = Path(__file__).resolve().parents[1] / "simulators"
OWN = ("vllm", "sparkwright-twin")  # the second replaces the base image's
NAMES = (*OWN, "trtllm-serve", "trtllm-llmapi-launch", "llama-server", "rpc-server")
IN_APP = ("llama-server", "rpc-server")  # where the published images have them
MODULES = {"vllm/entrypoints/cli/main": "", "sglang/launch_server": "sglang"}
SCRIPT = """#!/bin/sh
py=/{home}/bin/python3
[ -x $py ] || py=/usr/bin/python3
exec $py -m {module} "$@"
"""
MODULE = """import sys

from {package}.__main__ import main

if __name__ == "__main__":
    sys.exit(main([*{words}, *sys.argv[1:]]))
"""


def program_files() -> Iterator[tuple[str, bytes, int]]:
    """Path from the root, content, mode."""
    for path in sorted(OTHERS.glob("*.py")):
        yield f"{LIB}/simulators/{path.name}", path.read_bytes(), 0o644
    for name in NAMES:
        module = "sparkwright.simulator" if name in OWN else f"simulators {name}"
        script = SCRIPT.format(home=HOME, module=module).encode()
        yield f"{HOME}/bin/{name}", script, 0o755
        if name in IN_APP:
            yield f"app/{name}", script, 0o755
    for module, word in MODULES.items():
        folder = module.split("/")[:-1]
        for depth in range(1, len(folder) + 1):
            yield f"{LIB}/{'/'.join(folder[:depth])}/__init__.py", b"", 0o644
        package = "simulators" if word else "sparkwright.simulator"
        text = MODULE.format(package=package, words=[word] if word else [])
        yield f"{LIB}/{module}.py", text.encode(), 0o644
