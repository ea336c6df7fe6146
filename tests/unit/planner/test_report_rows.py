"""Published rows become the recipe, the shape and the checkpoint that somebody would have had for that run."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import planner_report_models as models
import planner_report_quant as quant
import planner_report_words as words
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planner_report_config import as_config
from planner_report_rows import PlannerCase, load
from planner_report_rows import case_of_row as make_case

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Parallelism
from sparkwright.facts.model_config import parse
from sparkwright.planner.parts import main
from unit.for_each import for_each
from unit.planner.report_samples import FACTS, MIXED, ROOT, ROW, published_row


def load_cases(folder: Path, *rows: dict[str, Any]) -> tuple[PlannerCase, ...]:
    (folder / "models.jsonl").write_text("".join(f"{json.dumps(facts)}\n" for facts in (FACTS, MIXED)))
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    return load(folder / "rows.jsonl")


def load_case(folder: Path, **changes: Any) -> PlannerCase:
    return load_cases(folder, published_row(**changes))[0]


def case_shape(found: PlannerCase) -> ModelShape:
    assert isinstance(found.shape, ModelShape)
    return found.shape


def test_a_row_becomes_a_recipe(tmp_path: Path) -> None:
    """The row's values are at their places in a recipe; open ones are left to the engine."""
    found = load_case(
        tmp_path, tp=2, nodes=2, max_num_seqs=6, cuda_graphs="off (eager)", spec_decode="mtp, 2 tokens"
    ).recipe
    assert (found.engine.name, found.engine.version) == ("vllm", "0.21.1rc1")
    assert (found.parallelism, found.nodes) == (Parallelism(2), 2)
    assert (found.serving.context, found.serving.sequences, found.serving.batched_tokens) == (32768, 6, 0)
    assert (found.serving.kv_dtype, found.serving.memory_fraction) == ("fp8", 0.8)
    assert (found.speculation.method, found.speculation.tokens) == ("mtp", 2)
    assert found.flags == {"enforce-eager": True}


def test_notes_carry_the_rest_of_the_command(tmp_path: Path) -> None:
    """Quoted options, a pinned pool, block size and the node's memory are in the notes only."""
    notes = "extra args: --max-num-batched-tokens 4096 --moe-backend marlin --trust-remote-code | block-size 256, DCP4"
    found = load_case(tmp_path, notes=f"{notes}; --kv-cache-memory-bytes 12000000000; GPU total 139.8 GiB")
    assert found.recipe.serving.batched_tokens == 4096
    assert found.recipe.serving.kv_cache_bytes == 12_000_000_000
    options = {"moe-backend": "marlin", "trust-remote-code": True, "block-size": 256, "decode-context-parallel-size": 4}
    assert found.recipe.flags == options
    assert found.memory == int(139.8 * 2**30)


def test_a_model_is_found_by_its_base_name(tmp_path: Path) -> None:
    """Owner, packing and tuning of a row's name do not matter, its size does."""
    assert load_case(tmp_path, model="somebody/Alpha-3-Coder-7B-it (FP8 build)").model == "maker/Alpha-3-7B-Instruct"
    assert load_case(tmp_path, model="Beta 30B A3B uncensored").model == "maker/Beta-30B-A3B"
    unknown = load_case(tmp_path, model="maker/Alpha-3-70B")
    assert unknown.model == ""
    assert isinstance(unknown.shape, Unknown)


def test_the_checkpoint_is_the_one_that_the_row_means(tmp_path: Path) -> None:
    """The row's own size first, then the published one with all its words; readings of a running engine never."""
    assert load_case(tmp_path, checkpoint_gb=5.0).size == 5_000_000_000
    assert load_case(tmp_path, model="packer/Alpha-3-7B-NVFP4").size == 4_500_000_000
    assert load_case(tmp_path, model="other/Alpha-3-7B-NVFP4").size == 0


def test_a_packing_of_few_bits_is_no_published_checkpoint(tmp_path: Path) -> None:
    """Guards a 2-bit file of a model whose release has a size: it did not fit, and was read too slowly."""
    assert load_case(tmp_path, model="packer/Alpha-3-7B-NVFP4", quant="gguf UD-IQ2_M").size == 0


def test_llama_cpp_splits_by_layers_where_nobody_says(tmp_path: Path) -> None:
    """Guards rows of RPC on two nodes, which were planned as tensors over both: a tenth of their speed."""
    said = {"engine": "llama.cpp", "quant": "gguf Q8_0", "nodes": 2, "tp": None, "pp": None}
    assert load_case(tmp_path, **said).recipe.parallelism == Parallelism(1, 2)
    assert load_case(tmp_path, **said | {"engine": "vllm"}).recipe.parallelism == Parallelism(2)


