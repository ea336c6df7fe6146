"""Cases in which each rule about machine, driver, GPU, memory and clock fires, and in which it must be silent."""

from dataclasses import replace
from typing import Any

from sparkwright.domain.check import Context
from sparkwright.domain.fabric_facts import Network, WakeCard
from sparkwright.domain.facts import Driver, Gpu, GpuProcess, Identity, Kernel, Memory, Unknown
from sparkwright.domain.host_facts import HardwareWatchdog, KernelLog, KernelNote, Library, Package, Process, Unit
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Loading, Runtime, Serving
from sparkwright.domain.units import GIB
from sparkwright.facts.upkeep import SLEEP_TARGETS
from unit.checks.host_samples import ACTIVITY, BOARD, LOADED, PACKAGES, TIMES, UPKEEP
from unit.checks.samples import DGX, EMBEDDED, ODD, PLAYED, RECIPE, TOTAL, context, memory, rank_specs, rank_status

BAD_ID = "295f5139615f4bbaa29921a29574c7a3"
FIRST = Identity("spark-1", f"{1:032x}", "aarch64", "boot-1", "ai", "/home/ai", *DGX)
BLOCKED = Kernel("7.0.0-1019-nvidia", "quiet", "Ubuntu 24.04.3 LTS")
H200 = (Gpu("NVIDIA H200", LOADED, "9.0", 1),)
WITH_H200 = {"gpus": H200, "board": replace(BOARD, nvidia={"0000:3b:00.0": "10de:2335"})}
NO_GPU = Unknown("NVIDIA-SMI has failed", "nvidia-smi exited 9")
ENGINE = GpuProcess(7, "VLLM::EngineCore", 90 * GIB)


def context_with(**changes: Any) -> Context:
    """A check, without a recipe, of two nodes of which spark-1 is different."""
    return context(changes, None)


def upkeep(**changes: Any) -> Context:
    return context_with(upkeep=replace(UPKEEP, **changes))


def board_context(**changes: Any) -> Context:
    return context_with(board=replace(BOARD, **changes))


def activity(**changes: Any) -> Context:
    return context_with(activity=replace(ACTIVITY, **changes))


def serving_context(**serving: Any) -> Context:
    """The recipe's limits."""
    return context(recipe=replace(RECIPE, serving=Serving(**serving)))


def times_context(**changes: Any) -> Context:
    return context_with(times=replace(TIMES, **changes))


def packages(*more: Package, without: str = "") -> Context:
    kept = tuple(p for p in PACKAGES if not without or not p.name.startswith(without))
    return context_with(packages=(*kept, *more))


def kernel_log(*lines: str, count: int = 1, **more: Any) -> Context:
    return context_with(
        kernel_log=KernelLog(9000, tuple(KernelNote(line, count, 41.2, 99.0, line) for line in lines)), **more
    )


def gpu_context(**changes: Any) -> Context:
    return context_with(gpus=(replace(Gpu("NVIDIA GB10", LOADED, "12.1", ODD), **changes),))


def memory_context(**changes: Any) -> Context:
    return context_with(memory=replace(memory(), **changes))


def units_context(*active: str, **more: Any) -> Context:
    found = {name: Unit(name, "loaded", "active", "enabled") for name in active}
    return upkeep(units={**UPKEEP.units, **found}, **more)


def awake_context(*active: str) -> Context:
    """No sleep target is masked."""
    return units_context(*active, *SLEEP_TARGETS)


def loading_context(memory_now: Memory) -> Context:
    return context({"memory": memory_now})


def as_process(memlock: int | Unknown | None, **changes: Any) -> Context:
    ranks: tuple[RankSpec, ...] = tuple(replace(s, runtime=Runtime.PROCESS) for s in rank_specs(**changes))
    return context({"upkeep": replace(UPKEEP, memlock=memlock)}, specs=ranks)


