"""Two real engines that do not fit next to each other: what the head's memory shows is a file of the test's."""

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from functional.command import UserShell
from functional.gateway.gateways import has_caddy
from functional.test_install_supervisor import user_shell as user_shell
from functional.test_on_demand import is_asleep, read_live
from functional.test_several import SCALED, Served
from functional.tiny_gguf import write_tiny_gguf
from patience import wait_until
from sparkwright.domain.live import SERVING

pytest.importorskip("xllamacpp", reason="the wheel that holds llama.cpp's server is not installed")
LLAMA = """
name: {name}
title: Random weights
model: {{path: {model}, served_name: {name}}}
engine: {{name: llama-cpp, version: 2026.10.11549, runtime: process, venv: {venv}}}
serving:
  {{port: {port}, context: 512, sequences: 2, batched_tokens: 256, coherence: false, gateway: {{port: {front}}},
  on_demand: true, idle_minutes: {idle}}}
flags: {{n-gpu-layers: 0, threads: 1}}
"""
AMPLE, SHORT = 20 * 1024**2, 100 * 1024  # KiB


class ShortHead(Served):
    """Deployments of llama.cpp on one node whose memory is read from `root`."""

    def __init__(self, shell: UserShell) -> None:
        super().__init__(shell)
        self.model = write_tiny_gguf(shell.folder / "tiny.gguf")
        (shell.folder / "root/proc").mkdir(parents=True)
        self.memory(AMPLE)
        cluster = shell.folder / "cluster.yaml"
        entry = (
            cluster.read_text()
            .splitlines()[2]
            .replace("}}", f"}}, env: {{SPARKWRIGHT_SYSROOT: {shell.folder}/root}}}}")
        )
        cluster.write_text(f"head: a\nnodes:\n{entry}\n")

    def memory(self, available: int) -> None:
        real = Path("/proc/meminfo").read_text().splitlines()
        told = {"MemTotal": 24 * 1024**2, "MemFree": available, "MemAvailable": available, "Cached": 0}
        lines = [f"{k}: {told[k]} kB" if (k := line.partition(":")[0]) in told else line for line in real]
        path = self.shell.folder / "root/proc/meminfo"
        path.with_suffix(".new").write_text("\n".join(lines) + "\n")
        path.with_suffix(".new").rename(path)

    def llama(self, name: str, idle: float) -> str:
        values = {"port": self.port, "front": self.door, "idle": idle}
        text = LLAMA.format(name=name, model=self.model, venv=Path(sys.prefix), **values)
        (self.shell.folder / f"{name}.yaml").write_text(text)
        return f"./{name}.yaml"


@pytest.fixture
def short_head(user_shell: UserShell) -> Iterator[ShortHead]:
    if not has_caddy():
        pytest.skip("caddy is not installed")
    yield ShortHead(user_shell)
    for name in ("alpha", "beta", "gamma"):
        user_shell.run("down", name)


@pytest.mark.full
def test_one_that_is_idle_makes_room_for_another(short_head: ShortHead) -> None:
    """Guards what serves from an `up` that does not fit next to it, and the request that one on demand gives way to."""
    short_head.good("up", short_head.llama("beta", idle=0.4))
    is_asleep(short_head, "beta")
    short_head.good("up", short_head.llama("alpha", idle=600))
    short_head.memory(SHORT)
    code, out, _ = short_head.shell.run("up", short_head.llama("gamma", idle=600), "--json", **SCALED)
    assert code == 1 and "MEM0" in out, "a plan that does not fit next to what serves"
    assert read_live(short_head, "alpha")["phase"] in SERVING, "and nothing is stopped for an `up`"

    def given_back() -> None:
        wait_until(lambda: read_live(short_head, "alpha")["phase"] == "on_demand", "alpha to make room")
        short_head.memory(AMPLE)

    watching = threading.Thread(target=given_back)
    watching.start()
    with short_head.client as client:
        body = {"model": "beta", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
        answer = client.post("/v1/chat/completions", json=body)
        watching.join()
        assert answer.status_code == 200, answer.text
        assert "to make room for beta" in json.dumps(read_live(short_head, "alpha"))
