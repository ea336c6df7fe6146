"""Progress and last lines of a long command."""

import pytest

from sparkwright.app.copy.transfer import follow
from sparkwright.domain.command import Command
from sparkwright.domain.progress import Progress
from unit.app.scene import make_scene

FULL = 'rsync: [receiver] write failed on "/m/x": No space left on device (28)'


@pytest.mark.parametrize(
    ("line", "done", "total", "said"),
    [
        ("  1,073,741,824  50%  100.00MB/s    0:00:30  ", 1.0, 4.0, ""),
        ("  1,073,741,824  50%  100.00MB/s    0:00:30 (xfr#3, to-chk=0/5)", 1.0, 4.0, ""),
        (f"  1,073,741,824  50%  100.00MB/s    0:00:30  {FULL}", 1.0, 4.0, FULL),
        ("2147483648 bytes (2.1 GB, 2.0 GiB) copied, 10 s, 215 MB/s", 2.0, 4.0, ""),
        ("2147483648 bytes (2.1 GB, 2.0 GiB) copied, 10 s, 215 MB/sLoaded image: a:1", 2.0, 4.0, "Loaded image: a:1"),
        ("2147483648 bytes", 2.0, 4.0, ""),
    ],
)
async def test_progress_is_reported_and_words_on_its_line_are_kept(
    line: str, done: float, total: float, said: str
) -> None:
    """A program that fails in the middle of its progress reports why on the same line."""
    here = make_scene()
    here.nodes[0].on(lambda command: True, [line, "\x1eend 7"])
    assert await follow(here.services, "spark-1", Command(("x",)), "weights", 4 * 1024**3) == (7, said)
    assert [(told.done, told.total) for told in here.sink.of(Progress)] == [(done, total)]


async def test_the_last_words_are_kept_not_all() -> None:
    """Enough to see the reason, not the whole log."""
    here = make_scene()
    here.nodes[0].on(lambda command: True, [*(f"line {n}" for n in range(20)), "\x1eend 1"])
    code, said = await follow(here.services, "spark-1", Command(("x",)), "weights", 0)
    assert (code, said.split(" / ")) == (1, [f"line {n}" for n in range(14, 20)])


async def test_a_stall_of_a_copy_is_shown_in_place_of_its_rate() -> None:
    """A copy that gets nothing through must not look alive: its lines of progress come all the same."""
    here = make_scene()
    line = "1,073,741,824 50% 100.00MB/s 0:00:30 no data for 12 s"
    here.nodes[0].on(lambda command: True, [line, "\x1eend 12"])
    assert await follow(here.services, "spark-1", Command(("x",)), "weights to spark-2", 0) == (12, "")
    assert [told.text for told in here.sink.of(Progress)] == ["weights to spark-2: no data for 12 s"]
