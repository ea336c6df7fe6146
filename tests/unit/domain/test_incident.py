"""The length of an outage: by the clock since boot, and what is said of it after a reboot."""

from dataclasses import replace

from sparkwright.domain.incident import HANDED, TAKEN_OVER, UNWATCHED, WATCHED, Incident, IncidentEvent, Uptime
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


def test_an_open_incident_says_whether_anybody_watches_it() -> None:
    """Guards a supervisor that somebody stopped: `open` alone says that it is being worked on."""
    assert (BEGAN.outcome_text, BEGAN.unwatched_at) == ("open", 0.0)
    left = replace(BEGAN, events=(IncidentEvent(1003.0, "draining"), IncidentEvent(1007.0, UNWATCHED)))
    assert (left.outcome_text, left.unwatched_at) == ("open, not watched", 1007.0)
    again = replace(left, events=(*left.events, IncidentEvent(1050.0, WATCHED)))
    assert (again.outcome_text, again.unwatched_at) == ("open", 0.0)
    over = left.closed(1060.0, "given up", 0.0, None)
    assert (over.outcome_text, over.unwatched_at) == ("given up", 0.0)


def test_an_outage_that_was_taken_over_ends_when_it_serves() -> None:
    """Guards the length of an outage that an `up` ends; what ended otherwise, or serves already, stays as it is."""
    taken = BEGAN.closed(1010.0, TAKEN_OVER, 0.0, None)
    assert taken.away is None and not taken.is_handed
    assert replace(taken, events=(IncidentEvent(1011.0, HANDED),)).is_handed
    ended = taken.served(1016.0, Uptime("boot-1", 66.0, "spark-1"))
    assert (ended.away, ended.outcome, ended.closed_at) == (16.0, TAKEN_OVER, 1016.0)
    assert not replace(ended, events=(IncidentEvent(1011.0, HANDED),)).is_handed
    for other in (BEGAN, ended, BEGAN.closed(1010.0, "given up", 0.0, None)):
        assert other.served(2000.0, Uptime("boot-1", 1050.0, "spark-1")) == other
