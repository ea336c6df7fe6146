"""The simulated memory agrees with what the real engine printed for the same dimensions, and refuses in its words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparkwright.simulator.ledger import busy_device, capture_sizes, gib, refusal
from unit.simulator.inprocess import MakeRank

H200 = {"SPARKWRIGHT_SIMULATOR_MEMORY_GIB": "139.8"}
EAGER = "--enforce-eager"
TP2 = ["--tensor-parallel-size", "2", "--kv-cache-dtype", "fp8", EAGER]
RUNS = [
    ("qwen3-8b", ["--gpu-memory-utilization", "0.5", EAGER], 15.27, 380_048),
    ("qwen3-8b", ["--gpu-memory-utilization", "0.5", "--kv-cache-dtype", "fp8"], 15.27, 754_608),
    ("qwen3-30b-a3b", ["--gpu-memory-utilization", "0.8", EAGER], 56.88, 568_624),
    ("dsv2-lite", ["--gpu-memory-utilization", "0.6", "--max-model-len", "65536", EAGER], 29.32, 1_808_992),
    ("minimax-m2.7-nvfp4", ["--gpu-memory-utilization", "0.82", "--max-model-len", "196608", *TP2], 62.76, 814_848),
    ("tiny-qwen3", ["--max-num-seqs", "64"], 0.06, 7_186_512),
]


@pytest.mark.parametrize(("config", "flags", "weights", "tokens"), RUNS)
def test_weights_and_pool_are_those_of_the_recordings(
    make_rank: MakeRank, config: str, flags: list[str], weights: float, tokens: int
) -> None:
    """Weights within 4 % and pool within 5 % of what vLLM 0.21.0 printed on the same device."""
    ledger = make_rank(*flags, config=config, env=H200).ledger
    assert ledger.weights == pytest.approx(weights, rel=0.04, abs=0.03)
    assert ledger.tokens == pytest.approx(tokens, rel=0.05)


def test_deepseek_v4_pool_follows_its_layers(make_rank: MakeRank) -> None:
    """A compressed cache is charged per request as well: 26.72 GiB held 4,047,815 tokens (capture v4-1m-s6)."""
    flags = [*TP2, "--max-model-len", "1048576", "--max-num-seqs", "6"]
    rank = make_rank(*flags, config="deepseek-v4-flash", env=H200)
    assert 26.72 * 2**30 / rank.ledger.per_token == pytest.approx(4_047_815, rel=0.005)
    assert rank.ledger.weights == pytest.approx(74.08, rel=0.04)


def test_a_pool_too_small_for_one_request_is_refused_in_vllms_words(captures: Path, make_rank: MakeRank) -> None:
    """The sentence is the recorded one; only the figures are this run's."""
    flags = ["--gpu-memory-utilization", "0.13", "--max-model-len", "40960", EAGER]
    rank = make_rank(*flags, config="qwen3-8b", env=H200)
    refused = refusal(rank.ledger, rank.limits)
    assert refused is not None
    text = (captures / "f-kv-too-small.log").read_text(encoding="utf-8")
    recorded = re.search(r"ValueError: To serve.*", text)
    assert recorded and _words(refused[1]) == _words(recorded[0])
    assert f"line {refused[0]}, in _check_enough_kv_cache_memory" in text
    assert "(5.62 GiB" in refused[1] and "(40960)" in refused[1]


def test_no_room_for_any_block_is_refused_in_vllms_words(captures: Path, make_rank: MakeRank) -> None:
    """Weights above the share of memory end the start with the recorded line."""
    rank = make_rank("--gpu-memory-utilization", "0.08", EAGER, config="qwen3-8b", env=H200)
    refused = refusal(rank.ledger, rank.limits)
    assert refused is not None
    assert refused[1] in (captures / "f-no-blocks.log").read_text(encoding="utf-8")


def test_what_fits_is_not_refused(make_rank: MakeRank) -> None:
    """A pool that holds one longest request is good."""
    rank = make_rank()
    assert refusal(rank.ledger, rank.limits) is None


def test_memory_that_others_hold_is_noticed(make_rank: MakeRank) -> None:
    """Less free memory than asked for ends the start; as much or more does not."""
    rank = make_rank("--gpu-memory-utilization", "0.9")
    text = busy_device(rank.ledger, rank.limits, 101.3) or ""
    assert text.startswith("ValueError: Free memory on device cuda:0 (101.3/119.7 GiB) on startup is less than desired")
    assert "(0.9, 107.73 GiB)" in text
    assert busy_device(rank.ledger, rank.limits, 107.8) is None


def test_heads_are_split_down_to_one_and_latent_rows_never(make_rank: MakeRank) -> None:
    """GQA's bytes per token halve with two ranks (until one head is left); MLA's stay."""
    per_token = [
        [make_rank("-tp", str(n), "--max-model-len", "4096", config=c).ledger.per_token for n in (1, 2, 8)]
        for c in ("qwen3-30b-a3b", "dsv2-lite")
    ]
    gqa, mla = per_token
    assert gqa == [98_304, 49_152, 24_576]
    assert mla == [mla[0]] * 3 and mla[0] == 27 * 576 * 2


def test_a_stated_weight_wins(make_rank: MakeRank) -> None:
    """Simulated weights can be stated without any file of that size."""
    rank = make_rank("-tp", "2", env={"SPARKWRIGHT_SIMULATOR_WEIGHTS_GIB": "148"})
    assert rank.ledger.weights == pytest.approx(74)
    assert rank.model.active > 1e9


def test_pinned_kv_is_exact(make_rank: MakeRank) -> None:
    """--kv-cache-memory-bytes decides the pool, whatever the share of memory."""
    rank = make_rank("--kv-cache-memory-bytes", "1g", EAGER)
    assert rank.ledger.tokens == 10**9 // 4096 // 16 * 16


@pytest.mark.parametrize(("sequences", "sizes", "decode"), [(64, 19, 11), (1024, 51, 51), (512, 51, 51)])
def test_captured_sizes_are_vllms(make_rank: MakeRank, sequences: int, sizes: int, decode: int) -> None:
    """PIECEWISE=19 and FULL=11 for 64 sequences, 51 and 51 for the default (captures a-tiny, m1)."""
    limits = make_rank("--max-num-seqs", str(sequences)).limits
    found = capture_sizes(limits)
    assert (len(found), len([s for s in found if s <= sequences])) == (sizes, decode)


def test_gib_is_printed_as_vllm_does() -> None:
    """The number has at most two decimals, no zeros added (27.41, 52.4, -6.52)."""
    assert [gib(v) for v in (27.412, 52.4, -6.519, 74.0)] == ["27.41", "52.4", "-6.52", "74.0"]


def _words(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "#", text)
