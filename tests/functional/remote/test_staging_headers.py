"""Headers of safetensors and GGUF files, read by the real scripts and the real parser."""

import json
import os
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from fakes.sh import Sh
from sparkwright.domain.checkpoint import Checkpoint, Defect, TensorGroup
from sparkwright.domain.model import ModelShape
from sparkwright.facts.checkpoint import parse
from sparkwright.remote import staging

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
CONFIG = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}
GB = 10**9
GOOD = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}


def header(tensors: dict[str, tuple[str, int]], **style: Any) -> tuple[bytes, int]:
    """The header of a safetensors file, and the bytes of numbers that must follow it."""
    at, table = 0, {"__metadata__": {"format": "pt"}}
    for name, (dtype, size) in tensors.items():
        table[name] = {"dtype": dtype, "shape": [size], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(table, **style).encode()
    return struct.pack("<Q", len(text)) + text, at


def write(path: Path, tensors: dict[str, tuple[str, int]], less: int = 0, **style: Any) -> None:
    """Write a sparse file as long as its header states, `less` bytes shorter. Its numbers must not be read."""
    head, size = header(tensors, **style)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size - less)


def layer_tensors(number: int) -> dict[str, tuple[str, int]]:
    return {
        f"model.layers.{number}.mlp.experts.0.w1.weight": ("F8_E4M3", 3 * GB),
        f"model.layers.{number}.mlp.experts.1.w1.weight": ("F8_E4M3", 3 * GB),
        f"model.layers.{number}.conv1d.weight": ("BF16", 40),
    }


@pytest.fixture
def folder(node_shell: Sh) -> Path:
    folder = node_shell.home / "models/it's big"
    folder.mkdir(parents=True)
    for number, name in enumerate(SHARDS):
        write(folder / name, layer_tensors(number))
    names = {tensor: SHARDS[number] for number in (0, 1) for tensor in layer_tensors(number)}
    write_index(folder, names, 12 * GB + 80)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def write_index(folder: Path, names: dict[str, str], total: float, name: str = "model.safetensors.index.json") -> None:
    (folder / name).write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": names}, indent=2))


def listed(sh: Sh, path: Path) -> Checkpoint:
    checkpoint = parse(sh.run(staging.list_path(str(path))))
    assert isinstance(checkpoint, Checkpoint)
    return checkpoint


def flaws_by_file(model: Checkpoint) -> dict[str, Defect]:
    return {flaw.file: flaw.defect for flaw in model.flaws}


def test_bytes_by_kind_of_tensor(node_shell: Sh, folder: Path) -> None:
    """12 GB of weights are distinguished by kind and type from their headers alone; layers and experts are added up."""
    model = listed(node_shell, folder)
    assert model.complete and model.flaws == () and model.doubts == ()
    assert model.tensors == (
        TensorGroup("model.layers.#.conv1d.weight", "BF16", 80, 2),
        TensorGroup("model.layers.#.mlp.experts.#.w1.weight", "F8_E4M3", 12 * GB, 4),
    )
    assert model.weights == sum((folder / name).stat().st_size for name in SHARDS)


def test_a_second_copy_is_not_loaded(node_shell: Sh, folder: Path) -> None:
    """gpt-oss and Mistral ship their weights twice. Engines read only the shards that the index names."""
    once = listed(node_shell, folder)
    (folder / "original").mkdir()
    for name in ("consolidated.safetensors", "original/model.safetensors"):
        write(folder / name, layer_tensors(0))
    twice = listed(node_shell, folder)
    assert (twice.weights, twice.tensors) == (once.weights, once.tensors)
    assert twice.bytes > 1.9 * once.bytes


@pytest.mark.parametrize("style", [{"indent": 1}, {"separators": (",", ":")}, {"sort_keys": True}], ids=str)
def test_any_way_to_write_json(node_shell: Sh, folder: Path, style: dict[str, Any]) -> None:
    """Writers differ in spaces and in the order of keys."""
    write(folder / SHARDS[0], layer_tensors(0), **style)
    assert len(listed(node_shell, folder).tensors) == 2


