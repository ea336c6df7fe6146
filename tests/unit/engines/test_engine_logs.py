"""The tool that compares log rules, metrics and routes with what a release can print, on a small wheel."""

import re
import zipfile
from pathlib import Path

import pytest
from docs_engines import versions_read
from engine_logs import report

from sparkwright.engines.dialect import dialect
from sparkwright.engines.flag_data import versions
from sparkwright.engines.tables import SEPARATE, load_table
from sparkwright.engines.version import version_key
from unit.engines.samples import ROOT

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
def sglang_wheel(tmp_path: Path) -> Path:
    path = tmp_path / "sglang-9.9.9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("sglang/srt/model_executor/start.py", SOURCE)
    return path


def test_rules_are_held_to_the_texts_of_a_wheel(sglang_wheel: Path) -> None:
    """Renamed lines match nothing; conditions inside a text are followed; what is new is listed."""
    found = report("sglang", "9.9.9", sglang_wheel)
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
    assert dialect(engine).versions[-1] == newest and load_table("read")[engine]["counted"][-1] == newest


def test_the_reference_says_what_of_a_version_was_read() -> None:
    """One row a version: vLLM 0.32.0 ran on CPUs, its flags were not read."""
    rows = versions_read().splitlines()
    assert "| vLLM | 0.32.0 | - | yes | - | - | CPU, one and two nodes |" in rows
    assert "| vLLM | 0.33.0 | yes | yes | yes | yes | H200, one and two nodes; H100, one node |" in rows
    assert set(load_table("read")) == set(SEPARATE)


def test_every_acceptance_of_an_engine_is_in_the_table_of_what_was_read() -> None:
    """The reference page says which version was really started: no page of a start is missing there."""
    pages = {page.stem for page in (ROOT / "docs/acceptance").glob("*.md")}
    found = {match.groups() for page in pages if (match := re.match(r"(vllm|sglang)-(\d+\.\d+\.\d+)", page))}
    assert len(found) >= 4
    read = load_table("read")
    missing = {(engine, version) for engine, version in found if version not in read[engine]["started"]}
    assert not missing
    both = {(engine, version) for engine, version in found if any(f"{engine}-{version}-2x" in page for page in pages)}
    assert all("two nodes" in read[engine]["started"][version] for engine, version in both)


def test_what_the_table_calls_read_is_there() -> None:
    """Flags and log words come from the data themselves; the other columns name versions of the engine."""
    for engine in SEPARATE:
        row = load_table("read")[engine]
        every = {*row["counted"], *row["memory"], *row["started"]}
        assert all(version_key(engine, version) for version in every)
        newest = max(versions(engine), key=lambda one: version_key(engine, one))
        assert not row["counted"] or newest in row["counted"], f"{engine} {newest}: metrics and routes were not read"
