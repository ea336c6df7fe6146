"""The statements of nvidia-smi, lspci, /proc/meminfo and the release files on a node."""

import json

DRIVER = "580.159.03"
QUERY_FIELDS = {
    "query-gpu": "name index uuid pci.bus_id driver_version compute_cap memory.total memory.reserved memory.used "
    "memory.free temperature.gpu power.draw clocks.sm clocks.mem clocks.max.sm utilization.gpu utilization.memory "
    "pstate persistence_mode compute_mode power.limit clocks_event_reasons.active clocks_throttle_reasons.active "
    "vbios_version",
    "query-compute-apps": "pid process_name used_gpu_memory used_memory gpu_uuid gpu_name",
}
NOT_TOLD = "[N/A]"

TABLE = """\
Fri Nov 20 09:14:51 2026\x20\x20\x20\x20\x20\x20\x20
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.03             Driver Version: 580.159.03     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   38C    P8              4W /  N/A  | Not Supported          |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""

DETAILS = f"""\

==============NVSMI LOG==============

Timestamp                                              : Fri Nov 20 09:14:51 2026
Driver Version                                         : {DRIVER}
CUDA Version                                           : 13.0

Attached GPUs                                          : 1
GPU 0000000F:01:00.0
    Product Name                                       : NVIDIA GB10
    Product Brand                                      : NVIDIA
    Product Architecture                               : Blackwell
    Persistence Mode                                   : Enabled
    GSP Firmware Version                               : {DRIVER}
    FB Memory Usage
        Total                                          : N/A
        Reserved                                       : N/A
        Used                                           : N/A
        Free                                           : N/A
"""

FAILED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n\n"
)

LSPCI = """\
0000:00:00.0 PCI bridge [0604]: NVIDIA Corporation GB10 GEN5 X4 PCIe host [10de:22ce] (rev 01)
0000:01:00.0 Ethernet controller [0200]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]
0000:01:00.1 Ethernet controller [0200]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]
0002:00:00.0 PCI bridge [0604]: NVIDIA Corporation GB10 GEN5 X4 PCIe host [10de:22ce] (rev 01)
0002:01:00.0 Ethernet controller [0200]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]
0002:01:00.1 Ethernet controller [0200]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]
000f:01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GB20B [GB10] [10de:2e12] (rev a1)
"""

MEMINFO = """\
MemTotal       127598836
MemFree        112904180
MemAvailable   121846312
Buffers           211408
Cached           8916532
SwapCached             0
Active           3120936
Inactive         7204660
Active(anon)     1198720
Inactive(anon)         0
Active(file)     1922216
Inactive(file)   7204660
Unevictable        27312
Mlocked            27312
SwapTotal       16777212
SwapFree        16777212
Zswap                  0
Zswapped               0
Dirty                184
Writeback              0
AnonPages        1225340
Mapped            514720
Shmem               3412
KReclaimable      498164
Slab             1050208
SReclaimable      498164
SUnreclaim        552044
KernelStack        15232
PageTables         27904
SecPageTables       5468
NFS_Unstable           0
Bounce                 0
WritebackTmp           0
CommitLimit     80576628
Committed_AS     6120488
VmallocTotal   133141626880
VmallocUsed       104316
VmallocChunk           0
Percpu             27840
HardwareCorrupted      0
AnonHugePages     319488
ShmemHugePages         0
ShmemPmdMapped         0
FileHugePages          0
FilePmdMapped          0
CmaTotal          131072
CmaFree            70144
Unaccepted             0
HugePages_Total        0
HugePages_Free         0
HugePages_Rsvd         0
HugePages_Surp         0
Hugepagesize        2048
Hugetlb                0
"""

DGX_RELEASE = """\
DGX_NAME="DGX Spark"
DGX_PRETTY_NAME="NVIDIA DGX Spark"
DGX_SWBUILD_DATE="2026-02-11-08-20-44"
DGX_SWBUILD_VERSION="7.4.0"
DGX_COMMIT_ID="5f0c2d1"
DGX_PLATFORM="DGX Spark"
DGX_SERIAL_NUMBER="0000000000000"

DGX_OTA_VERSION="7.5.0"
DGX_OTA_DATE="Wed May  6 10:02:31 UTC 2026"

