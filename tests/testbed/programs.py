"""Other engines' programs on the nodes and in the engine's image: each is the simulator in that engine's dialect.

In HOME/bin, which is the nodes' venv and first in the image's PATH, and as Python modules for `python3 -m`.
"""

from collections.abc import Iterator

from testbed.rootfs import HOME

LIB = f"{HOME}/programs/lib"
# name -> the simulator's word for it; `vllm serve` is the simulator's own
NAMES = {
    "vllm": "",
    "sparkwright-twin": "",  # replaces the base image's
    "trtllm-serve": "trtllm-serve",
    "trtllm-llmapi-launch": "trtllm-llmapi-launch",
    "llama-server": "llama-server",
    "rpc-server": "rpc-server",
}
IN_APP = ("llama-server", "rpc-server")  # where the published images have them
MODULES = {"vllm/entrypoints/cli/main": "", "sglang/launch_server": "sglang"}
SCRIPT = """#!/bin/sh
py=/{home}/bin/python3
[ -x $py ] || py=/usr/bin/python3
exec $py -m sparkwright.simulator {word} "$@"
"""
MODULE = """import sys

from sparkwright.simulator.__main__ import main

if __name__ == "__main__":
    sys.exit(main([*{words}, *sys.argv[1:]]))
"""


def program_files() -> Iterator[tuple[str, bytes, int]]:
    """Path from the root, content, mode."""
    for name, word in NAMES.items():
        script = SCRIPT.format(home=HOME, word=word).encode()
        yield f"{HOME}/bin/{name}", script, 0o755
        if name in IN_APP:
            yield f"app/{name}", script, 0o755
    for module, word in MODULES.items():
        folder = module.split("/")[:-1]
        for depth in range(1, len(folder) + 1):
            yield f"{LIB}/{'/'.join(folder[:depth])}/__init__.py", b"", 0o644
        yield f"{LIB}/{module}.py", MODULE.format(words=[word] if word else []).encode(), 0o644
