"""Choice of the functional tests that `make test` runs."""

import os
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from functional.command import WARM
from testbed.settings import OVERLAY


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "each_row: `make test` runs all rows of this test, and not only one")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started by a shell in the background (`make test &`):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what tests start would ignore Ctrl-C, too


@pytest.fixture(scope="session", autouse=True)
def warm_command_ends() -> Iterator[None]:
    """End the warm command with the tests of this process: a worker's namespace must be empty then."""
    yield
    WARM.end()


@pytest.fixture(scope="session", autouse=True)
def programs_are_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Puts the testbed's `tar` before the real one."""
    folder = tmp_path_factory.mktemp("tar")
    text = (OVERLAY / "usr/local/bin/tar").read_text().replace("/var/cache/programs", str(folder / "made"))
    (folder / "tar").write_text(text)
    (folder / "tar").chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all rows but one of each parametrized test as `full`.

    The name of the test chooses the row, so that the tests of a contract between them run on each of its sides.
    """
    here = Path(__file__).parent
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        short = here in item.path.parents and not item.get_closest_marker("full")
        if short and not item.get_closest_marker("each_row"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, rows in tests.items():
        chosen = zlib.crc32(name.encode()) % len(rows)
        for other in rows[:chosen] + rows[chosen + 1 :]:
            other.add_marker(pytest.mark.full)
