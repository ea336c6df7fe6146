"""The supervisor's own log: what happened, once, and never more than fits."""

from pathlib import Path

from sparkwright.domain.deployment import Phase
from sparkwright.domain.progress import Notice, Progress, RankPhase, StepDone, StepStarted
from sparkwright.supervisor.home import Log


def make_log(path: Path, most: int = 1000) -> Log:
    return Log(path / "log", lambda: 86400.5, most)


def test_lines_have_their_time(tmp_path: Path) -> None:
    """UTC, one line each, whatever the text holds."""
    make_log(tmp_path).report(Notice("two\nlines", warning=True))
    assert (tmp_path / "log").read_text() == "1970-01-02T00:00:00.500Z warning: two lines\n"


def test_only_what_is_worth_a_line(tmp_path: Path) -> None:
    """No progress, and of each rank's phase the beginning."""
    here = make_log(tmp_path)
    here.report(StepStarted("stop", "2 ranks"))
    here.report(Progress("load", "spark-1", 1, 2, "GiB"))
    for phase in (Phase.LOAD, Phase.LOAD, Phase.COMPILE):
        here.report(RankPhase(0, "spark-1", phase))
    here.report(RankPhase(1, "spark-2", Phase.LOAD))
    here.report(StepDone("stop", 1.0))
    words = [line.split(" ", 1)[1] for line in (tmp_path / "log").read_text().splitlines()]
    assert words == [
        "stop 2 ranks", "rank 0 on spark-1: load", "rank 0 on spark-1: compile", "rank 1 on spark-2: load",
        "stop done in 1.0 s",
    ]  # fmt: skip


def test_it_does_not_grow_for_ever(tmp_path: Path) -> None:
    """The last lines are there, and some before them."""
    here = make_log(tmp_path, most=200)
    for number in range(50):
        here.write(f"line {number}")
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2 and max(sizes) < 300
    assert "line 49" in (tmp_path / "log").read_text()


def test_a_disk_that_is_full_silences_it(tmp_path: Path) -> None:
    """Never an error: what serves matters more than what is reported of it."""
    make_log(tmp_path / "gone").write("x")
