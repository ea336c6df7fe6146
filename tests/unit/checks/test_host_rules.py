"""Rules about machine, driver, GPU, memory and clock: each fires, is silent where it should be, and fixes exactly."""

import re
from dataclasses import replace

import pytest

from sparkwright.checks.catalog import check_all
from sparkwright.domain.check import Context
from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.facts.kernel import WORTH
from unit.checks.fabric_cases import second_cage
from unit.checks.host_cases import (
    BLOCKED,
    DKMS,
    FIRING,
    GSP,
    NO_GPU,
    SILENT,
    UPKEEP,
    XID,
    XID_43,
    activity,
    awake_context,
    board_context,
    context_with,
    kernel_log,
    packages,
    times_context,
    upkeep,
)
from unit.checks.host_samples import BOARD, LOADED
from unit.checks.samples import context, memory, run_check
from unit.for_each import for_each

# What `--fix` may do by itself; sources agree on each, and each can be taken back.
FIXED = {"GPU006", "GPU007", "DRV006", "DRV015", "HOST012", "HOST026", "MEM009", "MEM019", "TIME002"}
ASUS = replace(BOARD, bios="GX10DGX.0103.2026.0114.0930")
CONTRADICTED = {"DRV010", "DRV011", "MEM007", "MEM008"}


@for_each("code", FIRING)
def test_rule_fires(code: str) -> None:
    """Guards that the defect is seen, with everything that a user needs to act."""
    findings = run_check(code, FIRING[code])
    assert findings
    for finding in findings:
        assert finding.code == code
        assert all((finding.subject, finding.title, finding.evidence, finding.cause, finding.remedy))
        assert "Unknown(" not in repr((finding.title, finding.evidence, finding.remedy))
    assert code in [finding.code for finding in check_all(FIRING[code])]


@for_each("code, why, where", SILENT, ids=lambda value: value if isinstance(value, str) else "")
def test_rule_is_silent(code: str, why: str, where: Context) -> None:
    """Guards that what looks like the defect and is none is not reported."""
    assert run_check(code, where) == []


def test_only_safe_remedies_are_fixes() -> None:
    """Guards that nothing else is changed automatically, that each change is reported, and that each has its way
    back."""
    fixes = [(code, one.fix) for code, where in FIRING.items() for one in run_check(code, where) if one.fix]
    assert {code for code, _ in fixes} == FIXED
    for _, fix in fixes:
        assert fix.node == "spark-1"
        assert fix.do and fix.undo and "before" in fix.says
        assert all(command.changes for command in (*fix.do, *fix.undo))


@pytest.mark.parametrize("code", sorted(CONTRADICTED))
def test_contested_things_report_both_sides_and_only_inform(code: str) -> None:
    """Guards that where sources contradict each other nothing is refused and nothing is changed."""
    (finding,) = run_check(code, FIRING[code])
    assert finding.severity is Severity.INFO
    assert finding.fix is None


def only_finding(code: str, where: Context) -> Finding:
    (finding,) = run_check(code, where)
    return finding


def test_the_way_back_is_the_value_that_was_seen() -> None:
    """Guards that undoing a sysctl sets the found value and not a default."""
    fix = only_finding("MEM009", FIRING["MEM009"]).fix
    assert fix is not None
    assert fix.do[0].argv[-3:] == ("vm.min_free_kbytes", "3145728", "vm-min-free-kbytes")
    assert fix.undo[0].argv[-3:] == ("vm.min_free_kbytes", "67584", "vm-min-free-kbytes")


def test_a_reserve_is_not_raised_where_little_is_available() -> None:
    """Guards that a machine which serves at its floor is reported and not pushed below it."""
    tight = context_with(upkeep=replace(UPKEEP, sysctls={"vm.min_free_kbytes": "67584"}), memory=memory(112))
    assert only_finding("MEM009", tight).fix is None


def test_only_units_that_were_not_masked_are_unmasked_again() -> None:
    """Guards that undo leaves alone what somebody else had masked."""
    units = {**awake_context().facts["spark-1"].upkeep.units, "sleep.target": UPKEEP.units["sleep.target"]}  # type: ignore[union-attr]
    fix = only_finding("HOST012", upkeep(units=units)).fix
    assert fix is not None
    assert fix.undo[0].argv == ("systemctl", "unmask", "suspend.target", "hibernate.target", "hybrid-sleep.target")


def test_a_synchronization_that_is_on_is_not_turned_on() -> None:
    """Guards that a clock whose server is out of reach has no fix: its remedy is the network's."""
    finding = only_finding("TIME002", times_context(synchronized=False, ntp=True))
    assert (finding.fix, finding.cause) == (None, "no time server was reached since boot")