DGX_OTA_VERSION="7.6.0"
DGX_OTA_DATE="Thu Sep 17 18:40:12 UTC 2026"
"""


def gpu_row(**changes: str) -> dict[str, str]:
    row = dict.fromkeys(QUERY_FIELDS["query-gpu"].split(), NOT_TOLD)
    row |= {"name": "NVIDIA GB10", "index": "0", "pci.bus_id": "0000000F:01:00.0", "driver_version": DRIVER}
    row |= {"compute_cap": "12.1", "temperature.gpu": "38", "power.draw": "3.92 W", "clocks.sm": "208 MHz"}
    row |= {"clocks.max.sm": "3003 MHz", "utilization.gpu": "0 %", "utilization.memory": "0 %", "pstate": "P8"}
    row |= {"persistence_mode": "Enabled", "compute_mode": "Default", "vbios_version": "9A.0B.1C.00.00"}
    row |= {"clocks_event_reasons.active": "0x0000000000000001", "clocks_throttle_reasons.active": "0x0000000000000001"}
    return row | changes


def app_row(pid: int, name: str, used: str, uuid: str) -> dict[str, str]:
    row = {"pid": str(pid), "process_name": name, "used_gpu_memory": used, "used_memory": used}
    return row | {"gpu_uuid": uuid, "gpu_name": "NVIDIA GB10"}


def gpu_json(gpu: dict[str, str], *apps: dict[str, str]) -> str:
    fields = {option: names.split() for option, names in QUERY_FIELDS.items()}
    return json.dumps({"gpu": [gpu], "apps": apps, "fields": fields}, indent=1)


def shim_files(index: int) -> dict[str, str]:
    uuid = f"GPU-00000000-0000-4000-8000-00000000000{index}"
    gpu = gpu_row(uuid=uuid)
    busy = gpu_row(
        uuid=uuid, pstate="P0", **{"utilization.gpu": "96 %", "power.draw": "38.14 W", "clocks.sm": "2411 MHz"}
    )
    states = {"utilization.gpu": "94 %", "utilization.memory": "58 %", "power.draw": "61.70 W", "clocks.sm": "2405 MHz"}
    working = gpu_row(uuid=uuid, pstate="P0", **states)
    # a collective that is waited for: all SMs poll, nothing is read
    states |= {"utilization.gpu": "96 %", "utilization.memory": "0 %", "power.draw": "14.22 W"}
    spinning = gpu_row(uuid=uuid, pstate="P0", **states)
    engine = app_row(41207, "VLLM::EngineCore", "98713 MiB", uuid)
    odd = gpu_row(uuid=uuid, **{"memory.total": "Not Supported", "power.draw": "N/A", "utilization.gpu": ""})
    names = {"default": gpu_json(gpu), "busy": gpu_json(busy, engine), "odd": gpu_json(odd)}
    names |= {"working": gpu_json(working, engine), "spinning": gpu_json(spinning, engine)}
    files = {f"nvidia-smi/{name}.json": text for name, text in names.items()}
    for name in names:
        files |= {f"nvidia-smi/{name}.txt": TABLE, f"nvidia-smi/{name}@-q.txt": DETAILS}
        files[f"nvidia-smi/{name}@-L.txt"] = f"GPU 0: NVIDIA GB10 (UUID: {uuid})\n"
    old_driver = gpu_json(gpu_row(uuid=uuid, driver_version="595.58.03"))
    files |= {"nvidia-smi/refused-driver.json": old_driver, "nvidia-smi/refused-driver.txt": TABLE}
    # A dead driver is told in words only: the exit code has been seen as 9 and, through wrappers, as 0.
    files |= {"nvidia-smi/failed.txt": FAILED, "nvidia-smi/failed.exit": "9", "nvidia-smi/failed-exit-0.txt": FAILED}
    files |= {"nvidia-smi/no-devices.txt": "No devices were found\n", "nvidia-smi/no-devices.exit": "6"}
    return files | {"nvidia-smi/hang.txt": TABLE, "nvidia-smi/hang.sleep": "600"}


def meminfo(index: int, **changes: int) -> str:
    """The kernel's own columns: the figure ends in column 23, page counts have no unit."""
    lines = []
    for line in MEMINFO.splitlines():
        name, figure = line.split()
        value = changes.get(name, int(figure) - (4 * index if name == "MemTotal" else 0))
        unit = "" if name.startswith("HugePages_") else " kB"
        lines.append(f"{name + ':':<16}{value:>8}{unit}\n")
    return "".join(lines)


def meminfo_variants(index: int) -> dict[str, str]:
    return {
        # the driver keeps ~80 GiB of an engine that has gone: used by nobody, and not available
        "memory-retained": meminfo(index, MemFree=28_311_404, MemAvailable=37_250_116),
        "memory-tight": meminfo(index, MemFree=1_204_616, MemAvailable=6_913_704, AnonPages=112_340_128),
        "memory-cached": meminfo(index, MemFree=30_412_096, Cached=91_404_616, MemAvailable=121_102_440),
    }


def host_files(index: int) -> dict[str, str]:
    version = f"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  {DRIVER}  Release Build\n"
    return {
        "proc/meminfo": meminfo(index),
        "proc/driver/nvidia/version": version + "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n",
        "etc/dgx-release": DGX_RELEASE,
        "sys/class/dmi/id/sys_vendor": "NVIDIA\n",
        "sys/class/dmi/id/product_name": "NVIDIA_DGX_Spark\n",
        "sys/class/dmi/id/bios_version": "5.36_0ACUM021\n",
    }
