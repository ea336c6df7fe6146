"""Samples in guides: what the commands print, run by `make docs` on nodes that answer with recorded output.

The answers of the nodes are samples of tests/data/facts, the log is one of vLLM 0.21.0 in tests/data. A sample is
what is between `<!-- sample: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from sparkwright.cli.main import run  # noqa: E402
from unit.app.scene import cluster, make_scene  # type: ignore[import-not-found] # noqa: E402
from unit.facts.subjects import ALL_FACTS, samples  # type: ignore[import-not-found] # noqa: E402

LOG = "tests/data/captures_logs/d-kv-too-small.log"
# fact: sample of tests/data/facts
TIRED = {"driver": "driver/torn", "memory": "meminfo/driver-retained"}
IDLE = {"memory": "meminfo/idle"}
GPU = {"gpus": "nvidia-smi-gpu/gb10-idle", "gpu_processes": "nvidia-smi-processes/none"}
SHOWN = ("DRV003", "MEM004")
WIDTH = 110


def with_samples(page: str) -> str:
    """The page with every sample as the commands print it now."""
    made = {"check": check, "plan": plan, "diagnose": diagnose}

    def fresh(found: re.Match[str]) -> str:
        return f"{found[1]}```console\n{made[found[2]]()}\n```\n<!-- end -->"

    return re.sub(r"(<!-- sample: (\w+) -->\n).*?<!-- end -->", fresh, page, flags=re.S)


def check() -> str:
    blocks = re.split(r"\n+(?=[A-Z]+ +[A-Z]+\d+ )", printed(["check"], TIRED | GPU, 1))
    found = {code: block.partition("\n\n")[0] for block in blocks if (code := block.split()[1]) in SHOWN}
    assert tuple(found) == SHOWN, f"check finds {tuple(found)}"
    return "\n".join(["$ sparkwright check", *found.values(), "..."])


def plan() -> str:
    text = printed(["plan", "minimax-m2.7-nvfp4"], IDLE | GPU, 2)
    return "$ sparkwright plan minimax-m2.7-nvfp4\n" + text.partition("\n\npublished figures")[0] + "\n..."


def diagnose() -> str:
    text = printed(["diagnose", LOG], {}, 1).partition("\n\nignored as harmless")[0]
    return f"$ sparkwright diagnose {Path(LOG).name}\n" + text.replace(LOG, Path(LOG).name)


def printed(words: list[str], facts: Mapping[str, str], nodes: int) -> str:
    """The command's output, cut to the page's width."""
    out = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(out), on_nodes(facts, nodes):
        run(words)
    lines = out.getvalue().rstrip().split("\n")
    return "\n".join(line if len(line) <= WIDTH else f"{line[: WIDTH - 4].rstrip()} ..." for line in lines)


@contextlib.contextmanager
def on_nodes(facts: Mapping[str, str], count: int) -> Iterator[None]:
    made, known = make_scene(count), {f"{one.subject}/{one.name}": one.done for one in samples()}
    for node in made.nodes:
        for fact, sample in facts.items():
            node.on(answers(ALL_FACTS[fact].command.argv), known[sample])

    @contextlib.asynccontextmanager
    async def services(_: object, __: object, sink: Any) -> AsyncIterator[Any]:
        yield replace(made.services, cluster=cluster(count), sink=sink)

    where = "sparkwright.wiring"
    with mock.patch(f"{where}.services", services), mock.patch(f"{where}.cluster_of", lambda *_: cluster(count)):
        yield


def answers(argv: tuple[str, ...]) -> Callable[[Any], bool]:
    return lambda command: command.argv == argv
