"""Changes that supervisors write, and when an open page has to show them."""

from dataclasses import replace
from pathlib import Path

from sparkwright.adapters.sqlite.folders import Folders
from sparkwright.adapters.sqlite.store import FOLDERS
from sparkwright.console.board import ReportBoard
from sparkwright.console.feed import Feed
from sparkwright.console.sessions import Visitor
from sparkwright.domain.codec import to_json
from sparkwright.domain.incident import Incident
from sparkwright.domain.live import DeploymentState
from sparkwright.gateway.keys import Key, Keys, Role
from unit.console.test_overview import LIVE, NOW

VISITOR = Visitor(Key("me", "0" * 64, role=Role.VIEWER), "token")


class WrittenHead:
    """A head's folder with one deployment, as its supervisor and its store write it, and a page that is open.

    Its clock is set by hand.
    """

    def __init__(self, state: Path) -> None:
        self.state, self.now = state, NOW
        self.folders = Folders(state / FOLDERS)
        (state / "supervision/chat").mkdir(parents=True)
        number, folder = self.folders.make("chat", 1)
        self.incident = Incident("chat", "rank-exited", "rank 1 ended", NOW, number, folder=str(folder))
        self.folders.write(self.incident)
        self.show(DeploymentState.LOADING, incident=1)
        self.board, keys = ReportBoard(state, lambda: self.now), Keys()
        self.feed = Feed(self.board, lambda: keys)
        self.page()

    def show(self, phase: DeploymentState, incident: int) -> None:
        shown = replace(LIVE, phase=phase, incident=incident, last_incident=1, incidents=1)
        (self.state / "supervision/chat/live.json").write_text(to_json(shown))

    def page(self) -> str:
        """The page two seconds later, as an event of the feed has it."""
        self.now += 2.0
        self.feed.look()
        return self.feed.event(VISITOR)


def test_an_incident_that_is_closed_after_its_report_is_shown_as_closed(tmp_path: Path) -> None:
    """Guards the order of a busy head: the report says ready, and a moment later the record is closed."""
    head = WrittenHead(tmp_path)
    head.show(DeploymentState.READY, incident=0)
    assert ">open<" in head.page()
    head.folders.write(replace(head.incident, closed_at=NOW + 7, serving_at=NOW + 7, outcome="ready again"))
    assert "away for 7.0 s" in head.page()


def test_a_cause_that_is_found_later_is_shown(tmp_path: Path) -> None:
    """Guards what is written into a record while the state stays as it is."""
    head = WrittenHead(tmp_path)
    head.folders.write(replace(head.incident, cause="rank killed by an external signal"))
    assert "rank killed by an external signal" in head.page()


def test_a_change_that_another_page_has_read_first_reaches_the_open_ones(tmp_path: Path) -> None:
    """Guards events against requests for other pages, which read the same files."""
    head = WrittenHead(tmp_path)
    head.show(DeploymentState.READY, incident=0)
    head.board.refresh()
    assert "Up since" in head.page()
