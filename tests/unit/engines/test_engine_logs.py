"""The tool that compares log rules, metrics and routes with what a release can print, on a small wheel."""

import zipfile
from pathlib import Path

import pytest
from docs_engines import versions_read
from engine_logs import report

from sparkwright.engines.dialect import dialect
from sparkwright.engines.flag_data import versions
from sparkwright.engines.tables import SEPARATE, table

SOURCE = """
def start(self):
    name = "draft KV Cache" if self.draft else "KV Cache"
    logger.info(f"{name} {'VA upper bound' if self.late else 'is allocated'}. #tokens: {n}, KV size: {s:.2f} GB")
    logger.info("Init parallel begin.")
    logger.info(f"Init parallel ends. elapsed={t:.2f} s")
    logger.info("Loading quux weights from %s", path)

@app.post("/v1/quux")
def quux(): ...

gauge(name="sglang:num_running_reqs")
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "sglang-9.9.9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("sglang/srt/model_executor/start.py", SOURCE)
    return path


def test_rules_are_held_to_the_texts_of_a_wheel(wheel: Path) -> None:
    """Renamed lines match nothing; conditions inside a text are followed; what is new is listed."""
    found = report("sglang", "9.9.9", wheel)
    assert not [rule for rule in found.rules if "KV Cache" in rule or rule.startswith("^Init")]
    assert "^Load weight begin" in found.rules and not [rule for rule in found.rules if "Uvicorn" in rule]
    assert "sglang:num_running_reqs" not in found.metrics and "sglang:num_queue_reqs" in found.metrics
    assert "/v1/chat/completions" in found.routes and found.new_routes == ("/v1/quux",)
    assert "Loading quux weights from {}" in [one.text for one in found.unread]
    assert not [one for one in found.unread if "Init parallel" in one.text]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_newest_flags_come_with_the_newest_log(engine: str) -> None:
    """The flags of a release come with its log, metrics and routes (`engine_data.py logs`)."""
    newest = versions(engine)[-1]
    assert dialect(engine).versions[-1] == newest and table("read")[engine]["counted"][-1] == newest


def test_the_reference_says_what_of_a_version_was_read() -> None:
    """One row a version: vLLM 0.32.0 ran on CPUs, its flags were not read."""
    rows = versions_read().splitlines()
    assert "| vLLM | 0.32.0 | - | yes | - | - | CPU, one and two nodes |" in rows
    assert "| vLLM | 0.33.0 | yes | yes | yes | yes | H100, one node |" in rows
    assert set(table("read")) == set(SEPARATE)