FULL_CACHE = Memory(TOTAL, 3 * GIB, 90 * GIB, 80 * GIB, 0, 0, 6 * GIB)
SERVER = Package("nvidia-driver-570-server", "570.133.20-0ubuntu1")
NEWER = Package("nvidia-driver-580-open", "580.173.02-0ubuntu0.24.04.1")
LOOSE = Package("mlnx-fw-updater", "24.10-1.1.4.0")
DKMS = Package("nvidia-dkms-580-open", "580.142-0ubuntu1")
XID = "NVRM: Xid (PCI:000f:01:00): 119, Timeout after 6s of waiting for RPC response from GPU0 GSP!"
XID_43 = "NVRM: Xid (PCI:000f:01:00): 43, pid=4242, name=python, Ch 00000008"
GSP = "NVRM: GPU 000f:01:00.0: RmInitAdapter failed! (0x62:0x65:2028)"
KILLED = "Out of memory: Killed process 4242 (python3) total-vm:123456kB, anon-rss:99kB"
ENOMEM = "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)"
OVERRIDE = "/etc/modprobe.d/zz-nvidia-drm-override.conf:options nvidia-drm modeset=0"
OLLAMA = Process(812, "ollama", 5 * GIB, "ollama", "ollama.service")
TIMER = HardwareWatchdog("watchdog0", "SBSA Generic Watchdog", active=False, systemd="0")
NOTEBOOK = Process(900, "jupyter-lab", 2 * GIB, "ai", "user@1000.service")

CARD = WakeCard("enP7s7", "48:b0:2d:00:00:01", True)


def card_context(*cards: WakeCard, mac: str = CARD.mac) -> Context:
    """A cluster file that names a card of spark-1."""
    made = context_with(network=Network(cards=cards))
    nodes = tuple(replace(one, wake=mac if one.name == "spark-1" else "") for one in made.cluster.nodes)
    return replace(made, cluster=replace(made.cluster, nodes=nodes))


