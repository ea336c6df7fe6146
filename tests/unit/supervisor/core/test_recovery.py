"""The remedies of faults, against the rules that name them."""

from sparkwright.causes.diagnose import line_causes
from sparkwright.causes.load import whole_log
from sparkwright.checks.catalog import CHECKS
from sparkwright.domain.diagnosis import Cause, Diagnosis, Proof
from sparkwright.domain.finding import Finding, Severity
from sparkwright.supervisor.core import recovery
from sparkwright.supervisor.core.recovery import NOTHING, Recovery, of_diagnosis, of_findings, of_kernel, worst_needs
from unit.for_each import for_each


def make_cause(key: str, confidence: float = 0.95) -> Cause:
    return Cause(key, "X", "t", Severity.BLOCK, confidence, "w", (), (Proof("rank 0", 1, "line"),))


def finding(code: str, severity: Severity = Severity.OVERRIDE) -> Finding:
    return Finding(code, severity, "spark-1", "t")


def test_every_key_is_a_cause_that_a_rule_names() -> None:
    """A cause that is renamed must not silently lose its reboot."""
    causes = {cause.key for cause in (*line_causes().values(), *whole_log().values())}
    assert set(recovery.BY_CAUSE) - causes == set()


def test_every_code_is_a_rule() -> None:
    """The same for findings."""
    codes = {check.code for check in CHECKS}
    assert {*recovery.BY_CODE, *recovery._IF_IT_STOPS} - codes == set()


def test_every_entry_reports_why() -> None:
    """Guards that no reboot is asked for without a reason."""
    tables = (recovery.BY_CAUSE, recovery.BY_CODE, recovery._IF_IT_STOPS, recovery.XIDS)
    entries = [needs for table in tables for needs in table.values()]
    assert all(needs.why for needs in entries)


@for_each(
    "causes, wanted",
    [
        ((make_cause("gpu-fell-off-bus-xid79"),), Recovery.POWER_CYCLE),
        ((make_cause("nic-hotplug-power-cap"),), Recovery.REBOOT),
        ((make_cause("nic-hotplug-power-cap"), make_cause("gb10-stuck-low-power-state")), Recovery.POWER_CYCLE),
        ((make_cause("gpu-fell-off-bus-xid79", 0.7),), Recovery.NONE),
        ((make_cause("peer-rank-died"),), Recovery.NONE),
        ((make_cause("gb10-unified-memory-leak-after-kill"), make_cause("driver-memdesc-leak-gb10")), Recovery.NONE),
        ((), Recovery.NONE),
    ],
)
def test_of_a_diagnosis_only_what_is_nearly_certain(causes: tuple[Cause, ...], wanted: Recovery) -> None:
    """A reboot for a guess costs more than a relaunch that fails; where the field disagrees the launch decides."""
    assert of_diagnosis(Diagnosis(causes, (), ())).recovery is wanted


@for_each(
    "findings, wanted",
    [
        ([finding("GPU011")], Recovery.POWER_CYCLE),
        ([finding("RDMA001", Severity.WARN)], Recovery.REBOOT),
        ([finding("RDMA001", Severity.INFO)], Recovery.NONE),
        ([finding("GPU004")], Recovery.REBOOT),
        ([finding("GPU004", Severity.WARN)], Recovery.NONE),
        ([finding("MEM004", Severity.WARN)], Recovery.NONE),
        ([finding("PORT001"), finding("DISK001")], Recovery.NONE),
        ([finding("RDMA001"), finding("GPU005")], Recovery.POWER_CYCLE),
        ([], Recovery.NONE),
    ],
)
def test_of_findings(findings: list[Finding], wanted: Recovery) -> None:
    """The gravest; some only when they stop the launch."""
    assert of_findings(findings).recovery is wanted


def test_of_the_kernel_log() -> None:
    """The line comes along as evidence."""
    line = "NVRM: Xid (PCI:000f:01:00): 79, pid='<unknown>', GPU has fallen off the bus."
    assert of_kernel(["x", line]) == (recovery.XIDS[79], line)
    assert of_kernel(["NVRM: Xid (PCI:000f:01:00): 13, Graphics Exception"]) == (NOTHING, "")


def test_the_worst_of_nothing_is_nothing() -> None:
    """The worst is never less than the given needs."""
    assert worst_needs([]) is NOTHING
    assert worst_needs([recovery.XIDS[43], recovery.XIDS[119]]) is recovery.XIDS[119]
