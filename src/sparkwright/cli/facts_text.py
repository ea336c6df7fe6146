"""One node's facts as text: sizes for people, and `unknown` with the reason where there is no answer."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from sparkwright.cli.columns import fold
from sparkwright.domain.facts import (
    Disk,
    Docker,
    DockerTrouble,
    Driver,
    Gpu,
    GpuProcess,
    Identity,
    Interface,
    Kernel,
    Listener,
    Memory,
    NodeFacts,
    RankStatus,
    RdmaPort,
    Unknown,
)
from sparkwright.domain.units import gib

T = TypeVar("T")
_LABEL = 12


def facts_text(facts: NodeFacts, title: str) -> str:
    """title: the first line of the block."""
    rows = (
        ("machine", _told(facts.identity, _machine)),
        ("system", _told(facts.kernel, _system)),
        ("memory", _told(facts.memory, _memory)),
        ("gpu", _told(facts.gpus, _each(_gpu))),
        ("gpu use", _told(facts.gpu_processes, _each(_gpu_process))),
        ("driver", _told(facts.driver, _driver)),
        ("interfaces", _told(facts.interfaces, _each(_interface))),
        ("rdma", _told(facts.rdma, _each(_port))),
        ("docker", _told(facts.docker, _docker)),
        ("disks", _told(facts.disks, lambda found: _disks(found, _home(facts)))),
        ("listening", _told(facts.listeners, _listeners)),
        ("ranks", _told(facts.ranks, _each(_rank))),
    )
    return "\n".join([title, *(line for label, told in rows for line in _row(label, told))])


def _row(label: str, told: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(told or ("none",)):
        yield fold(f"  {label if number == 0 else '':<{_LABEL}}{line}".rstrip(), _LABEL + 4)


def _told(fact: T | Unknown, read: Callable[[T], Sequence[str]]) -> Sequence[str]:
    return [unknown(fact)] if isinstance(fact, Unknown) else read(fact)


def unknown(fact: Unknown) -> str:
    """`unknown: why (what the node said)`."""
    said = f" ({fact.raw})" if fact.raw and fact.why else fact.raw
    return f"unknown: {fact.why}{said}"


def _each(read: Callable[[T], str]) -> Callable[[Sequence[T]], Sequence[str]]:
    return lambda found: [read(one) for one in found]


def _known(value: object, form: str = "{}") -> str:
    """'' for what is not known: inside a line only what is known is worth a word."""
    return "" if isinstance(value, Unknown) or value in ("", None) else form.format(value)


def _list(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _machine(found: Identity) -> Sequence[str]:
    dgx = _known(found.ota_version, "DGX OS {}")
    first = _list(_known(found.product), found.arch, dgx, f"hostname {found.hostname}")
    return [first, _list(f"user {found.user}", f"home {found.home}")]


def _system(found: Kernel) -> Sequence[str]:
    return [_list(found.os, f"Linux {found.release}")]


def _memory(found: Memory) -> Sequence[str]:
    sums = f"{gib(found.total)} in all, {gib(found.available)} available, {gib(found.free)} free"
    rest = _list(
        f"page cache {gib(found.cached)}",
        f"in no counter {gib(found.unaccounted)}",
        f"swap {gib(found.swap_free)} free of {gib(found.swap_total)}" if found.swap_total else "no swap",
        f"huge pages {gib(found.huge_free)} free of {gib(found.huge_pages)}" if found.huge_pages else "",
    )
    return [sums, rest]


def _gpu(found: Gpu) -> str:
    return _list(
        found.name,
        _known(found.compute_capability, "compute capability {}"),
        f"driver {found.driver}" if found.driver else "",
        _known(found.memory_total) and f"{gib(float(_known(found.memory_total)))} of its own",
        _known(found.temperature_c, "{:g} °C"),
        _known(found.power_w, "{:g} W"),
        _known(found.sm_clock_mhz, "{:g} MHz"),
        _known(found.utilization, "{:g} % busy"),
    )


def _gpu_process(found: GpuProcess) -> str:
    used = "memory not told" if isinstance(found.used, Unknown) else gib(found.used)
    return f"{found.name} (pid {found.pid}, {used})"


def _driver(found: Driver) -> Sequence[str]:
    parts = (("kernel module", found.version), ("GSP firmware", found.gsp_firmware))
    told = [f"{name} {unknown(value) if isinstance(value, Unknown) else value}" for name, value in parts]
    torn = [] if isinstance(found.torn, Unknown) or not found.torn else ["torn: the two versions differ"]
    return [", ".join([*told, *torn])]


def _interface(found: Interface) -> str:
    addresses = " ".join(f"{a.ipv4}/{a.prefix}" for a in found.addresses)
    speed = _known(found.speed_mbps, "{} Mb/s")
    return f"{found.name:<15} {_list('up' if found.up else 'down', f'MTU {found.mtu}', speed, addresses)}"


def _port(found: RdmaPort) -> str:
    v2 = [f"GID {g.index} {g.ipv4} RoCE v2" for g in found.gids if g.version == "v2" and g.ipv4]
    state = f"{found.state} {found.physical_state}".strip()
    return f"{f'{found.device}/{found.port}':<15} {_list(state, found.netdev, *v2)}"


def _docker(found: Docker) -> Sequence[str]:
    if found.trouble is not DockerTrouble.NONE:
        return [f"{found.trouble}{f': {found.said}' if found.said else ''}"]
    return [
        _list(
            found.version,
            f"runtimes {' '.join(found.runtimes)}" if found.runtimes else "",
            "GPUs by CDI" if found.cdi else "",
            found.storage,
            f"in {found.root}" if found.root else "",
            "snap" if found.snap else "",
            "rootless" if found.rootless else "",
        )
    ]


def _home(facts: NodeFacts) -> str:
    return "" if isinstance(facts.identity, Unknown) else facts.identity.home


def _disks(found: Sequence[Disk], home: str) -> Sequence[str]:
    """One line for each file system, with the paths on it."""
    systems: dict[tuple[str, int, int], list[str]] = {}
    for one in found:
        systems.setdefault((one.mount, one.total, one.available), []).append(_short(one.path, home))
    return [
        f"{mount}: {gib(free)} free of {gib(total)} ({', '.join(paths)})"
        for (mount, total, free), paths in systems.items()
    ]


def _short(path: str, home: str) -> str:
    return f"~{path.removeprefix(home)}" if home and path.startswith(f"{home}/") else path


def _listeners(found: Sequence[Listener]) -> Sequence[str]:
    """One line: the addresses of one port and program are told once."""
    seen = dict.fromkeys((one.port, one.process) for one in found)
    return [_list(*(f"{port}{f' ({process})' if process else ''}" for port, process in sorted(seen)))] if seen else []


def _rank(found: RankStatus) -> str:
    code = "" if found.exit_code is None else f" with code {found.exit_code}"
    return f"{found.deployment} rank {found.rank}: {found.state}{code}, {found.engine}, {found.runtime}"
