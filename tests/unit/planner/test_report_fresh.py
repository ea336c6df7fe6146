"""Rows that were new when they were written down: their form is strict, and their halves are by source."""

from pathlib import Path

import pytest
from planner_fresh import half_of, main, read

THIRD = Path(__file__).resolve().parents[3] / "scripts" / "planner" / "fresh" / "third.yaml"
ROW = "{id: one, source: github some/where README.md, model: Qwen3-8B, engine: vllm, nodes: 1, points: [[0, 1, 13.1]]}"


def test_the_third_set_is_read_and_scored(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(THIRD), "--half", "b"]) == 0
    said = capsys.readouterr().out
    assert "Decode, one stream, no speculation" in said and "Starts, weights" in said


@pytest.mark.parametrize(
    "name", ["third.yaml", "fourth.yaml", "fifth.yaml", "sixth.yaml", "seventh.yaml", "eighth.yaml"]
)
def test_what_was_measured_counts_as_having_run(name: str) -> None:
    """A row with a figure ran, so that a refusal of it is counted."""
    rows, _ = read(THIRD.parent / name)
    assert sum(row["result"].get("fits") is True for row in rows) == len(rows) >= 41


def test_a_start_that_failed_is_asked_about() -> None:
    """Guards unsafe "fits": a row of a failed start did not run, whatever else it gives."""
    failed = [row for row in read(THIRD.parent / "fourteenth.yaml")[0] if row["result"].get("fits") is False]
    assert len(failed) == 3 and all(row["result"]["failure"] for row in failed)


def test_every_source_lies_in_one_half() -> None:
    everything, starts = read(THIRD)
    halves = [read(THIRD, half) for half in ("a", "b")]
    assert sum(len(rows) for rows, _ in halves) == len(everything) >= 40
    assert sum(len(some) for _, some in halves) == len(starts)
    same = {"source": "github some/where README.md"}
    assert half_of(same) == half_of({"source": "github some/where docs/other.md"})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"rows: [{ROW.replace('engine', 'motor')}]", "unknown key motor"),
        (f"rows: [{ROW}, {ROW}]", "the same id"),
        (f"rows: [{ROW.replace('[0, 1, 13.1]', '[0, 13.1]')}]", "a point is [depth, streams"),
        ("rows: [{id: one, model: Qwen3-8B}]", "needs id, source and model"),
        (f"rows: [{ROW.replace('nodes', 'fits: false, nodes')}]", "has fits: false and failure"),
        (f"rows: [{ROW.replace('nodes', 'own_memory: true, nodes')}]", "speeds are planned for GB10 only"),
        ("starts: [{what: x, source: y, engine: vllm, nodes: 1, gb: 9, layers: 3}]", "total or files"),
        ("[1, 2]", "expected rows and starts"),
    ],
)
def test_what_the_form_does_not_have_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, named: str
) -> None:
    file = tmp_path / "rows.yaml"
    file.write_text(text)
    assert main([str(file)]) == 2
    assert named in capsys.readouterr().err


def test_another_machine_is_asked_only_what_does_not_hang_on_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guards figures of other cards: SGLang calls weights what its kernels take on a GB10, and a GB10's memory decides
    nothing there."""
    row = "{id: %s, source: github some/%s, model: Qwen3-8B, quant: bf16, engine: sglang, nodes: 1"
    row += ", %sweights_gib_per_node: 15.3}"
    asked = {}
    for name, more in (("gb10", ""), ("card", "own_memory: true, ")):
        (tmp_path / f"{name}.yaml").write_text(f"rows:\n- {row % (name, name, more)}\n")
        assert main([str(tmp_path / f"{name}.yaml"), "--rows"]) == 0
        asked[name] = capsys.readouterr().out
    assert "Fits or does not fit" in asked["gb10"] and "Fits or does not fit" not in asked["card"]
    gb10, card = (float(said.split("weights_gib : 15.3, ")[1].split()[0]) for said in asked.values())
    assert gb10 - card == pytest.approx(0.38, abs=0.01)


@pytest.mark.parametrize(
    ("quant", "more", "separate"),
    [("int4 awq", "", True), ("int4 awq", "checkpoint_gb: 6.0, ", False), ("bf16", "", False)],
)
def test_a_4_bit_checkpoint_without_a_size_is_counted_apart(
    quant: str, more: str, separate: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guards the figure of weights: what a maker keeps in 16 bits only the size of the files tells."""
    row = f"{{id: one, source: github some/where, model: Qwen3-8B, quant: {quant}, engine: vllm, nodes: 1"
    row += f", {more}weights_gib_per_node: 5.7}}"
    (tmp_path / "rows.yaml").write_text(f"rows:\n- {row}\n")
    assert main([str(tmp_path / "rows.yaml")]) == 0
    assert ("Weights of a 4-bit checkpoint" in capsys.readouterr().out) is separate
