"""The compatibility table: its schema, its size, what it states of combinations, and versions in ranges."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.checks import compat
from sparkwright.checks.compat.combination import combination
from sparkwright.checks.compat.table import ENGINES, known_of, read_table, row_applies, rows_of, unheard
from sparkwright.checks.compat.table import parse_row as made
from sparkwright.engines.flag_data import versions
from sparkwright.engines.version import within
from unit.checks.recipe_cases import DSV4, H200, NVFP4, OWN_DSV4, planned, recipe, recipe_context
from unit.engines.samples import SHIPPED, shipped
from unit.for_each import for_each

DATA = Path(compat.__path__[0]) / "data"
ROW: dict[str, Any] = {"verdict": "works", "reason": "seen", "source": "https://example.org", "date": "2026-11"}


def verdicts_of(where: Any) -> list[str]:
    asked = combination(where)
    assert asked
    return [row.verdict for row in known_of(asked)]


@pytest.mark.parametrize("name", ENGINES)
def test_each_file_keeps_the_schema(name: str) -> None:
    """Guards that the data are whole, and that what is written there is what rows report."""
    raw = yaml.load((DATA / f"{name}.yaml").read_text(), yaml.BaseLoader)
    read = read_table(name).rows
    assert len(read) == len(raw["rows"]) > 0
    for written, one in zip(raw["rows"], read, strict=True):
        assert {key: str(getattr(one, key)) for key in ("reason", "source", "date")} == {
            key: written[key] for key in ("reason", "source", "date")
        }


def test_there_is_one_file_an_engine_and_many_rows() -> None:
    """Guards that no file is forgotten, that no two rows are one, and the size that was asked for."""
    assert sorted(path.stem for path in DATA.glob("*.yaml")) == sorted(ENGINES)
    every = [repr(row) for name in ENGINES for row in read_table(name).rows]
    assert len(every) == len(set(every)) >= 60
    assert rows_of("twin") == ()


@pytest.mark.parametrize("name", ENGINES)
def test_every_range_is_met_by_a_version(name: str) -> None:
    """Guards against ranges that no version can be in: each holds for a bound of it, or a step next to one."""
    for row in read_table(name).rows:
        bounds = [part.lstrip("<>=") for part in row.versions.split(",") if part]
        near = [*bounds, *(f"{bound}rc1" for bound in bounds), "b1", *versions(name.replace("_", "-"))]
        assert any(within(read_table(name).engine, version, row.versions) for version in near), row.versions


@for_each(
    "wrong",
    [
        {"verdict": "maybe"},
        {"verdict": "blocked"},
        {"verdict": "blocked", "alternative": "x", "otherwise": "y"},
        {"versions": "0.21"},
        {"versions": ">=0.21 <0.22"},
        {"date": "November"},
        {"source": ""},
        {"architecture": "X"},
        {"formats": "fp8"},
        {"flags": {"a": "x"}},
        {"pull_request": "x"},
    ],
)
def test_a_row_that_is_not_whole_is_refused(wrong: dict[str, Any]) -> None:
    """Guards that nobody adds a row without its source, with a bad range, or a block that others contradict."""
    assert made(ROW).verdict == "works"
    with pytest.raises(ValueError):
        made(ROW | wrong)


@for_each(
    "engine, version, wanted, held",
    [
        ("sglang", "0.5.12", ">=0.5.12,<0.5.13", True),
        ("sglang", "0.5.12.post1", ">=0.5.12,<0.5.13", True),
        ("sglang", "v0.5.13", ">=0.5.12,<0.5.13", False),
        ("vllm", "0.23.1rc1.dev407+g28fef2c70", "<0.24", True),
        ("vllm", "0.24.0rc1", "<0.24", True),
        ("vllm", "0.27.1", "<=0.27.1", True),
        ("trtllm", "1.3.0rc14", ">=1.3.0rc13", True),
        ("llama-cpp", "2026.10.11549", ">=b10269", True),
        ("llama-cpp", "b9000", ">=b10269", False),
        ("vllm", "main", "<1", False),
        ("vllm", "main", "", True),
        ("vllm", "0.21.0", "==0.21", True),
    ],
)
def test_versions_in_ranges(engine: str, version: str, wanted: str, held: bool) -> None:
    """Guards how versions compare: pre-releases before the release, llama.cpp by builds, what is none nowhere."""
    assert within(engine, version, wanted) is held


def test_the_refused_recipe_states_what_the_table_states() -> None:
    """Guards that the shipped refusal and a user's own recipe for the same are judged by one row."""
    own, ours = combination(planned(OWN_DSV4)), combination(planned(shipped("deepseek-v4-flash-sglang")))
    assert own and ours and known_of(own)[0] == known_of(ours)[0]
    assert known_of(own)[0].verdict == "blocked" and "deepseek-v4-flash" in known_of(own)[0].alternative