WRONG = {
    "cut in its numbers": (lambda path: write(path, layer_tensors(0), less=GB), Defect.SHORT, False),
    "cut in its header": (lambda path: path.write_bytes(header(layer_tensors(0))[0][:60]), Defect.SHORT, False),
    "longer": (lambda path: write(path, layer_tensors(0), less=-8), Defect.GARBAGE, True),
    "a pointer": (
        lambda path: path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n"),
        Defect.POINTER, False),
    "a web page": (lambda path: path.write_text("<html>" + 300 * "x"), Defect.GARBAGE, True),
    "three bytes": (lambda path: path.write_text("abc"), Defect.GARBAGE, True),
    "empty": (lambda path: path.write_text(""), Defect.EMPTY, False),
    "gone": (lambda path: path.unlink(), Defect.ABSENT, False),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_not_what_it_states(node_shell: Sh, folder: Path, case: str) -> None:
    """Each defect is named before the start: an engine finds it after minutes, or serves garbage."""
    spoil, defect, complete = WRONG[case]
    spoil(folder / SHARDS[0])
    model = listed(node_shell, folder)
    assert {file: found for file, found in flaws_by_file(model).items() if found is not Defect.SUM} == {
        SHARDS[0]: defect
    }
    assert model.complete is complete
    assert (SHARDS[0] in " ".join(model.missing)) is not complete


def test_shards_that_do_not_add_up(node_shell: Sh, folder: Path) -> None:
    """The index of another release is found by its sum of bytes, or by tensors that no shard has."""
    names = {tensor: SHARDS[number] for number in (0, 1) for tensor in layer_tensors(number)}
    write_index(folder, names, 13 * GB)
    assert flaws_by_file(listed(node_shell, folder)) == {"model.safetensors.index.json": Defect.SUM}
    write_index(folder, {**names, "lm_head.weight": SHARDS[1]}, 12 * GB + 80)
    (flaw,) = listed(node_shell, folder).flaws
    assert flaw.said == "names 7 tensors, the shards hold 6"


def test_no_index_and_two(node_shell: Sh, folder: Path) -> None:
    """Both are flaws: without an index an engine loads every file, with two nobody knows which one it follows."""
    there = listed(node_shell, folder).tensors
    write_index(folder, {"a": "consolidated.safetensors"}, 1, "consolidated.safetensors.index.json")
    two = listed(node_shell, folder)
    assert (flaws_by_file(two), two.tensors, two.complete) == ({"": Defect.MANY_INDEXES}, there, True)
    for path in folder.glob("*.index.json"):
        path.unlink()
    none = listed(node_shell, folder)
    assert (flaws_by_file(none), none.tensors) == ({"model.safetensors.index.json": Defect.NO_INDEX}, there)


def test_a_config_that_nobody_can_read(node_shell: Sh, folder: Path) -> None:
    """A config.json that is cut off or missing is a flaw: the weights are useless without it."""
    (folder / "config.json").write_text('{"num_hidden_layers": 2,')
    assert flaws_by_file(listed(node_shell, folder)) == {"config.json": Defect.CONFIG}
    (folder / "config.json").unlink()
    assert flaws_by_file(listed(node_shell, folder)) == {"config.json": Defect.CONFIG}


def test_the_quantization_next_to_the_config(node_shell: Sh, folder: Path) -> None:
    """Older ModelOpt checkpoints state their 4 bits in hf_quant_config.json, not in config.json."""
    said = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}}
    (folder / "hf_quant_config.json").write_text(json.dumps(said))
    shape = listed(node_shell, folder).shape
    assert isinstance(shape, ModelShape) and (shape.format, shape.group) == ("nvfp4", 16)


def test_a_config_that_names_every_expert(node_shell: Sh, folder: Path) -> None:
    """Mixed exports list each quantized layer: a config of megabytes is read whole."""
    names = {f"model.layers.{n}.mlp.experts.{n % 512}.up_proj": {"quant_algo": "NVFP4"} for n in range(30_000)}
    said = CONFIG | {"quantization_config": {"quant_method": "modelopt", "quantized_layers": names}}
    (folder / "config.json").write_text(json.dumps(said))
    assert (folder / "config.json").stat().st_size > 2_000_000
    model = listed(node_shell, folder)
    assert model.flaws == () and isinstance(model.shape, ModelShape) and model.shape.expert_format == "nvfp4"


def test_many_tensors_are_quick(node_shell: Sh, folder: Path) -> None:
    """12,000 names in one header: what is read grows with the header and not with the 12 TB that it describes."""
    write(folder / SHARDS[0], {f"model.layers.0.mlp.experts.{n}.w1.weight": ("U8", GB) for n in range(12_000)})
    groups = {group.dtype: group for group in listed(node_shell, folder).tensors}
    assert (groups["U8"].count, groups["U8"].bytes) == (12_000, 12_000 * GB)