def test_a_size_below_the_dimensions_was_gib(tmp_path: Path) -> None:
    """12.6 GB of a model whose numbers alone take 13.4 GB: the page wrote GB and meant GiB."""
    found = load_case(tmp_path, model="maker/Alpha-3-7B", quant="bf16", checkpoint_gb=12.6)
    assert found.size == int(12.6 * 2**30)


def test_the_width_that_nobody_published_follows_from_the_parameters(tmp_path: Path) -> None:
    """The FFN of a dense model is the rest of the published count after all other parts."""
    found = case_shape(load_case(tmp_path, quant="bf16"))
    assert found.intermediate % 64 == 0
    assert 10_000 < found.intermediate < 14_000


@pytest.mark.parametrize(
    ("quant", "rest", "experts"),
    [("bf16", "bf16", ""), ("fp8", "fp8", ""), ("nvfp4 experts + fp8", "fp8", "nvfp4"), ("int4 autoround", "int4", "")],
)
def test_the_words_of_a_quantization(tmp_path: Path, quant: str, rest: str, experts: str) -> None:
    """One format is of everything; of two the smaller is the experts'."""
    found = case_shape(load_case(tmp_path, model="maker/Beta-30B-A3B", quant=quant))
    assert (found.format, found.expert_format) == (rest, experts)


def test_attention_is_as_large_as_the_checkpoint_states(tmp_path: Path) -> None:
    """`nvfp4` leaves open what its attention is written in: the size decides."""
    small = case_shape(load_case(tmp_path, model="maker/Beta-30B-A3B", quant="nvfp4", checkpoint_gb=15.5))
    large = case_shape(load_case(tmp_path, model="maker/Beta-30B-A3B", quant="nvfp4", checkpoint_gb=24))
    assert (small.format, small.expert_format) == ("nvfp4", "")
    assert (large.format, large.expert_format) == ("bf16", "nvfp4")


def test_integers_have_the_groups_that_the_row_names(tmp_path: Path) -> None:
    """Guards scales of groups of 32, 9 % of the bytes of such weights: a maker's habit, or a source's word."""
    named = {"": 128, "groups of 32": 32, "groups of 64": 64}
    for notes, size in named.items():
        found = case_shape(load_case(tmp_path, model="other/Alpha-3-7B-AWQ", quant="int4", notes=notes))
        assert (found.group, found.expert_group) == (size, 0)
    assert case_shape(load_case(tmp_path, model="cyankiwi/Alpha-3-7B-AWQ-4bit", quant="int4")).group == 32
    assert case_shape(load_case(tmp_path, model="cyankiwi/Alpha-3-7B", quant="fp8")).group == 128


def test_plain_attention_next_to_nvfp4_experts_is_in_it_too(tmp_path: Path) -> None:
    """Guards builds of Qwen3-30B-A3B and GLM-4.7 without a size: 7 to 10 % too heavy with attention in BF16."""
    plain = FACTS | {"experts": 64, "experts_per_token": 4, "moe_intermediate": 1024, "total_params_b": 30}
    (tmp_path / "models.jsonl").write_text(json.dumps(plain))
    (tmp_path / "rows.jsonl").write_text(json.dumps(published_row(model="other/Alpha-3-7B-NVFP4")))
    found = case_shape(load(tmp_path / "rows.jsonl")[0])
    assert (found.experts, found.format, found.expert_format) == (64, "nvfp4", "")


@for_each(
    "model, rest, output",
    [
        ("nvidia/Qwen3.6-35B-A3B-NVFP4", "fp8", "nvfp4"),
        ("RedHatAI/Qwen3.6-35B-A3B-NVFP4", "bf16", ""),
        ("Qwen3.6-35B-A3B", "bf16", ""),
    ],
)
def test_a_checkpoint_that_is_written_unlike_others(tmp_path: Path, model: str, rest: str, output: str) -> None:
    """One of the same name has BF16 where the other has four and eight bits, and decodes half as fast."""
    found = case_shape(load_case(tmp_path, model=model, quant="nvfp4", checkpoint_gb=None))
    assert (found.format, found.expert_format, found.output_format) == (rest, "nvfp4", output)


def test_tables_are_written_as_the_checkpoint_states() -> None:
    """51 billion numbers of n-grams: of three published NVFP4 checkpoints each has them in a format of its own."""
    found = parse((ROOT / "tests" / "data" / "models" / "qwen3.8-flash-next.config.json").read_text())
    assert isinstance(found, ModelShape) and not found.table_format
    made = [quant.written(found, ("nvfp4",), int(gib * 2**30)) for gib in (99, 123.6, 170.3)]
    assert [one.table_format for one in made] == ["nvfp4", "fp8", "bf16"]


