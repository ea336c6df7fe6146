"""`check` and `facts` of a GB10 node whose /proc, /sys and programs are a tree: what is wrong with it is found."""

import json
from pathlib import Path
from typing import Any

import pytest

from functional.command import UserShell

MEMINFO = Path(__file__).parents[1] / "data" / "facts" / "meminfo" / "idle.txt"
SMI = """#!/bin/sh
case "$*" in
*query-compute-apps*) echo 'pid, process_name, used_gpu_memory [MiB]' ;;
*query-gpu*)
  echo 'name, driver_version, compute_cap, memory.total, temperature.gpu, power.draw, clocks.sm, utilization.gpu'
  echo 'NVIDIA GB10, 580.159.03, 12.1, [N/A], 52, 9.80 W, 721 MHz, 96 %' ;;
-q) printf '%s : 580.159.03\\n' 'Driver Version' 'GSP Firmware Version' ;;
esac
"""
LOG = """[    3.3] NVRM: loading NVIDIA Open GPU Kernel Module for aarch64  580.159.03  Release Build
[   41.2] NVRM: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal
[   41.9] NVRM: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal
[  500.0] mlx5_core 0000:01:00.0: mlx5_pcie_event:326:(pid 165): Detected insufficient power on the PCIe slot (27W).
"""
TREE = {
    "proc/meminfo": MEMINFO.read_text(),
    "proc/sys/vm/min_free_kbytes": "67584\n",
    "proc/vmstat": "pswpin 10\npswpout 20\noom_kill 1\n",
    "proc/pressure/memory": "some avg10=0.00\nfull avg10=0.00\n",
    "var/log/dmesg": LOG,
    "etc/modprobe.d/zz.conf": "options nvidia-drm modeset=0\n",
    "sys/bus/pci/devices/000f:01:00.0/vendor": "0x10de\n",
    "sys/bus/pci/devices/000f:01:00.0/device": "0x2e12\n",
    "sys/class/thermal/thermal_zone0/type": "acpitz\n",
    "sys/class/thermal/thermal_zone0/temp": "94100\n",
    "usr/lib/aarch64-linux-gnu/libcuda.so.1": "",
}


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    made = UserShell(tmp_path)
    for name, text in TREE.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvidia-smi").write_text(SMI)
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    env = f"{{SPARKWRIGHT_SYSROOT: {tmp_path}/root, PATH: '{tmp_path}/bin:/usr/bin:/bin'}}"
    node = f"  - {{name: a, ssh: local, env: {env}, paths: {{state: {tmp_path}/state}}}}\n"
    (tmp_path / "cluster.yaml").write_text(f"nodes:\n{node}")
    return made


def run_json(shell: UserShell, verb: str) -> tuple[int, dict[str, Any]]:
    code, out, err = shell.run(verb, "--json")
    assert out, err
    found: dict[str, Any] = json.loads(out)
    return code, found


def test_what_is_wrong_with_the_node_is_found_in_one_round(user_shell: UserShell) -> None:
    """Guards the way from real files and programs to findings with evidence, and that the check itself fails."""
    code, found = run_json(user_shell, "check")
    evidence = {one["code"]: one["evidence"] for one in found["findings"]}
    assert code == 1
    assert {"DRV010", "DRV011", "DRV013", "GPU005", "GPU007", "MEM009", "MEM013", "MEM014"} <= set(evidence)
    assert evidence["MEM009"] == "vm.min_free_kbytes = 67584; expected: 3145728 (3 GiB)"
    assert evidence["MEM014"].endswith("_memdescAllocInternal (2 such lines)")
    assert evidence["GPU005"].startswith("nvidia-smi: 96 % busy at 721 MHz and 9.8 W")
    assert evidence["MEM013"] == "/proc/vmstat: oom_kill 1 since boot"
    assert "27W" not in json.dumps(found)


def test_a_fix_reports_what_it_does_and_how_it_is_taken_back(user_shell: UserShell) -> None:
    """Guards that a change is in the JSON whole, and that nothing was changed by looking."""
    _, found = run_json(user_shell, "check")
    (fix,) = [one["fix"] for one in found["findings"] if one["code"] == "MEM009"]
    assert fix["says"] == "vm.min_free_kbytes = 3145728 (67584 before), now and at each boot"
    assert [one["argv"][-2] for one in (*fix["do"], *fix["undo"])] == ["3145728", "67584"]
    assert not (user_shell.folder / "root" / "etc" / "sysctl.d").exists()
    assert (user_shell.folder / "root" / "proc/sys/vm/min_free_kbytes").read_text() == "67584\n"


def test_facts_of_the_tree_are_the_trees_own(user_shell: UserShell) -> None:
    """Guards that the machine that plays the node does not show through."""
    _, found = run_json(user_shell, "facts")
    node = found["nodes"]["a"]
    assert node["board"]["zones"] == {"acpitz": 94.1}
    assert node["upkeep"]["sysctls"] == {"vm.min_free_kbytes": "67584"}
    assert (node["upkeep"]["units"], node["kernel_log"]["lines"]) == ({}, 4)
    assert node["asked"] <= node["at"]
