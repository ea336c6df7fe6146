"""The kernel log lines of the field guide, digested and judged where the guide is at hand (it is not shipped)."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from functional.facts.shell import run, write_files
from sparkwright.checks.catalog import check_all
from sparkwright.domain.host_facts import KernelLog
from unit.checks.samples import context, healthy
from unit.facts.subjects import ALL_FACTS
from unit.facts.test_field_guide import GUIDE, blocks

pytestmark = pytest.mark.skipif(
    not GUIDE.is_file(), reason=f"data: the field guide is not next to this checkout: {GUIDE.name}"
)


def finding_codes(folder: Path, text: str) -> set[str]:
    """The codes that check finds of a node with such a kernel log."""
    write_files(folder, {"var/log/dmesg": text})
    found = ALL_FACTS["kernel_log"].read(run(ALL_FACTS["kernel_log"].command, SPARKWRIGHT_SYSROOT=str(folder)))
    assert isinstance(found, KernelLog)
    where = context(recipe=None)
    facts = {**where.facts, "spark-1": healthy("spark-1", kernel_log=found)}
    return {finding.code for finding in check_all(replace(where, facts=facts))}


def test_the_failure_set_is_named(tmp_path: Path) -> None:
    """Guards that GSP failure, Xid, driver out of memory and OOM kill are each read from the guide's own lines."""
    (block,) = blocks(GUIDE.read_text(), "ksec2PrepareBootCommands_GB20B: SEC2")
    assert {"DRV007", "GPU004", "MEM013", "MEM014"} <= finding_codes(tmp_path, block)


def test_benign_lines_are_not_blamed(tmp_path: Path) -> None:
    """Guards that the 27 W line, peermem and firmware versions, which healthy machines print, are no finding."""
    text = GUIDE.read_text()
    lines = [line for line in "".join(blocks(text, "kernel: mlx5_core")).splitlines() if "mlx5_core" in line]
    (failures,) = blocks(text, "ksec2PrepareBootCommands_GB20B: SEC2")
    lines += [line for line in failures.splitlines() if re.search(r"27W|nvidia_peermem|NVRM: loading", line)]
    assert len(lines) >= 7
    assert finding_codes(tmp_path, "\n".join(lines)) == set()
