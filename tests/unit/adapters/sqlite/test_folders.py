"""Incident folders: how evidence is kept within its bound."""

from pathlib import Path

from sparkwright.adapters.sqlite.folders import Folders
from sparkwright.domain.incident import Incident


def test_the_largest_files_lose_their_middle(tmp_path: Path) -> None:
    """The start reports how the engine was called, the end how it died."""
    folders = Folders(tmp_path, most=10_000)
    number, folder = folders.make("twin", 1)
    folders.write(Incident("twin", "frozen", "", 1.0, number=number, folder=str(folder)))
    (folder / "rank0-a.log").write_text("first line\n" + "x" * 50_000 + "\nlast line")
    (folder / "rank1-b.log").write_text("small")
    folders.trim(folder)
    text = (folder / "rank0-a.log").read_text()
    assert text.startswith("first line\n") and text.endswith("last line")
    assert "bytes were cut here" in text and len(text) < 10_100
    assert (folder / "rank1-b.log").read_text() == "small"


def test_evidence_within_its_bound_is_left_alone(tmp_path: Path) -> None:
    """Not a byte of it changes."""
    folders = Folders(tmp_path, most=100)
    _, folder = folders.make("twin", 1)
    (folder / "rank0-a.log").write_text("y" * 100)
    folders.trim(folder)
    assert (folder / "rank0-a.log").read_text() == "y" * 100


def test_many_files_are_cut_together(tmp_path: Path) -> None:
    """Eight ranks that all logged too much are within the bound afterwards, but for the lines that describe the
    cuts."""
    folders = Folders(tmp_path, most=8_000)
    _, folder = folders.make("twin", 1)
    for rank in range(8):
        (folder / f"rank{rank}-n.log").write_text("z" * (2_000 + rank))
    folders.trim(folder)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8_000 + 8 * 40


def test_a_number_that_somebody_took_is_passed_over(tmp_path: Path) -> None:
    """Two deployments share a head, and `incidents show 3` names no deployment."""
    folders = Folders(tmp_path)
    assert folders.make("a", 3)[0] == 3
    assert folders.make("b", 3)[0] == 4
    assert folders.last() == 4


def test_what_is_no_incident_is_passed_over(tmp_path: Path) -> None:
    """Somebody's notes, numbers that are none of ours, a record that was cut short."""
    folders = Folders(tmp_path)
    for name in ("notes", "0", "007", "9" * 30, "\N{ARABIC-INDIC DIGIT THREE}"):
        (tmp_path / "a" / name).mkdir(parents=True)
    _, folder = folders.make("a", 1)
    (folder / "incident.json").write_text('{"deployment": "a", "ki')
    assert folders.all() == () and folders.read(1) is None and folders.last() == 1
