"""The tool that reads flags out of published packages: what it makes of an installed one, and of wrong ones."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from unit.engines.samples import ROOT

pytestmark = pytest.mark.full

TOOL = ROOT / "scripts/engines/engine_data.py"


def run_tool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), *words], capture_output=True, text=True, check=False, timeout=300)


def test_the_installed_llama_server_gives_the_committed_file() -> None:
    """The help of the parser compiled into xllamacpp; --check writes nothing and reports that nothing would change."""
    pytest.importorskip("xllamacpp")
    done = run_tool("llama-cpp", "--check")
    assert (done.returncode, done.stdout.rpartition("; ")[2]) == (0, "unchanged\n"), done.stdout + done.stderr


def test_another_wheel_under_the_same_name_is_refused(tmp_path: Path) -> None:
    """An index never replaces a file; anyone who hands over another one is reported before anything is written."""
    forged = tmp_path / "sglang-0.5.10-py3-none-any.whl"
    forged.write_bytes(b"not the wheel")
    done = run_tool("sglang", "0.5.10", "--wheel", str(forged), "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "was read from" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_version_that_the_index_lacks_is_reported_in_one_line(tmp_path: Path) -> None:
    """Offline or never published: what was asked for, and pip's own reason."""
    if not shutil.which("pip"):
        pytest.skip("pip is not on the PATH")
    done = run_tool("sglang", "0.0.0.1", "--out", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("no sglang 0.0.0.1 from the package index: ")


def test_what_no_index_has_reports_where_it_is() -> None:
    """TensorRT-LLM's wheels are on NVIDIA's own index."""
    assert "pypi.nvidia.com" in run_tool("trtllm", "1.2.1").stderr