FIRING: dict[str, Context] = {
    "HOST003": context_with(identity=replace(FIRST, machine_id=BAD_ID)),
    "HOST004": upkeep(host_keys=("SHA256:key-of-2", "SHA256:other")),
    "HOST005": context_with(identity=replace(FIRST, arch="x86_64")),
    "HOST006": context_with(kernel=BLOCKED),
    "HOST007": context_with(kernel=Kernel("6.12.0-55-generic", "", "Fedora 42")),
    "HOST008": context_with(kernel=Kernel("6.14.0-1015-nvidia", "", "Ubuntu 24.04.3 LTS")),
    "HOST009": context_with(identity=replace(FIRST, ota_version="7.5.0")),
    "HOST010": board_context(bios="5.36_0ACUM009"),
    "HOST011": units_context("display-manager.service", target="graphical.target"),
    "HOST012": awake_context("display-manager.service"),
    "HOST013": upkeep(reboot_needed=True, reboot_for=("linux-image-6.17.0-1021-nvidia", "linux-base")),
    "HOST014": context_with(
        upkeep=replace(UPKEEP, units={"unattended-upgrades.service": Unit("unattended", "loaded", "active")}),
        packages=(replace(PACKAGES[0], held=False),),
    ),
    "HOST015": kernel_log("Internal error: Oops: 0000000096000005 [#1] SMP"),
    "HOST016": upkeep(wifi="wlP9s9", power_save=True),
    "HOST017": as_process(8192),
    "HOST018": context_with(
        upkeep=replace(
            UPKEEP,
            sysctls={"kernel.core_pattern": "|/usr/share/apport/apport -p%p -s%s"},
            units={"apport.service": Unit("apport.service", "loaded", "active")},
        )
    ),
    "HOST019": context_with(upkeep=replace(UPKEEP, grub_timeout=0), packages=(*PACKAGES, DKMS)),
    "HOST020": packages(Package("libfwupd2", "1.9.34-0ubuntu1~24.04.1"), without="libfwupd"),
    "HOST021": kernel_log("nvme nvme0: I/O tag 12 (100c) QID 4 timeout, aborting", "I/O error, dev nvme0n1, sector 9"),
    "HOST022": upkeep(locale="de_DE.UTF-8"),
    "HOST023": times_context(unclean=True),
    "HOST025": board_context(bios="GX10DGX.0103.2026.0114.0930"),
    "HOST026": upkeep(watchdog=TIMER),
    "HOST027": card_context(replace(CARD, armed=False)),
    "HOST024": context_with(kernel_log=Unknown("this user may read neither the journal nor dmesg", "exited 1")),
    "DRV004": packages(NEWER, without="nvidia-driver"),
    "DRV005": packages(SERVER),
    "DRV006": packages(LOOSE, without="mlnx"),
    "DRV007": kernel_log(GSP, gpus=NO_GPU),
    "DRV008": board_context(
        libcuda=Library("/usr/lib/aarch64-linux-gnu/libcuda.so.580.173.02", 93_000_000, "580.173.02")
    ),
    "DRV009": board_context(module="580.173.02"),
    "DRV010": board_context(drm=(OVERRIDE,)),
    "DRV011": context_with(driver=Driver("580.159.03", "580.159.03")),
    "DRV012": context_with(driver=Driver("580.173.02", "580.173.02")),
    "DRV013": board_context(libcuda=Library("/usr/lib/aarch64-linux-gnu/libcuda.so.580.142", 0, LOADED)),
    "DRV014": board_context(devices=("nvidia0", "nvidiactl")),
    "DRV015": context_with(driver=Driver(LOADED, LOADED, persistence=False)),
    "DRV016": context_with(driver=Driver("580.126.09", "580.126.09")),
    "DRV017": context_with(driver=Driver("610.43", "610.43")),
    "DRV018": packages(Package("nvidia-dkms-580", "580.173.02-0ubuntu1")),
    "GPU003": context_with(**WITH_H200),
    "GPU004": kernel_log(XID, count=3),
    "GPU005": gpu_context(utilization=96.0, sm_clock_mhz=721.0, power_w=11.2),
    "GPU006": gpu_context(temperature_c=91.0),
    "GPU007": board_context(zones={"acpitz": 94.5}),
    "GPU008": context_with(gpus=NO_GPU),
    "GPU009": context_with(driver=Driver(LOADED, LOADED, slowdowns=("HW Power Brake Slowdown",))),
    "GPU012": units_context("sparkwright-gpu-clock.service"),
    "GPU010": kernel_log("thermal thermal_zone0: acpitz: critical temperature reached, shutting down"),
    "GPU011": context_with(gpus=NO_GPU, board=replace(BOARD, nvidia={"000f:00:00.0": "10de:22d1"})),
    "MEM004": context_with(memory=memory(80, unexplained=76)),
    "MEM005": context_with(memory=memory(118, unexplained=112), gpu_processes=(ENGINE,)),
    "MEM006": activity(swapped_in=9000),
    "MEM007": memory_context(swap_total=16 * GIB, swap_free=11 * GIB),
    "MEM008": units_context("earlyoom.service"),
    "MEM009": context({"upkeep": replace(UPKEEP, sysctls={"vm.min_free_kbytes": "67584"})}),
    "MEM010": memory_context(cma_free=220924 * 1024),
    "MEM011": loading_context(FULL_CACHE),
    "MEM012": activity(stall_full=2.4, stall_some=7.0),
    "MEM013": kernel_log(KILLED),
    "MEM014": kernel_log(ENOMEM, count=163),
    "MEM015": memory_context(total=TOTAL - 2 * GIB),
    "MEM016": activity(processes=(OLLAMA, NOTEBOOK)),
    "MEM017": context_with(memory=memory(115)),
    "MEM018": memory_context(huge_pages=64 * GIB, huge_free=60 * GIB),
    "MEM023": context({"memory": memory(26), "upkeep": UPKEEP}),
    "MEM024": context(recipe=replace(RECIPE, shm_bytes=100 * GIB)),
    "MEM025": serving_context(memory_fraction=0.8, kv_cache_bytes=33 * GIB),
    "MEM026": context(recipe=replace(RECIPE, loading=Loading(floor=30 * GIB))),
    "MEM019": upkeep(sysctls={"vm.overcommit_memory": "2"}),
    "MEM022": memory_context(free=100 * GIB, blocks=(26_000_000, 100), page=4096),
    "MEM020": memory_context(corrupted=64 * 1024),
    "TIME001": times_context(now=1005.0),
    "TIME002": times_context(synchronized=False, ntp=False),
    "TIME003": times_context(now=4600.0),
}

