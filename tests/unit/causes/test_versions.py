"""A version that a log prints, or that a node reports, speaks for or against what is known in a range of versions."""

from pathlib import Path

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.diagnose import VERSIONS
from sparkwright.causes.load import families, whole_log
from sparkwright.checks.compat.versions import ranges
from sparkwright.domain.diagnosis import Cause

NOT_PERMITTED = (
    "(EngineCore pid=7) ERROR 07-01 09:04:00 [core.py:1020] AcceleratorError: CUDA error: operation not permitted"
)
NO_CHAT_TEMPLATE = "ValueError: default chat template is no longer allowed, you must provide a chat template"


def first_cause(log: str, on_node: str = "") -> Cause:
    sources = [("log", [f"{log}\n".encode()]), (f"{VERSIONS}spark-1", [f"{on_node}\n".encode()] if on_node else [])]
    return examine(sources[: 2 if on_node else 1], 2026, {}).causes[0]


@pytest.mark.parametrize(
    ("version", "how"),
    [("Driver Version: 580.159.03", "in"), ("Driver Version: 580.142", "outside")],
)
@pytest.mark.parametrize("of_node", [False, True], ids=["log", "node"])
def test_a_version_in_or_outside_the_range_counts(version: str, how: str, of_node: bool) -> None:
    """Guards both directions, from a log and from a node, and that the answer shows it."""
    alone = first_cause(NOT_PERMITTED)
    found = first_cause(NOT_PERMITTED, version) if of_node else first_cause(f"{version}\n{NOT_PERMITTED}")
    assert found.key == alone.key == "cuda-operation-not-permitted-580-159" and alone.versions == ()
    assert (found.confidence > alone.confidence) is (how == "in")
    (note,) = found.versions
    assert note.text == f"driver {version.split()[-1]} is {how} the range known for this (==580.159.03)"
    assert note.line.source == (f"{VERSIONS}spark-1" if of_node else "log")


def test_one_node_in_the_range_is_enough() -> None:
    """Guards nodes with different drivers: the failure may be of the one that is in it."""
    sources = [("log", [NOT_PERMITTED.encode()])]
    sources += [
        (f"{VERSIONS}{n}", [f"Driver Version: {v}".encode()]) for n, v in (("a", "580.142"), ("b", "580.159.03"))
    ]
    (note,) = examine(sources, 2026, {}).causes[0].versions
    assert note.line.source == f"{VERSIONS}b"


def test_a_cause_that_has_other_reasons_loses_nothing() -> None:
    """Guards `mostly`: outside of the range nothing speaks against it."""
    alone, older = first_cause(NO_CHAT_TEMPLATE), first_cause(f"transformers==4.40.1\n{NO_CHAT_TEMPLATE}")
    newer = first_cause(f"transformers==4.57.1\n{NO_CHAT_TEMPLATE}")
    assert (older.confidence, older.versions) == (alone.confidence, ())
    assert newer.key == "chat-template-missing" and newer.confidence > alone.confidence


@pytest.mark.parametrize(
    ("component", "line", "version"),
    [
        (
            "driver",
            "| NVIDIA-SMI 580.142                Driver Version: 580.142        CUDA Version: 13.0     |",
            "580.142",
        ),
        ("driver", "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.159.03  Release Build", "580.159.03"),
        ("driver", "Nvidia driver version        : 580.95.05", "580.95.05"),
        ("kernel", "kernel: Linux version 6.17.0-1032-nvidia (buildd@bos03)", "6.17.0"),
        ("kernel", "Linux spark-1 7.0.0-1019-nvidia #19~24.04.2-Ubuntu SMP PREEMPT_DYNAMIC aarch64", "7.0.0"),
        ("nccl", "spark-1:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda13.0", "2.28.9"),
        ("nccl", "INFO 11-02 10:11:15 [pynccl.py:111] vLLM is using nccl==2.30.4", "2.30.4"),
        ("vllm", "INFO [core.py:93] Initializing a V1 LLM engine (v0.21.0) with config: model='m'", "0.21.0"),
        ("vllm", "3f2a1b   vllm/vllm-openai:v0.26.0   Exited (1) 3 minutes ago", "0.26.0"),
        ("torch", "[pip3] torch==2.10.0+cu130", "2.10.0"),
        ("torch", "error: xformers 0.0.32 requires torch==2.8.0, but you have torch 2.10.0", ""),
        ("flashinfer", "flashinfer-python            0.6.16", "0.6.16"),
    ],
)
def test_versions_are_read_as_programs_print_them(component: str, line: str, version: str) -> None:
    """Guards each form, and that what a package asks for is not taken for what is installed."""
    assert ranges().version(component, line) == version


def test_ranges_are_of_causes_and_of_components_that_are_printed(tmp_path: Path) -> None:
    """Guards the table: every key is a cause's, nothing is looked for in vain, and a mistake names the file."""
    keys = {cause.key for group in families().values() for cause in group} | {c.key for c in whole_log().values()}
    found = {**ranges().only, **ranges().mostly}
    assert set(found) <= keys
    assert {component for wanted in found.values() for component in wanted} == set(ranges().printed)
    (tmp_path / "versions.toml").write_text("[printed]\n[only]\nx-y = { driver = '>=1' }\n[mostly]\n")
    with pytest.raises(ValueError, match=r"versions.toml: x-y: driver = '>=1' is no range of a printed component"):
        ranges(tmp_path / "versions.toml")