def test_kinds_of_layers_come_from_the_facts_words(tmp_path: Path) -> None:
    """A count of full layers and a window as text is as good as a list of layers."""
    found = case_shape(load_case(tmp_path, model="maker/Beta-30B-A3B"))
    assert (found.full_layers, found.window_layers, found.window) == (8, 24, 512)


@for_each(
    "said, written", [("exl3 3.5bpw", "3.500bit"), ("gguf UD-Q4_K_XL", "4.890bit"), ("exl3", ""), ("bf16", "bf16")]
)
def test_packings_are_read_by_their_names(tmp_path: Path, said: str, written: str) -> None:
    """EXL3 and GGUF types name their bits; without a figure no format is better than a wrong one."""
    assert case_shape(load_case(tmp_path, quant=said)).format == written


@for_each(
    "engine, said, date, version",
    [
        ("vllm", "maker/image:0.1.1 (0.25.2.dev0+g752a3a504)", "", "0.25.2.dev0"),
        ("vllm", "vllm/vllm-openai:v0.26.0-aarch64-cu129", "", "0.26.0"),
        ("vllm", "PR 41834 b5c0d43b, FlashInfer 0.6.14", "2026-07-12", "0.24.0"),
        ("vllm", "nightly", "2026-05", "0.21.0"),
        ("sglang", "lmsysorg/sglang:dev", "2026-09-23", "0.5.20"),
        ("llama-cpp", "b9536", "2026-06-07", "b9536"),
    ],
)
def test_the_version_in_the_words_about_an_image(engine: str, said: str, date: str, version: str) -> None:
    """An image's own tag is no version of the engine; without one it is the newest of that day."""
    assert words.version(engine, said, date)[0] == version


@pytest.mark.parametrize(
    ("wording", "method", "tokens"),
    [
        ("dspark, k=6", "dspark", 6),
        ("MTP 8-1-9", "mtp", 8),
        ("eagle3 (external 1-layer draft)", "eagle3", 0),
        ("NEXTN + 65536-row token map", "nextn", 0),
        ("{'method': 'dflash', 'model': '/m', 'num_speculative_tokens': 15}", "dflash", 15),
    ],
)
def test_the_words_of_a_speculation(wording: str, method: str, tokens: int) -> None:
    """Method and length, however the source writes them."""
    found = words.speculation(wording)
    assert (found.method, found.tokens) == (method, tokens)


def test_a_row_without_a_date_is_as_old_as_its_source(tmp_path: Path) -> None:
    """The version that nobody wrote is of the time of the author's other rows."""
    dated, open_ = (
        published_row(date="2026-05-20", engine_version_or_image=None),
        published_row(date=None, engine_version_or_image=None),
    )
    found = load_cases(tmp_path, dated, open_)
    assert [one.recipe.engine.version for one in found] == ["0.21.0", "0.21.0"]
    assert found[1].assumed == ("engine version 0.21.0",)


ANYTHING = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(0, 1e6) | st.text(max_size=20)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(ROW.keys() - {"id", "result"})), ANYTHING | st.lists(ANYTHING)))
def test_odd_values_make_a_case_too(fields: dict[str, Any]) -> None:
    """A row is written by hand: a text where a number belongs costs that field, not the whole file."""
    found = make_case(
        published_row(**fields), models.KnownModel("x", ("x",), as_config(FACTS), parameters=6.7e9), "2026-06"
    )
    assert found.recipe.parallelism.tp >= 1
    assert found.size >= 0
    assert found.memory > 0


@pytest.mark.parametrize("text", ["[]\n", '{"id": "x"}\n', "no json\n", '{"result": {}}\n'])
def test_a_line_of_another_form_is_an_error(tmp_path: Path, text: str) -> None:
    """A file that is no file of rows is refused, not reported as empty."""
    (tmp_path / "rows.jsonl").write_text(text)
    with pytest.raises(ValueError):
        load(tmp_path / "rows.jsonl")


def test_our_own_dimensions_add_up_to_the_models_names(tmp_path: Path) -> None:
    """A mistyped width would move every answer about a model: the parts have as many numbers as its name states."""
    wrong = {}
    for one in models.load_models(tmp_path / "none.jsonl", tmp_path):
        named, found = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![\w])", one.id.lower()), parse(json.dumps(one.config))
        if named and float(named[1]) >= 4 and isinstance(found, ModelShape):
            plain = replace(found, format="bf16", group=0, rows=0, expert_format="", expert_group=0)
            count = sum(part.bytes for part in main(plain)) / 2e9
            wrong |= {one.id: count} if abs(count / float(named[1]) - 1) > 0.17 else {}
    assert wrong == {}