@pytest.mark.full
def test_every_shipped_recipe_is_known() -> None:
    """Guards that the table has the combinations that we ship, and none of those ready as blocked."""
    for path in SHIPPED.glob("*.yaml"):
        asked = combination(planned(shipped(path.stem)))
        if asked and asked.architecture and rows_of(asked.engine):  # engines as data have no table
            assert known_of(asked) and not unheard(asked), path.stem
            blocked = "blocked" in [row.verdict for row in known_of(asked)]
            assert blocked == (asked.recipe.state == "refused"), path.stem


def test_what_is_not_given_is_asked_of_the_name() -> None:
    """Guards recipes without a shape whose model no node has: the name reports architecture and format."""
    asked = combination(planned(recipe(None, "vllm 0.21.0", id="nvidia/MiniMax-M2.7-NVFP4")))
    assert asked and (asked.architecture, asked.formats) == ("MiniMaxM2ForCausalLM", frozenset({"nvfp4"}))
    nobody = combination(planned(recipe(None, "vllm 0.21.0", id="org/x")))
    assert nobody and (nobody.architecture, nobody.formats) == ("", frozenset()) and not unheard(nobody)


def test_the_chip_is_the_nodes() -> None:
    """Guards that what is known of sm_121 is reported of no other chip."""
    elsewhere = combination(planned(OWN_DSV4, {"gpus": H200}))
    assert elsewhere and elsewhere.chip == "sm_90" and known_of(elsewhere) == () and not unheard(elsewhere)


def test_conditions_of_a_row() -> None:
    """Guards each kind of condition: met, not met, not given, any."""
    asked = combination(recipe_context(NVFP4, flags={"a-b": "X"}, env={"E": "1"}))
    assert asked
    wholes = {
        "flags": {"a-b": ["x"]}, "env": {"E": ["*"]}, "nodes": ">=2", "image": "engine", "model": "BIG",
        "engines": ["vllm"], "formats": ["nvfp4"], "kv": [""], "drafts": [""], "chip": "*",
    }  # fmt: skip
    others = {
        "flags": {"a-b": [""]}, "env": {"F": ["*"]}, "nodes": "<2", "image": "^x", "model": "small",
        "engines": ["vllm-ray"], "formats": ["fp8"], "kv": ["fp8"], "drafts": ["mtp"], "chip": "sm_90",
        "pull_request": 1, "versions": ">=0.22", "architectures": ["Other"],
    }  # fmt: skip
    assert row_applies(asked, made(ROW | wholes))
    for name, value in others.items():
        assert not row_applies(asked, made(ROW | wholes | {name: value})), name


def test_a_kv_type_that_the_model_cannot_have() -> None:
    """Guards the row that asks for what is not given: DeepSeek-V4 without an FP8 cache does not start on vLLM."""
    assert "blocked" in verdicts_of(recipe_context(DSV4))
    served = replace(recipe(DSV4).serving, kv_dtype="fp8")
    assert "blocked" not in verdicts_of(recipe_context(DSV4, serving=served))
