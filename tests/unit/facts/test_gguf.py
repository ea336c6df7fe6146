"""Heads of GGUF files: the keys of each family, and any bytes at all."""

import base64
import gzip
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.checkpoint import TensorGroup
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.facts import gguf
from unit.for_each import for_each

U32, F32, BOOL, TEXT, LIST = 4, 6, 7, 8, 9


def pack_text(value: str, order: str = "<") -> bytes:
    return struct.pack(f"{order}Q", len(value.encode())) + value.encode()


def pack_value(found: Any, order: str = "<") -> bytes:
    """Type and value as the format wants them."""
    if isinstance(found, list):
        inner = pack_value(found[0], order)
        return struct.pack(f"{order}I", LIST) + inner[:4] + struct.pack(f"{order}Q", len(found)) + b"".join(
            pack_value(v, order)[4:] for v in found
        )  # fmt: skip
    if isinstance(found, str):
        return struct.pack(f"{order}I", TEXT) + pack_text(found, order)
    if isinstance(found, bool):
        return struct.pack(f"{order}I?", BOOL, found)
    return struct.pack(f"{order}II", U32, found)


def pack_header(metadata: dict[str, Any], tensors: dict[str, tuple[int, int]], order: str = "<") -> bytes:
    """tensors: name -> (type, how many numbers)."""
    table = b"".join(
        pack_text(name, order) + struct.pack(f"{order}IQIQ", 1, many, kind, 0) for name, (kind, many) in tensors.items()
    )
    pairs = b"".join(pack_text(key, order) + pack_value(found, order) for key, found in metadata.items())
    return b"GGUF" + struct.pack(f"{order}IQQ", 3, len(tensors), len(metadata)) + pairs + table


def arch_metadata(name: str, **keys: Any) -> dict[str, Any]:
    common = {"block_count": 4, "attention.head_count": 8, "embedding_length": 512, "attention.head_count_kv": 2}
    own = {key.replace("__", "."): found for key, found in keys.items()}
    return {"general.architecture": name} | {f"{name}.{key}": found for key, found in (common | own).items()}


def read_shape(metadata: dict[str, Any], tensors: dict[str, tuple[int, int]] | None = None) -> ModelShape:
    found = gguf.header_shape(gguf.parse(pack_header(metadata, tensors or {})))
    assert isinstance(found, ModelShape), found
    return found


FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "experts": (
        arch_metadata("qwen3moe", expert_count=128, expert_used_count=8, expert_feed_forward_length=768,
             context_length=40960),
        {"architecture": "qwen3moe", "experts": 128, "experts_per_token": 8, "expert_intermediate": 768,
         "kv_heads": 2, "head_dim": 64, "positions": 40960, "quantization": "gguf"}),
    "latent": (
        arch_metadata("deepseek2", attention__kv_lora_rank=512, attention__key_length=576, attention__value_length=512,
             attention__key_length_mla=192, attention__value_length_mla=128, rope__dimension_count=64,
             attention__head_count_kv=1, leading_dense_block_count=1, expert_count=64, expert_used_count=6,
             expert_feed_forward_length=1408, expert_shared_count=2, feed_forward_length=10944),
        {"latent": 576, "rope_dim": 64, "head_dim": 192, "value_dim": 128, "kv_heads": 1, "moe_layers": 3,
         "shared_experts": 2}),
    "windows by class": (
        arch_metadata("gpt-oss", attention__sliding_window=128, attention__key_length=64, attention__value_length=64),
        {"full_layers": 2, "window_layers": 2, "window": 128, "value_dim": 0}),
    "windows by marks": (
        arch_metadata("gemma4", attention__sliding_window=1024,
             attention__sliding_window_pattern=[True, True, True, False],
             attention__head_count_kv=[8, 8, 8, 2], attention__key_length=512, attention__key_length_swa=256),
        {"full_layers": 1, "window_layers": 3, "kv_heads": 2, "head_dim": 512, "window_kv_heads": 8,
         "window_head_dim": 256}),
    "deltanet": (
        arch_metadata("qwen35moe", full_attention_interval=4, ssm__inner_size=4096, ssm__time_step_rank=32,
             ssm__group_count=16,
             ssm__state_size=128, ssm__conv_kernel=4),
        {"full_layers": 1, "state_layers": 3, "state_kind": "gdn", "state_conv_width": 8192, "state_matrix": 524288}),
    "single blocks": (
        arch_metadata("nemotron_h_moe", attention__head_count_kv=[0, 0, 2, 0], feed_forward_length=[0, 1856, 0, 1856],
             expert_count=128, expert_used_count=6, ssm__inner_size=4096, ssm__time_step_rank=64, ssm__group_count=8,
             ssm__state_size=128, ssm__conv_kernel=4),
        {"single_blocks": True, "full_layers": 1, "state_layers": 1, "moe_layers": 2, "state_kind": "mamba2",
         "state_conv_width": 6144, "state_matrix": 524288}),
    "drafts": (arch_metadata("glm4moe", block_count=5, nextn_predict_layers=1), {"layers": 4, "mtp_layers": 1}),
}  # fmt: skip


@for_each("family", FAMILIES)
def test_families(family: str) -> None:
    """Guards that llama.cpp's keys report the same as those of config.json."""
    metadata, expected = FAMILIES[family]
    found = read_shape(metadata)
    assert {key: getattr(found, key) for key in expected} == expected