def test_every_entry_of_our_own_facts_is_a_model(tmp_path: Path) -> None:
    """Each entry has a name to be found by; those that are alone have layers and heads."""
    known = models.load_models(tmp_path / "none.jsonl", tmp_path)
    assert len(known) > 40
    for one in known:
        found = models.find_model(known, one.id)
        assert found is not None and found.words == one.words, one.id


@pytest.mark.parametrize(("fields", "kept"), [
    ({"quant": "nvfp4, PLE memory-mapped"}, False),
    ({"notes": "47.7 GiB FP8 N-gram table served from NVMe file"}, False),
    ({"notes": "81.6 GiB a rank with Engram on NVMe"}, False),
    ({"notes": "the checkpoint is on NVMe"}, True),
])  # fmt: skip
def test_tables_that_stay_on_disk_are_no_weights(tmp_path: Path, fields: dict[str, Any], kept: bool) -> None:
    """A checkpoint's size is not what is loaded where a row reports that its tables are read from disk."""
    assert bool(load_case(tmp_path, checkpoint_gb=4.5, **fields).size) is kept


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("--kv-cache-memory-bytes 12000000000", 12_000_000_000),
        ("kv_cache_memory 15360 MiB", 15360 << 20),
        ("--kv-cache-memory 24G", 24 << 30),
        ("0.9 plus a 75 GiB KV pin", 75 << 30),
        ("KV pool pinned to 10 GB; weights 79 GiB", 10_000_000_000),
        ("kv cache memory: 1.81e9 B", 1_810_000_000),
        ("10 GiB KV pinned on each rank", 10 << 30),
        ("KV_TARGET 20/20/22/22", 0),
        ("about 24 GiB of KV", 0),
        ("pinned to core 4", 0),
    ],
)
def test_a_pin_is_read_in_any_wording(said: str, size: int) -> None:
    """A pool that the command fixes is no prediction, whatever the author calls it."""
    assert words.pinned(said) == size


@pytest.mark.parametrize(
    ("wording", "method", "tokens"),
    [
        ("no draft model", "", 0),
        ("off", "", 0),
        ("without MTP", "", 0),
        ("DFlash2 drafter, 7 tokens", "dflash2", 7),
        ("k=5 dspark", "dspark", 0),
        ("native MTP 3", "mtp", 3),
        ("MTP 2, no EAGLE", "mtp", 2),
    ],
)
def test_speculation_is_read_in_any_wording(wording: str, method: str, tokens: int) -> None:
    """A row without a draft model has no drafts, and a method is known by its name wherever it is."""
    found = words.speculation(wording)
    assert (found.method, found.tokens) == (method, tokens)


@pytest.mark.parametrize(
    ("said", "apart"),
    [("Engram tables on NVMe", True), ("PLE memory-mapped", True), ("n-gram table served from an NVMe file", True),
     ("mmap of the embeddings", True), ("weights on NVMe", False),
     ("PLE table of 47.7 GiB, paged to swap", True), ("table of results", False)],
)  # fmt: skip
def test_tables_that_stay_on_disk_are_read_in_any_wording(said: str, apart: bool) -> None:
    """A part that stays on disk is no weight in memory."""
    assert words.stays_on_disk({"notes": said}) is apart


@for_each(
    "said, kind",
    [("code, warm", "code"), ("JSON", "code"), ("count to 300", "counting"), ("essay", "prose"), ("summary", "prose"),
     ("mixed code+prose", ""), ("69-scenario eval mean", ""), ("", "")],
)  # fmt: skip
def test_the_kind_of_text_is_read_where_one_is_named(said: str, kind: str) -> None:
    """The kind of text decides how many drafts are accepted; a mixture is no kind."""
    assert words.text_kind(said) == kind


def test_versions_and_limits_in_any_wording() -> None:
    """A version without a patch number is one; a limit counts wherever the option is named, the last time."""
    assert words.version("vllm", "vLLM 0.26, CUDA 13.0", "") == ("0.26.0", True)
    assert words.version("vllm", "torch 2.11", "2026-05-20")[1] is False
    assert words.limits("earlier max_num_seqs=4, now --max-num-seqs 16; chunked_prefill_size: 2048") == {
        "max-num-seqs": 16,
        "max-num-batched-tokens": 2048,
    }