_EVERYWHERE = [
    *(f"HOST{n:03}" for n in range(3, 26) if n != 17),
    *(f"DRV{n:03}" for n in range(4, 19)),
    *(f"GPU{n:03}" for n in range(3, 12)),
    *(f"MEM{n:03}" for n in range(4, 21)),
    *(f"TIME{n:03}" for n in range(1, 4)),
]

_ONLY_WITH_A_GPU = ("DRV005", "DRV006", "DRV007", "DRV008", "DRV010", "DRV011", "DRV013", "DRV014", "DRV015", "DRV016")
_ONLY_WITH_A_GPU += ("DRV017", "GPU004", "GPU005", "GPU008", "GPU011", "MEM005", "MEM014")

SILENT: list[tuple[str, str, Context]] = [
    *((code, "the twin needs no GPU", replace(FIRING[code], recipe=PLAYED, specs=())) for code in _ONLY_WITH_A_GPU),
    *((code, "a simulated cluster shows its host", replace(FIRING[code], cluster=EMBEDDED)) for code in _EVERYWHERE),
    ("HOST004", "one machine", context_with(
        identity=replace(FIRST, boot_id="boot-2"), upkeep=replace(UPKEEP, host_keys=("SHA256:key-of-2",)))),
    ("HOST005", "one is not known", context_with(identity=ODD)),
    ("HOST006", "with kho=off", context_with(kernel=replace(BLOCKED, cmdline="quiet kho=off"))),
    ("HOST006", "a later build", context_with(kernel=replace(BLOCKED, release="7.0.0-1024-nvidia"))),
    ("HOST007", "not a GB10", context_with(kernel=Kernel("6.8.0-generic", "", ""), **WITH_H200)),
    ("HOST008", "one is not known", context_with(kernel=ODD)),
    ("HOST009", "no DGX OS", context_with(identity=replace(FIRST, ota_version=ODD))),
    ("HOST010", "another make has versions of its own", context_with(
        identity=replace(FIRST, product="ASUSTeK COMPUTER INC. GX10"), board=replace(BOARD, bios="GX10DGX.0105"))),
    ("HOST011", "somebody's workstation", context_with(
        **WITH_H200, upkeep=replace(UPKEEP, units={"display-manager.service": Unit("d", "loaded", "active")}))),
    ("HOST012", "masked", units_context("display-manager.service")),
    ("HOST012", "nothing told of units", upkeep(units={})),
    ("HOST014", "held", units_context("unattended-upgrades.service")),
    ("HOST015", "a word that only looks like it", kernel_log("nvidia: DEBUG: value 3")),
    ("HOST016", "by cable", upkeep(power_save=ODD)),
    ("HOST017", "no limit", as_process(None)),
    ("HOST017", "no RDMA", as_process(8192, rdma=False)),
    ("HOST017", "containers have their own", context({"upkeep": replace(UPKEEP, memlock=8192)})),
    ("HOST017", "check has no plan", upkeep(memlock=8192)),
    ("HOST018", "apport does not run", upkeep(sysctls={"kernel.core_pattern": "|/usr/share/apport/apport"})),
    ("HOST019", "a driver that is not built here", upkeep(grub_timeout=0)),
    ("HOST020", "the old library lies beside the right one", packages(
        Package("libfwupd2", "1.9.34-0ubuntu1~24.04.1"), Package("libfwupd3", "1.9.30-0ubuntu1~24.04.1"),
        without="libfwupd")),
    ("HOST021", "how long a shutdown may take", kernel_log("nvme nvme0: Shutdown timeout set to 10 seconds")),
    ("HOST021", "a snap that was unmounted", kernel_log("I/O error, dev loop21, sector 0 op 0x0:(READ)")),
    ("HOST021", "what was corrected", kernel_log("AER: Corrected error message received from 0000:00:00.0")),
    ("HOST022", "no DGX OS", context_with(
        identity=replace(FIRST, ota_version=ODD), upkeep=replace(UPKEEP, locale="de_DE.UTF-8"))),
    ("HOST024", "nothing in it matters", kernel_log()),
    ("HOST027", "armed", card_context(CARD)),
    ("HOST027", "nobody is to wake it", card_context(replace(CARD, armed=False), mac="")),
    ("HOST027", "its cards were not read", replace(card_context(CARD), facts=context_with(network=ODD).facts)),
    ("HOST026", "armed", upkeep(watchdog=replace(TIMER, active=True, systemd="2min"))),
    ("HOST026", "another program holds it", upkeep(watchdog=replace(TIMER, active=True))),
    ("HOST026", "what systemd does is not known", upkeep(watchdog=replace(TIMER, systemd=ODD))),
    ("HOST026", "not asked", upkeep(watchdog=ODD)),
    ("HOST026", "not a GB10", context_with(**WITH_H200, upkeep=replace(UPKEEP, watchdog=TIMER))),
    ("HOST025", "new enough", board_context(bios="GX10DGX.0105.2026.0505.1153")),
    ("HOST025", "another maker counts in another way", board_context(bios="5.36_0ACUM009")),
    *((code, "no Arm processor", replace(FIRING[code], facts={
        name: replace(facts, gpus=NO_GPU, board=ODD, identity=replace(FIRST, arch="x86_64"))
        for name, facts in FIRING[code].facts.items()
    })) for code in ("DRV004", "DRV005", "DRV006", "DRV015", "DRV016")),
    ("DRV004", "the driver is not installed as a package", packages(without="nvidia-driver")),
    ("DRV004", "older firmware beside the right one", context_with(packages=PACKAGES)),
    ("DRV005", "not a GB10", context_with(packages=(*PACKAGES, SERVER), **WITH_H200)),
    ("DRV008", "a name without version", board_context(libcuda=Library("/usr/lib/libcuda.so.1", 93_000_000))),
    ("DRV008", "the module is not known",
        context_with(driver=Driver(ODD, ODD), board=replace(BOARD, module="580.173.02"))),
    ("DRV009", "DRV008 says it", context_with(
        board=replace(BOARD, module="580.173.02", libcuda=Library("x", 93_000_000, "580.173.02")))),
    ("DRV010", "modeset is on", board_context(drm=("/etc/modprobe.d/nvidia.conf:options nvidia-drm modeset=1",))),
    ("DRV012", "firmware not told on one", context_with(driver=Driver(LOADED, ODD))),
    ("DRV014", "no driver at all", board_context(devices=())),
    ("DRV014", "no GPU is another defect", context_with(gpus=NO_GPU, board=replace(BOARD, devices=("nvidiactl",)))),
    ("DRV015", "not told", context_with(driver=Driver(LOADED, LOADED, ODD))),
    ("DRV016", "not a GB10", context_with(driver=Driver("580.95.05", ODD), **WITH_H200)),
    ("DRV018", "another GPU may have it",
        context_with(**WITH_H200, packages=(Package("nvidia-driver-580", "580.142-1"),))),
    ("GPU004", "a number that is not grave", kernel_log(XID.replace("119", "31"))),
    ("GPU005", "busy as it should be", gpu_context(utilization=96.0, sm_clock_mhz=2418.0, power_w=55.0)),
    ("GPU005", "at rest", gpu_context(utilization=0.0, sm_clock_mhz=208.0, power_w=4.0)),
    ("GPU005", "power not told", gpu_context(utilization=96.0, sm_clock_mhz=721.0)),
    ("GPU006", "warm under load", gpu_context(temperature_c=86.0)),
    ("GPU007", "warm", board_context(zones={"acpitz": 88.0})),
    ("GPU008", "it was not asked", context_with(gpus=Unknown("", "not asked"))),
    ("GPU008", "no such GPU in the machine", context_with(gpus=NO_GPU, board=replace(BOARD, nvidia={}))),
    ("GPU012", "another unit", units_context("nvidia-persistenced.service")),
    ("GPU010", "only a registration", kernel_log("thermal_sys: Registered thermal governor 'step_wise'")),
    ("GPU011", "no DGX OS", context_with(
        gpus=NO_GPU, board=replace(BOARD, nvidia={}), identity=replace(FIRST, ota_version=ODD))),
    ("MEM004", "what every boot has", context_with(memory=memory(9, unexplained=9))),
    ("MEM004", "a process holds it", context_with(memory=memory(100, unexplained=96), gpu_processes=(ENGINE,))),
    ("MEM004", "processes are not known", context_with(memory=memory(80, unexplained=76), gpu_processes=ODD)),
    ("MEM005", "it is what the engine holds",
        context_with(memory=memory(100, unexplained=96), gpu_processes=(ENGINE,))),
    ("MEM005", "a size is not told", context_with(
        memory=memory(118, unexplained=112), gpu_processes=(replace(ENGINE, used=ODD),))),
    ("MEM006", "a program wakes up", activity(swapped_in=600, swapped_out=30)),
    ("MEM006", "not known", activity(swapped_in=ODD, swapped_out=ODD)),
    ("MEM007", "swap is there and rests", memory_context(swap_total=16 * GIB, swap_free=16 * GIB)),
    ("MEM008", "Ubuntu's own looks after logins", units_context("systemd-oomd.service")),
    ("MEM020", "an error of PCIe in the same form", kernel_log("{1}[Hardware Error]: section_type: PCIe error")),
    ("MEM020", "the kernel counts from now on", kernel_log("EDAC MC: Ver: 3.0.0")),
    ("MEM022", "little is free at all", memory_context(free=4 * GIB, blocks=(1_000_000, 0))),
    ("MEM022", "the kernel's largest block is 4 MiB", memory_context(free=100 * GIB, blocks=(0,) * 10 + (25_000,))),
    ("MEM022", "buddyinfo is not known", memory_context(free=100 * GIB)),
    ("MEM023", "less lacks than the usual reserve takes", context({"memory": memory(40), "upkeep": UPKEEP})),
    ("MEM023", "the check passes", context({"upkeep": UPKEEP})),
    ("MEM023", "the reserve is not known", context({"memory": memory(26), "upkeep": Unknown("", "x")})),
    ("MEM024", "what is given without a word", context(recipe=replace(RECIPE, shm_bytes=64 * GIB))),
    ("MEM026", "less than stays", context(recipe=replace(RECIPE, loading=Loading(floor=GIB)))),
    ("MEM026", "none", context()),
    ("MEM025", "room enough", serving_context(memory_fraction=0.8, kv_cache_bytes=8 * GIB)),
    ("MEM025", "more than there is is MEM001", serving_context(memory_fraction=0.8, kv_cache_bytes=60 * GIB)),
    ("MEM025", "the engine measures", serving_context(memory_fraction=0.8)),
    ("MEM009", "large enough", upkeep(sysctls={"vm.min_free_kbytes": "2097152"})),
    ("MEM009", "not a GB10",
        context_with(**WITH_H200, upkeep=replace(UPKEEP, sysctls={"vm.min_free_kbytes": "67584"}))),
    ("MEM010", "as it should be", memory_context(cma_total=131072 * 1024, cma_free=69320 * 1024)),
    ("MEM011", "check loads nothing", context_with(memory=FULL_CACHE)),
    ("MEM011", "the twin loads nothing", context({"memory": FULL_CACHE}, PLAYED)),
    ("MEM012", "some wait, not all", activity(stall_full=0.05, stall_some=3.0)),
    ("MEM013", "another machine's affair", context_with(**WITH_H200, activity=replace(ACTIVITY, oom_kills=7))),
    ("MEM015", "a difference of pages", memory_context(total=TOTAL - GIB // 2)),
    ("MEM016", "a rank of ours runs", context_with(
        activity=replace(ACTIVITY, processes=(OLLAMA,)), ranks=(rank_status("big"),))),
    ("MEM016", "not known what runs", context_with(activity=replace(ACTIVITY, processes=(OLLAMA,)), ranks=ODD)),
    ("MEM017", "a rank of ours runs", context_with(memory=memory(118), ranks=(rank_status("big"),))),
    ("TIME001", "within what asking took", times_context(now=1001.3)),
    ("TIME001", "when it was asked is not known", context_with(times=replace(TIMES, now=1005.0), asked=0.0)),
    ("TIME002", "not told", times_context(synchronized=ODD)),
    ("TIME003", "seconds", times_context(now=1030.0)),
]  # fmt: skip
