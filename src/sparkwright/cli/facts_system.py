"""The facts about a node's system and its surroundings as text: a line for each, only what is worth a word."""

from collections.abc import Sequence

from sparkwright.cli.facts_words import each, known, listed, told
from sparkwright.domain.fabric_facts import Containers, Network, Nic, Settings, Store
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.host_facts import Activity, Board, KernelLog, Package, Times, Upkeep
from sparkwright.domain.units import GIB, duration, gib
from sparkwright.domain.unknown import Unknown

_BIG = GIB // 2
_SHOWN = 3
_SLEEP = "sleep.target"


def system_rows(facts: NodeFacts) -> tuple[tuple[str, Sequence[str]], ...]:
    """(label, lines) in the order of the block."""
    return (
        ("board", told(facts.board, _board)),
        ("packages", told(facts.packages, _packages)),
        ("settings", told(facts.upkeep, _upkeep)),
        ("activity", told(facts.activity, _activity)),
        ("clock", told(facts.times, _times)),
        ("kernel log", told(facts.kernel_log, _kernel_log)),
        ("nic", told(facts.nic, _nic)),
        ("network", told(facts.network, _network)),
        ("variables", told(facts.settings, _variables)),
        ("containers", told(facts.containers, _containers)),
        ("stores", told(facts.stores, each(_store))),
    )


def _board(found: Board) -> Sequence[str]:
    hottest = max(found.zones.items(), key=lambda zone: zone[1], default=None)
    library = "" if isinstance(found.libcuda, Unknown) else f"libcuda {found.libcuda.version} {gib(found.libcuda.size)}"
    return [
        line
        for line in (
            listed(
                known(found.bios, "BIOS {}"),
                known(found.ec, "EC {}"),
                f"hottest zone {hottest[0]} {hottest[1]:g} °C" if hottest else "",
            ),
            listed(library, known(found.module, "driver on disk {}"), *found.drm),
        )
        if line
    ]


def _packages(found: Sequence[Package]) -> Sequence[str]:
    held = [package.name for package in found if package.held]
    count = f"{len(found)} of driver, kernel and firmware"
    return [listed(count, f"held: {' '.join(held)}" if held else "none held")] if found else []


def _upkeep(found: Upkeep) -> Sequence[str]:
    memlock = "no limit" if found.memlock is None else known(found.memlock, "{} KiB")
    sleep = found.units.get(_SLEEP)
    return [
        listed(
            *(f"{name} {value}" for name, value in found.sysctls.items() if name.startswith("vm.min_free")),
            f"memlock {memlock}" if memlock else "",
            known(found.target, "boots to {}"),
            "may sleep" if sleep and sleep.load != "masked" else "",
            "reboot pending" if found.reboot_needed else "",
            known(found.wifi, "reached over {}"),
        )
    ]


def _activity(found: Activity) -> Sequence[str]:
    moved = [known(found.swapped_in, "{} pages in"), known(found.swapped_out, "{} out")]
    big = [] if isinstance(found.processes, Unknown) else [p for p in found.processes if p.rss >= _BIG]
    return [
        listed(
            f"swap {listed(*moved)} in {found.seconds:g} s" if all(moved) else "",
            known(found.stall_full, "all waited for memory {:g} % of 10 s"),
            known(found.oom_kills, "{} killed for lack of memory"),
            *(f"{p.name} (pid {p.pid}, {gib(p.rss)})" for p in big[:_SHOWN]),
        )
    ]


def _times(found: Times) -> Sequence[str]:
    kept = {True: "synchronized", False: "follows no time source"}
    up = "" if isinstance(found.uptime, Unknown) else f"up {duration(found.uptime)}"
    state = "" if isinstance(found.synchronized, Unknown) else kept[found.synchronized]
    unclean = "the boot before ended without a shutdown" if found.unclean is True else ""
    return [listed(state, up, unclean)]


def _kernel_log(found: KernelLog) -> Sequence[str]:
    return [f"{found.lines} lines read, {len(found.notes)} kinds of them kept"]


def _nic(found: Nic) -> Sequence[str]:
    firmware = dict.fromkeys(device.firmware for device in found.devices if device.firmware)
    count = "" if isinstance(found.functions, Unknown) else f"{len(found.functions)} PCI functions"
    return [line] if (line := listed(count, *firmware, "hot-plug armed" if found.armed else "")) else []


def _network(found: Network) -> Sequence[str]:
    default = [
        f"default via {r.gateway or 'the link'} {r.interface}" for r in found.routes if r.destination == "default"
    ]
    return [line] if (line := listed(*default, f"firewall {found.firewall.name}" if found.firewall else "")) else []


def _variables(found: Settings) -> Sequence[str]:
    return [f"{one.name}={one.value} ({one.where})" for one in (*found.communication, *found.proxies)]


def _containers(found: Containers) -> Sequence[str]:
    return [f"{one.name} ({one.image})" for one in found.containers if one.running]


def _store(found: Store) -> str:
    partial = f"{len(found.partial)} unfinished downloads" if found.partial else ""
    return listed(f"{found.path}: {found.fs or 'file system not told'}", partial, known(found.foreign, "not yours: {}"))
