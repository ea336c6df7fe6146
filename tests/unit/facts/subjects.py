"""The parsers of the samples in the folders of tests/data/facts, and the comparison of results with expectations."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.facts import board, disk, docker, fabric, gpu, kernel, memory, network, nic, settings, upkeep
from sparkwright.facts.fact import Fact

DATA = Path(__file__).parents[2] / "data" / "facts"

ALL_FACTS: dict[str, Fact[object]] = {
    "identity": board.IDENTITY,
    "kernel": kernel.KERNEL,
    "memory": memory.MEMORY,
    "gpus": gpu.GPUS,
    "gpu_processes": gpu.GPU_PROCESSES,
    "driver": gpu.DRIVER,
    "rdma": fabric.RDMA,
    "interfaces": network.ADDRESSES,
    "docker": docker.DOCKER,
    "listeners": network.LISTENERS,
    "disks": disk.disks_fact(("~/models",)),
    "kernel_log": kernel.KERNEL_LOG,
    "activity": memory.ACTIVITY,
    "times": settings.TIMES,
    "packages": upkeep.PACKAGES,
    "upkeep": upkeep.UPKEEP,
    "board": board.BOARD,
    "nic": nic.NIC,
    "network": network.NETWORK,
    "settings": settings.SETTINGS,
    "containers": docker.CONTAINERS,
    "stores": disk.model_stores(("~/models", "~/.cache/huggingface/hub")),
}


def parse_below(mark: str, fact: Fact[object]) -> Callable[[Completed], object]:
    """The tool's bare output is in one section of our script's answer."""
    return lambda done: fact.read(dataclasses.replace(done, stdout=mark + done.stdout))


def show_gids(done: Completed) -> object:
    return {f"{device}/{port}": rows for (device, port), rows in fabric.from_show_gids(done.stdout).items()}


SUBJECTS: dict[str, Callable[[Completed], object]] = {
    "meminfo": memory.MEMORY.read,
    "nvidia-smi-gpu": gpu.GPUS.read,
    "nvidia-smi-processes": gpu.GPU_PROCESSES.read,
    "driver": gpu.DRIVER.read,
    "kernel": kernel.KERNEL.read,
    "identity": board.IDENTITY.read,
    "rdma-link": parse_below("@@ exit\n0\n@@ rdma\n", fabric.RDMA),
    "rdma": fabric.RDMA.read,
    "show-gids": show_gids,
    "ip-addr": network.ADDRESSES.read,
    "docker": docker.DOCKER.read,
    "df": parse_below("@@ 1\n", ALL_FACTS["disks"]),
    "ss": network.LISTENERS.read,
    "kernel-log": kernel.KERNEL_LOG.read,
    "activity": memory.ACTIVITY.read,
    "times": settings.TIMES.read,
    "packages": upkeep.PACKAGES.read,
    "upkeep": upkeep.UPKEEP.read,
    "board": board.BOARD.read,
    "nic": nic.NIC.read,
    "network": network.NETWORK.read,
    "settings": settings.SETTINGS.read,
    "containers": docker.CONTAINERS.read,
    "stores": ALL_FACTS["stores"].read,
}


@dataclass(frozen=True)
class FactSample:
    subject: str
    name: str
    guards: str
    expect: object
    done: Completed


def samples() -> list[FactSample]:
    return [_sample(path) for path in sorted(DATA.glob("*/*.txt"))]


def _sample(path: Path) -> FactSample:
    about = json.loads(path.with_suffix(".json").read_text())
    done = Completed(about.get("exit_code", 0), path.read_text(), about.get("stderr", ""))
    return FactSample(path.parent.name, path.stem, about["guards"], about["expect"], done)


def plain_value(value: object) -> object:
    """A fact as JSON has it, with Unknown as {"unknown": raw, "why": why}."""
    if isinstance(value, Unknown):
        return {"unknown": value.raw, "why": value.why}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain_value(entry) for key, entry in value.items()}
    return [plain_value(entry) for entry in value] if isinstance(value, tuple | list) else value


def picked(value: object, expect: object) -> object:
    """The parts of `value` that `expect` speaks of, so that the two can be compared and shown side by side."""
    if isinstance(expect, dict) and expect and isinstance(value, dict):
        return {key: picked(value.get(key, "(no such field)"), entry) for key, entry in expect.items()}
    if isinstance(expect, list) and isinstance(value, list) and len(expect) == len(value):
        return [picked(one, entry) for one, entry in zip(value, expect, strict=True)]
    return value
