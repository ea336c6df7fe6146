"""The listing of a model's folder -> what is there, what is wrong with it, and what its config leaves open."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.checkpoint import MISSING, Checkpoint, Defect, TensorGroup
from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.facts.checkpoint import parse
from unit.for_each import for_each

CONFIG = json.dumps({"num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 4096})
A, B = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
ROWS = (
    "path\t/m", "root\t/m", "revision\t", f"file\t1008\t{A}", f"file\t2008\t{B}", "file\t90\tconfig.json",
    "file\t50\tmodel.safetensors.index.json", f'shard\t"{A}"', f'shard\t"{B}"',
    "index\tmodel.safetensors.index.json\t3000\t3", f"config\t{CONFIG}", f"head\t{A}\t1008\t1", f"head\t{B}\t2008\t2",
    "tensor\tmodel.layers.#.w\tBF16\t2000\t2", "tensor\tlm_head.weight\tBF16\t1000\t1",
)  # fmt: skip


def read(*rows: str) -> Checkpoint:
    found = parse(Completed(0, "\n".join(rows) + "\n"))
    assert isinstance(found, Checkpoint)
    return found


def without(start: str) -> list[str]:
    return [row for row in ROWS if not row.startswith(start)]


def test_a_sound_listing() -> None:
    """Guards that nothing is wrong with a model that is whole, and what its weights are."""
    found = read(*ROWS)
    assert found.complete and found.flaws == () and found.doubts == ()
    assert (found.weights, found.bytes) == (3016, 3156)
    assert found.tensors[0] == TensorGroup("lm_head.weight", "BF16", 1000, 1)


CASES: dict[str, tuple[list[str], dict[str, Defect]]] = {
    "gone": (without(f"file\t2008\t{B}"), {B: Defect.ABSENT}),
    "short": ([*without(f"head\t{B}"), f"head\t{B}\t5008\t2"], {B: Defect.SHORT}),
    "unfinished": ([*ROWS, "incomplete\tblobs/abc.incomplete"], {"blobs/abc.incomplete": Defect.UNFINISHED}),
    "a ref with a newline": ([*ROWS, "badref"], {"refs/main": Defect.REF}),
    "no index": (
        [row for row in without("index") if not row.startswith("shard")],
        {"model.safetensors.index.json": Defect.NO_INDEX}),
    "sums": ([*without("index"), "index\tmodel.safetensors.index.json\t4000\t3"],
             {"model.safetensors.index.json": Defect.SUM}),
    "config": ([*without("config"), "config\t{"], {"config.json": Defect.CONFIG}),
    "an empty config": ([*without("config"), "config\t"], {"config.json": Defect.CONFIG}),
    "a config of another model": (
        [*ROWS, "tensor\tmodel.layers.#.input_layernorm.weight\tBF16\t640\t20"], {"config.json": Defect.CONFIG}),
    "an index that names nothing": (
        [*[row for row in without("index") if not row.startswith("shard")], "index\tmodel.safetensors.index.json\t\t0"],
        {"model.safetensors.index.json": Defect.NO_INDEX}),
    "no header": ([*without(f"head\t{B}"), f"head\t{B}\t-1\t0"], {B: Defect.GARBAGE}),
    "no GGUF": (["path\t/m/x.gguf", "file\t5\t", "gguf\tb2Rk"], {"": Defect.GARBAGE}),
}  # fmt: skip


@for_each("case", CASES)
def test_each_flaw_is_named(case: str) -> None:
    """Guards that one thing wrong is one flaw, and that files are missing only when an engine cannot load."""
    rows, expected = CASES[case]
    found = read(*rows)
    assert {flaw.file: flaw.defect for flaw in found.flaws} == expected
    assert found.complete is not any(defect in MISSING for defect in expected.values())


def test_a_config_of_another_model_reports_nothing() -> None:
    """Guards that dimensions which the weights contradict are not counted with."""
    norm = "tensor\tmodel.layers.#.input_layernorm.weight\tBF16\t{}\t3"
    config = json.dumps(json.loads(CONFIG) | {"hidden_size": 64})
    wrong = read(*without("config"), f"config\t{config}", norm.format(3 * 2 * 128))
    assert isinstance(wrong.shape, Unknown) and "a width of 64, the weights have 128" in wrong.shape.why
    right = read(*without("config"), f"config\t{config}", norm.format(3 * 2 * 64))
    assert isinstance(right.shape, ModelShape) and Defect.CONFIG not in {flaw.defect for flaw in right.flaws}


def test_an_index_of_another_format_asks_for_nothing() -> None:
    """Guards that shards of PyTorch's format, which nobody fetched, are not missed next to safetensors."""
    other = ['shard\t"pytorch_model-00001-of-00001.bin"', "index\tpytorch_model.bin.index.json\t\t3"]
    found = read(*other, *ROWS)
    assert found.complete
    assert [flaw.defect for flaw in found.flaws] == [Defect.MANY_INDEXES]


DOUBTS: dict[str, tuple[dict[str, Any], str]] = {
    "a state of unknown size": ({"layer_types": ["linear_attention", "full_attention"]}, "a state of unknown size"),
    "a window of unknown layers": ({"sliding_window": 128}, "but not of which layers"),
    "a new kind of attention": ({"cross_compress_ring_size": 7}, "not understood here: cross_compress_ring_size"),
    "states of unknown layers": ({"linear_num_value_heads": 32}, "not which"),
    "a new architecture": ({"architectures": ["FrobnicateForCausalLM"]}, "FrobnicateForCausalLM is not known"),
    "an indexer in no layer": ({"sparse_attention_config": {"sparse_index_dim": 64}}, "not in which layers"),
}


@for_each("case", DOUBTS)
def test_what_is_half_known_is_reported(case: str) -> None:
    """Guards that a figure which leaves something out never passes for the whole."""
    added, words = DOUBTS[case]
    found = read(*without("config"), f"config\t{json.dumps(json.loads(CONFIG) | added)}")
    assert len(found.doubts) == 1 and words in found.doubts[0]


ROW = st.lists(
    st.sampled_from(["file", "head", "tensor", "index", "shard", "gguf", "config", "badref", "-1", "7", A, "{"])
)


@settings(deadline=None, max_examples=50)
@given(st.lists(ROW, max_size=8))
def test_any_listing(rows: list[list[str]]) -> None:
    """Guards that an odd listing never ends a plan."""
    assert isinstance(parse(Completed(0, "\n".join(map("\t".join, rows)))), Checkpoint)