@for_each(
    "code, where, severity",
    [
        ("HOST012", awake_context(), Severity.INFO),
        ("HOST013", upkeep(reboot_needed=True, reboot_for=("dbus",)), Severity.INFO),
        ("HOST013", FIRING["HOST013"], Severity.WARN),
        ("HOST016", upkeep(wifi="wlP9s9", power_save=False), Severity.INFO),
        ("HOST016", FIRING["HOST016"], Severity.WARN),
        ("HOST006", FIRING["HOST006"], Severity.WARN),
        ("HOST006", context({"kernel": BLOCKED}), Severity.OVERRIDE),
        ("HOST025", FIRING["HOST025"], Severity.INFO),
        ("HOST025", context_with(board=ASUS, **second_cage(1)), Severity.WARN),
        ("MEM020", kernel_log("{1}[Hardware Error]: section_type: memory error"), Severity.WARN),
        ("DRV007", FIRING["DRV007"], Severity.OVERRIDE),
        ("DRV007", kernel_log(GSP), Severity.WARN),
        ("GPU004", kernel_log(XID_43), Severity.WARN),
        ("GPU004", kernel_log(XID), Severity.OVERRIDE),
        ("MEM012", FIRING["MEM012"], Severity.WARN),
        ("MEM012", activity(stall_full=0.3, stall_some=1.0), Severity.INFO),
        ("MEM016", FIRING["MEM016"], Severity.WARN),
    ],
)
def test_severity_follows_the_harm(code: str, where: Context, severity: Severity) -> None:
    """Guards that a warning is reserved for what does harm in this very case."""
    assert only_finding(code, where).severity is severity


def test_many_lines_are_reported_as_one() -> None:
    """Guards that a leak's hundred lines are one finding with the line, its time and the count."""
    assert only_finding("MEM014", FIRING["MEM014"]).evidence == (
        "kernel log, 41 s after boot: NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] "
        "(0x00000051) (163 such lines)"
    )


def test_an_oom_kill_is_seen_without_the_kernel_log() -> None:
    """Guards that the counter alone is enough where the user may not read the log."""
    where = activity(oom_kills=2)
    assert only_finding("MEM013", where).evidence == "/proc/vmstat: oom_kill 2 since boot"
    assert run_check("MEM013", activity(oom_kills=Unknown(""))) == []


def test_the_clock_ahead_is_named_with_a_bound() -> None:
    """Guards that the gap is what is certain: the time that asking took is counted for the nodes."""
    assert only_finding("TIME001", FIRING["TIME001"]).evidence == "spark-1 is ahead by 4 s or more"
    assert only_finding("TIME001", times_context(now=990.0)).evidence == "spark-2 is ahead by 9 s or more"
    assert only_finding("TIME003", times_context(now=900.0)).evidence == "behind by 100 s or more"


def test_a_reboot_after_an_update_is_reported_once() -> None:
    """Guards that library and module of one unfinished update are one finding."""
    where = context_with(board=FIRING["DRV008"].facts["spark-1"].board)
    assert [f.code for f in check_all(where) if f.code.startswith("DRV")] == ["DRV008"]
    assert only_finding("DRV008", where).evidence == f"loaded kernel module {LOADED}, libcuda 580.173.02"


def test_what_the_driver_reports_of_a_dead_gpu_is_shown() -> None:
    """Guards that a GPU that is in the machine and does not answer is a finding without any recipe."""
    finding = only_finding("GPU008", context_with(gpus=NO_GPU))
    assert finding.severity is Severity.OVERRIDE
    assert finding.evidence == "000f:01:00.0 is 10de:2e12; nvidia-smi: NVIDIA-SMI has failed"


def test_versions_are_compared_without_their_packaging() -> None:
    """Guards that a rebuilt package of the same version is no torn update, and a kernel's number is no driver's."""
    assert run_check("DRV004", packages(DKMS)) == []
    assert "nvidia-firmware" in only_finding("DRV004", FIRING["DRV004"]).evidence
    assert "linux-modules" not in only_finding("DRV004", FIRING["DRV004"]).evidence


def test_a_plan_on_nodes_with_findings_of_their_own_shows_them() -> None:
    """Guards that `plan` and `up` hear of a broken node too."""
    where = context({"board": board_context(devices=("nvidiactl",)).facts["spark-1"].board})
    assert "DRV014" in [finding.code for finding in check_all(where)]


@for_each(
    "code, line",
    [
        ("HOST015", "Unable to handle kernel paging request at virtual address 00000000000004d8"),
        ("HOST021", "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff"),
        ("HOST021", "pcieport 0000:00:00.0: AER: Uncorrectable (Non-Fatal) error message received from 0000:01:00.0"),
        ("MEM013", "Memory cgroup out of memory: Killed process 812 (python3) total-vm:93112kB, anon-rss:8812kB"),
        ("MEM020", "Memory failure: 0x83c1a2: recovery action for dirty LRU page: Recovered"),
        ("MEM020", "EDAC MC0: 1 UE unknown error on unknown memory (node:0 card:1 page:0x83c1a offset:0x0)"),
        ("RDMA014", "pci 0002:01:00.0: DOE: [2c8] failed to create mailbox: -5"),
        ("RDMA014", "mlx5_core 0000:01:00.0: wait_fw_init:199:(pid 1): Waiting for FW initialization, timeout in 100s"),
        ("GPU010", "thermal thermal_zone1: acpitz: critical temperature reached, shutting down"),
        ("DRV007", "NVRM: ksec2PrepareBootCommands_GB20B: SEC2 secure boot partition timed out."),
    ],
)
def test_other_wordings_are_seen_too(code: str, line: str) -> None:
    """Guards that every wording of a fault leaves the node and is found."""
    assert re.search("|".join(WORTH), line)
    assert run_check(code, kernel_log(line))
