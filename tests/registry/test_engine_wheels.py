"""The flag data is what the published wheels hold: the tool, run on ones from the package index, gives the same
files.

The one part of the tests that needs the index; the others are run without a network.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from functional.test_engine_data import TOOL, run_tool
from sparkwright.engines.flag_data import versions_in

DATA = TOOL.parents[2] / "src/sparkwright/engines/data"
# The smallest wheels, one for each way in which SGLang registers its options.
SMALL = ("0.5.10", "0.5.12")


def download(version: str, folder: Path) -> Path:
    """The wheel from the package index; a skip without one."""
    pip = shutil.which("pip")
    if not pip:
        pytest.skip("pip is not on the PATH: no wheel can be fetched")
    words = [pip, "download", "-q", "--no-deps", "--only-binary", ":all:", "--python-version", "3.12"]
    words += ["--platform", "manylinux_2_34_x86_64", "--platform", "any", "--dest", str(folder), f"sglang=={version}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"no package index here: {done.stderr.strip()[-200:]}")
    return next(folder.glob("*.whl"))


@pytest.mark.parametrize("version", SMALL)
def test_a_published_wheel_gives_the_committed_file(version: str, tmp_path: Path) -> None:
    """Row for row, from the wheel with the recorded hash: nothing in the file was written by hand."""
    wheel = download(version, tmp_path)
    done = run_tool("sglang", version, "--wheel", str(wheel), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    made = versions_in((tmp_path / "out" / "sglang.json").read_text())
    assert made == {version: versions_in((DATA / "sglang.json").read_text())[version]}