def gguf_file(path: Path, tokens: int) -> None:
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(2)
    writer.add_context_length(4096)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_token_list([f"token {n}" for n in range(tokens)])
    for name in ("token_embd", "output", "blk.0.attn_q", "blk.1.attn_q"):
        writer.add_tensor(f"{name}.weight", np.zeros((64, 64), dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("whole_folder", [True, False], ids=["folder", "file"])
def test_a_gguf_file_has_its_config_inside(node_shell: Sh, whole_folder: bool) -> None:
    """Dimensions and tensors come from the header of a file that llama.cpp's own writer made."""
    path = node_shell.home / "m" / "tiny.gguf"
    path.parent.mkdir()
    gguf_file(path, 1000)
    model = listed(node_shell, path.parent if whole_folder else path)
    assert model.complete and isinstance(model.shape, ModelShape)
    assert (model.shape.layers, model.shape.heads, model.shape.kv_heads, model.shape.vocab) == (2, 4, 2, 1000)
    assert (model.shape.intermediate, model.shape.positions, model.shape.format) == (128, 4096, "bf16")
    assert TensorGroup("blk.#.attn_q.weight", "F16", 2 * 64 * 64 * 2, 2) in model.tensors
    assert model.weights == path.stat().st_size


def test_a_gguf_file_next_to_safetensors_is_another_format(node_shell: Sh, folder: Path) -> None:
    """A GGUF file in a folder of safetensors changes nothing: engines that take a folder load the safetensors."""
    alone = listed(node_shell, folder)
    gguf_file(folder / "a.gguf", 10)
    both = listed(node_shell, folder)
    assert (both.shape, both.tensors, both.weights) == (alone.shape, alone.tensors, alone.weights)


@pytest.mark.parametrize(
    ("what", "tensors"),
    [
        ("a header of more than 25 MB", lambda: {"__metadata__": {str(n): "x" * 2000 for n in range(13_000)}}),
        ("a name of 10 MB", lambda: {"model." + "1." * 5_000_000: GOOD, "a": GOOD}),
        ("25,000 kinds", lambda: {f"model.k{n}x": GOOD for n in range(25_000)}),
    ],
)  # fmt: skip
def test_a_header_that_no_model_has_is_read_in_linear_time(node_shell: Sh, what: str, tensors: Any) -> None:
    """A header beyond all bounds costs linear time; what is too long or too many is not listed."""
    folder = node_shell.home / "odd"
    folder.mkdir()
    text = json.dumps(tensors()).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"1234")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    found = listed(node_shell, folder)
    assert sum(group.count for group in found.tensors) == (1 if what == "a name of 10 MB" else 0)
    assert (flaws_by_file(found) == {}) == (what != "a header of more than 25 MB")


def test_a_node_without_python_lists_the_same(node_shell: Sh, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the reader in Python against the one in sh: both report the same, for damaged files too."""
    (folder / "model.safetensors.index.json").unlink()
    (folder / "cut.safetensors").write_bytes(b"\x10\0")
    (folder / "long.safetensors").write_bytes(b"\xff" * 40)
    (folder / "larger.safetensors").write_bytes(struct.pack("<Q", staging.LONGEST_HEADER + 1) + b"{}")
    (folder / "short.safetensors").write_bytes(struct.pack("<Q", 500) + b'{"a": {"data_offsets": [0, 4]}')
    quick = node_shell.run(staging.list_path(str(folder))).stdout
    stub = node_shell.home / "bin" / "python3"
    stub.parent.mkdir(exist_ok=True)
    stub.write_text("#!/bin/sh\nexit 127\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")
    slow = node_shell.run(staging.list_path(str(folder))).stdout
    heads = sorted(line for line in quick.splitlines() if line.startswith(("head", "tensor")))
    assert heads == sorted(line for line in slow.splitlines() if line.startswith(("head", "tensor")))
    assert sum(line.startswith("head") for line in heads) == 6


def test_an_index_that_names_files_which_are_not_there(node_shell: Sh, folder: Path) -> None:
    """Guards half a checkpoint: each missing file of the index is named, and the checkpoint is not sound."""
    (folder / SHARDS[1]).unlink()
    found = listed(node_shell, folder)
    assert [(flaw.defect, flaw.file) for flaw in found.flaws] == [(Defect.ABSENT, SHARDS[1])]
    assert not found.sound and not found.complete
