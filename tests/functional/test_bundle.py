"""The program for the head node, alone on a Python that has nothing else."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from sparkwright.adapters.bundle import Bundle

# -I -S: no environment, no installed packages. What is compiled must not be wanted either, were it there.
_IMPORTS = """
import importlib, pkgutil, sys
sys.path.insert(0, {folder!r})
for name in ("sparkwright.supervisor.run", "sparkwright.supervisor.proxy.gateway"):
    importlib.import_module(name)
import sparkwright.logscan.multi_search, sparkwright.causes.diagnose, sparkwright.checks.compat.table
from sparkwright.checks.compat.table import ENGINES, read_table
assert all(read_table(name).rows for name in ENGINES)
assert len(sparkwright.causes.diagnose.line_causes()) > 300
assert not sparkwright.logscan.multi_search.COMPILED
outside = [m.__file__ for m in sys.modules.values()
           if (getattr(m, "__file__", None) or "").endswith(".so") and {folder!r} in m.__file__]
assert not outside, outside
print(sorted({{"pydantic", "ahocorasick_rs", "rich", "pydantic_core"}} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runtime")
    with tarfile.open(fileobj=io.BytesIO(Bundle().archive())) as archive:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.2 of Debian 12 has none
        archive.extractall(folder, **safe)  # type: ignore[arg-type]
    return folder


def run_isolated_python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-I", "-S", *words], capture_output=True, text=True, timeout=60, check=False)


def test_nothing_compiled_is_in_it(unpacked: Path) -> None:
    """A laptop with another processor sends the same program to an ARM node; and it is small enough to be sent."""
    files = [path for path in unpacked.rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix in (".so", ".pyc", ".pyd")]
    assert len(Bundle().archive()) < 5_500_000 and len(files) > 300


def test_all_of_it_works_without_what_is_installed_here(unpacked: Path) -> None:
    """Its import closure is whole, the rules' tables are read, and logs are searched without the automaton."""
    done = run_isolated_python("-c", _IMPORTS.format(folder=str(unpacked)))
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


@pytest.mark.full
def test_it_runs_as_a_folder(unpacked: Path) -> None:
    """The program runs as units start it: no variable is needed, so none reaches the ranks that it starts."""
    assert run_isolated_python(str(unpacked), "ping", "--home", "/nowhere").returncode == 0
    assert "usage" in run_isolated_python(str(unpacked), "no-such-verb").stderr


@pytest.mark.full
def test_the_same_install_gives_the_same_archive() -> None:
    """Its name is its content: nothing is sent twice, and another version never takes its place."""
    one, two = Bundle(), Bundle()
    assert one.digest == two.digest and one.archive() == two.archive() and len(one.digest) == 16
