"""The disk of serving.disk_cache: its room, and whether it is mounted."""

from sparkwright.domain.finding import Severity
from unit.checks.samples import found
from unit.checks.test_rules import cached
from unit.for_each import for_each


@for_each(
    "mount, total, free, told",
    [
        ("/data", 500, 150, ("little room for the KV cache on /data", Severity.INFO)),
        ("/data", 100, 90, ("no room for the KV cache on /data", Severity.WARN)),
        ("/", 900, 800, ("the KV cache is on the system's disk", Severity.INFO)),
    ],
)
def test_the_disk_of_a_kv_cache(mount: str, total: int, free: int, told: tuple[str, Severity]) -> None:
    """Guards a disk that is too small for ever, one that is full now, and one that is not mounted."""
    assert {(one.title, one.severity) for one in found("DISK005", cached(mount, total, free))} == {told}