TENSORS = {
    "token_embd.weight": (0, 64), "blk.0.attn_q.weight": (8, 64), "blk.1.attn_q.weight": (8, 64),
    "blk.0.ffn_up_exps.weight": (39, 320),
}  # fmt: skip


def test_tensors_and_their_types() -> None:
    """Guards bytes by kind of tensor: 34 bytes for 32 numbers of Q8_0, 17 of MXFP4; no output.weight: it is tied."""
    header = gguf.parse(pack_header(arch_metadata("llama"), TENSORS))
    assert gguf.groups(header) == (
        TensorGroup("blk.#.attn_q.weight", "Q8_0", 136, 2),
        TensorGroup("blk.#.ffn_up_exps.weight", "MXFP4", 170, 1),
        TensorGroup("token_embd.weight", "F32", 256, 1),
    )
    found = read_shape(arch_metadata("llama"), TENSORS)
    assert (found.format, found.expert_format, found.tied) == ("int8", "mxfp4", True)


def test_embeddings_of_each_layer() -> None:
    """Guards Gemma's E models in GGUF: a third of the file is tables that no token reads whole."""
    found = read_shape(arch_metadata("gemma3n", vocab_size=1000, embedding_length_per_layer_input=256))
    assert (found.tables, found.table_format) == (4 * 1000 * 256, "")


def test_half_a_download_is_known_by_its_header() -> None:
    """Guards that a file without an index is not called complete: 562 bytes of numbers follow its header."""
    begin = pack_header(arch_metadata("llama"), TENSORS)
    whole, end = gguf.parse(begin), -(-len(begin) // 32) * 32 + 562
    assert gguf.damage(whole, end) == "" and "cut short" in gguf.damage(whole, end - 1)
    assert gguf.damage(None, 562) == "does not begin with the mark of a GGUF file"
    assert gguf.damage(gguf.parse(b"GGUF\x03\0\0\0" + b"\xff" * 90), 98) == "its header cannot be read"
    assert gguf.damage(gguf.parse(begin[:-20]), len(begin)) == ""  # a long header, of which a part was read
    assert "cut short inside its header" in gguf.damage(gguf.parse(begin[:-20]), len(begin) - 20)


@for_each("metadata", (arch_metadata("clip"), arch_metadata("llama") | {"general.type": "mmproj"}))
def test_a_projector_is_no_model(metadata: dict[str, Any]) -> None:
    """Guards the second file of a model that sees: it fits everywhere, and serves nothing."""
    found = gguf.parse(pack_header(metadata, TENSORS))
    assert found and found.projector and "projector" in gguf.damage(found, 10**6)


def test_a_model_in_parts() -> None:
    """Guards that what the other files hold is counted, though only the first one's head was read."""
    header = gguf.parse(pack_header(arch_metadata("llama") | {"split.count": 3}, TENSORS))
    assert gguf.groups(header, 1000)[-1] == TensorGroup("other parts", "?", 1000 - 562, 2)


def test_a_head_that_is_cut_gives_what_is_there() -> None:
    """Guards that a long tokenizer hides no dimension: they are before it."""
    whole = pack_header(arch_metadata("llama") | {"tokenizer.ggml.tokens": ["a"] * 9}, TENSORS)
    header = gguf.parse(whole[:-20])
    assert header is not None and not header.whole
    assert gguf.groups(header) == ()
    found = gguf.header_shape(header)
    assert isinstance(found, ModelShape) and (found.layers, found.vocab, found.tied) == (4, 9, False)


def test_written_by_a_big_endian_machine() -> None:
    """Guards that a file of the other byte order is read as what it is."""
    header = gguf.parse(pack_header(arch_metadata("llama"), TENSORS, ">"))
    found = gguf.header_shape(header)
    assert isinstance(found, ModelShape) and found.layers == 4


@pytest.mark.parametrize("packed", ["", "?", "AAAA", base64.b64encode(gzip.compress(b"GGML" * 9, mtime=0)).decode()])
def test_what_is_no_gguf_is_unknown(packed: str) -> None:
    """Guards that a broken listing makes no model."""
    header = gguf.unpack(packed)
    assert header is None
    assert isinstance(gguf.header_shape(header), Unknown)
    assert gguf.groups(header) == ()


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 400), st.integers(0, 255), st.integers(0, 400))
def test_any_damage(at: int, byte: int, end: int) -> None:
    """Guards that no damaged or hostile head costs more than its bytes, and none raises."""
    whole = bytearray(pack_header(FAMILIES["windows by marks"][0], TENSORS))
    whole[at % len(whole)] = byte
    header = gguf.parse(bytes(whole[: len(whole) - end]))
    assert isinstance(gguf.header_shape(header), ModelShape | Unknown)
    gguf.groups(header, 1000)


def test_a_length_that_no_file_has_ends_the_head() -> None:
    """One damaged byte of one length among the tokens: the file is cut there, nothing is raised."""
    whole = pack_header({"general.architecture": "llama", "tokenizer.ggml.tokens": ["a"] * 40, "last": 1}, {})
    at = whole.rindex(pack_text("a"))
    found = gguf.parse(whole[:at] + b"\xff" * 8 + whole[at + 8 :])
    assert found is not None and not found.whole
    assert gguf.parse(whole).whole
