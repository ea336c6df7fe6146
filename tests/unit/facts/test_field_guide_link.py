"""The field guide's texts about the link, parsed where the guide is at hand (it is not shipped)."""

import re

import pytest

from sparkwright.domain.command import Completed
from sparkwright.domain.fabric_facts import Nic
from sparkwright.domain.host_facts import KernelLog, KernelNote
from sparkwright.facts.deep_check import bandwidth
from unit.checks.fabric_cases import bandwidth_measured, context_of_two, context_with
from unit.checks.samples import run_check
from unit.facts.subjects import ALL_FACTS
from unit.facts.test_field_guide import GUIDE, blocks, field_guide

pytestmark = pytest.mark.skipif(
    not GUIDE.is_file(), reason=f"data: the field guide is not next to this checkout: {GUIDE.name}"
)
__all__ = ["field_guide"]


def test_bandwidth_tables(field_guide: str) -> None:
    """Guards that the guide's healthy table and its degraded row are read and judged as the guide does."""
    (table,) = (block for block in blocks(field_guide, "RDMA_Write BW Test"))
    healthy = bandwidth(Completed(0, table))
    assert healthy == 92.57
    row = re.search(r"degraded row: `([^`]*)`", field_guide)
    assert row
    slow = bandwidth(Completed(0, table.replace(table.splitlines()[-1], row[1])))
    assert slow == 13.22
    causes = [
        run_check("DEEP001", context_of_two({}, measured=bandwidth_measured(gbit)))[0].cause for gbit in (healthy, slow)
    ]
    assert "healthy" in causes[0]
    assert "13 Gb/s is the power cap" in causes[1]


def test_plug_events(field_guide: str) -> None:
    """Guards that each of the guide's lines about a cable that is put in is seen, and those about pulling are not."""
    lines = set(re.findall(r"`((?:cx7-pcie-hotplug|mlx5_core)[^`|]*Cable[^`|]*)`", field_guide))
    kinds = {line.rpartition("Cable ")[2]: line for line in lines}
    assert set(kinds) == {"plugin", "plugged", "unplugged", "removal"}
    for kind, line in kinds.items():
        log = KernelLog(1, (KernelNote(line, 1, 99.0, 99.0, line),))
        put_in = bool(run_check("RDMA001", context_with(kernel_log=log)))
        assert put_in == (kind in ("plugin", "plugged")), line


def test_firmware_of_the_guide_is_new_enough(field_guide: str) -> None:
    """Guards the spelling of the version in sysfs against that of the kernel's lines."""
    (version,) = set(re.findall(r"mlx5_core \S+: firmware version: (\S+)", field_guide))
    text = f"@@ pci\n@@ devices\nrocep1s0f0/fw_ver:{version}\n@@ tools\n"
    nic = ALL_FACTS["nic"].read(Completed(0, text))
    assert isinstance(nic, Nic)
    assert nic.devices[0].firmware == "28.45.4028"
