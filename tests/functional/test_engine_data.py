"""The flag data is what the published wheels say: the tool, run on real ones, gives the committed files."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from unit.engines.samples import ROOT

TOOL = ROOT / "scripts/engine_data.py"
DATA = ROOT / "src/sparkwright/engines/data"
# The smallest wheels, one for each way in which SGLang registers its options.
SMALL = ("0.5.10", "0.5.12")


def tool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), *words], capture_output=True, text=True, check=False, timeout=300)


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
    """Byte for byte, from the wheel with the recorded hash: nothing in the file was written by hand."""
    wheel = download(version, tmp_path)
    done = tool("sglang", version, "--wheel", str(wheel), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    name = f"sglang-{version}.json"
    assert (tmp_path / "out" / name).read_text() == (DATA / name).read_text()


def test_the_installed_llama_server_gives_the_committed_file() -> None:
    """The help of the parser compiled into xllamacpp; --check writes nothing and says that nothing would change."""
    pytest.importorskip("xllamacpp")
    done = tool("llama-cpp", "--check")
    assert (done.returncode, done.stdout.rpartition("; ")[2]) == (0, "unchanged\n"), done.stdout + done.stderr


def test_another_wheel_under_the_same_name_is_refused(tmp_path: Path) -> None:
    """An index never replaces a file; whoever hands over another one is told before anything is written."""
    forged = tmp_path / "sglang-0.5.10-py3-none-any.whl"
    forged.write_bytes(b"not the wheel")
    done = tool("sglang", "0.5.10", "--wheel", str(forged), "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "was read from" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_version_that_the_index_lacks_is_said_in_one_line(tmp_path: Path) -> None:
    """Offline or never published: what was asked for, and pip's own reason."""
    if not shutil.which("pip"):
        pytest.skip("pip is not on the PATH")
    done = tool("sglang", "0.0.0.1", "--out", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("no wheel of sglang 0.0.0.1 from the package index: ")


def test_what_no_index_has_says_where_it_is() -> None:
    """TensorRT-LLM's wheels are on NVIDIA's own index."""
    assert "pypi.nvidia.com" in tool("trtllm", "1.2.1").stderr
