"""The length of an outage: by the clock since boot, and what is said of it after a reboot."""

from dataclasses import replace

from sparkwright.domain.incident import Incident, Uptime
from unit.for_each import for_each

BEGAN = Incident("twin", "rank-exited", "rank 1 has ended", 1000.0).began(1002.0, Uptime("boot-1", 52.0, "spark-1"))


@for_each(
    "set_by, up, away, text",
    [
        (0.0, Uptime("boot-1", 66.0, "spark-1"), 16.0, "16 s"),
        (3600.0, Uptime("boot-1", 66.0, "spark-1"), 16.0, "16 s"),
        (-3600.0, Uptime("boot-1", 66.0, "spark-1"), 16.0, "16 s"),
        (0.0, Uptime("boot-2", 12.0, "spark-1"), 16.0, "about 16 s"),
        (-3600.0, Uptime("boot-2", 12.0, "spark-1"), 12.0, "at least 12 s"),
        (0.0, Uptime("boot-9", 864000.0, "spark-2"), 16.0, "about 16 s"),
        (-3600.0, Uptime("boot-9", 864000.0, "spark-2"), None, ""),
    ],
)
def test_a_calendar_that_is_set_lengthens_no_outage(set_by: float, up: Uptime, away: float | None, text: str) -> None:
    """Guards the figure that owners read: NTP after a reboot told of hours, and of less than nothing."""
    ended = BEGAN.closed(1016.0 + set_by, "serving again", 1016.0 + set_by, up)
    assert (ended.away, ended.away_text) == (away, text)
    assert not ended.is_open and ended.opened_at == 1000.0


def test_an_outage_from_before_the_boot_is_not_exact() -> None:
    """Guards an incident that is opened after the head's reboot: it began under another boot."""
    late = replace(BEGAN, opened_at=900.0).began(1002.0, Uptime("boot-2", 52.0, "spark-1"))
    ended = late.closed(1016.0, "serving again", 1016.0, Uptime("boot-2", 66.0, "spark-1"))
    assert (ended.away, ended.away_word) == (116.0, "about")


def test_an_incident_of_an_earlier_version_is_measured_by_its_calendar() -> None:
    """Guards histories: nothing is known of them but two times."""
    old = Incident("twin", "rank-exited", "", 1000.0)
    assert old.closed(1016.0, "serving again", 1016.0, Uptime("b", 5.0)).away_text == "16 s"
    assert old.closed(1016.0, "given up", 0.0, Uptime("b", 5.0)).away is None
