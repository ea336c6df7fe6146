"""The small parts: tokenizer, text, speed, progress bars, settings, model folders, log lines, rank link."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
from pathlib import Path

import pytest

from sparkwright.simulator import model
from sparkwright.simulator.link import HeadLink, PeerLost, WorkerLink, patient
from sparkwright.simulator.log import LogVoice
from sparkwright.simulator.phases import Bar
from sparkwright.simulator.settings import settings_from
from sparkwright.simulator.text import SimulatedTokenizer, Style, answer
from unit.simulator.inprocess import MakeRank

TEXT = "def quick_sort(items):\n    return sorted(items)  # naïve, 1234 times\n\n" * 3


@pytest.mark.parametrize("text", [TEXT, "", " ", "<|im_start|>user\nhi<|im_end|>", "日本語 and   spaces\t\n"])
def test_tokens_give_the_text_back(text: str) -> None:
    """Nothing is lost between text and tokens, and equal text has equal tokens."""
    tokenizer = SimulatedTokenizer(8000)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert ids == SimulatedTokenizer(8000).encode(text)


def test_a_token_is_about_four_characters() -> None:
    """Counts are of the real order, so that contexts and speeds are plausible."""
    words = "The scheduler batches requests and keeps the cache of every prompt that it has seen before. " * 20
    assert 3.0 < len(words) / len(SimulatedTokenizer(8000).encode(words)) < 5.5


def test_each_piece_of_an_answer_is_one_token() -> None:
    """Otherwise usage and a resent history would disagree."""
    tokenizer = SimulatedTokenizer(8000)
    pieces = [p.text for p in itertools.islice(answer(7, Style(endless=True)), 300)]
    assert tokenizer.pieces("".join(pieces)) == pieces


@pytest.mark.parametrize("reasoning", [False, True])
def test_an_answer_ends_automatically_unless_asked_not_to(reasoning: bool) -> None:
    """Short by default, endless with ignore_eos; both report simulated first."""
    pieces = list(answer(3, Style(reasoning=reasoning)))
    assert len(pieces) < 120
    assert "".join(p.text for p in pieces).startswith("(simulated)")
    assert len(list(itertools.islice(answer(3, Style(reasoning, endless=True)), 500))) == 500


def test_dsv4_on_two_gb10_has_the_measured_speed(make_rank: MakeRank) -> None:
    """Decode 27 tokens/s and prefill 1.7K-2.7K tokens/s on two nodes: within a third."""
    flags = ["-tp", "2", "--kv-cache-dtype", "fp8", "--max-num-seqs", "6", "--max-model-len", "1048576"]
    speed = make_rank(*flags, config="deepseek-v4-flash").speed
    assert 1 / speed.decode_s(1, 1000) == pytest.approx(27, rel=0.34)
    assert 1000 / speed.prefill_s(1000) == pytest.approx(2200, rel=0.34)


def test_more_sequences_cost_less_than_they_gain(make_rank: MakeRank) -> None:
    """A batch of a mixture of experts reads more experts per step: slower each, faster together; depth costs."""
    speed = make_rank("-tp", "2", config="minimax-m2.7-nvfp4", env={}).speed
    one, eight = speed.decode_s(1, 1000), speed.decode_s(8, 8000)
    assert one < eight < 8 * one
    assert speed.decode_s(1, 100_000) > one
    assert speed.step_s(8192, 1, 10) > speed.step_s(0, 1, 10)


def test_stated_speeds_win(make_rank: MakeRank) -> None:
    """Rates from the environment replace the estimates."""
    speed = make_rank(env={"SPARKWRIGHT_SIMULATOR_PREFILL_TPS": "500", "SPARKWRIGHT_SIMULATOR_STEP_MS": "40"}).speed
    assert (speed.prefill_s(1000), speed.decode_s(1, 9)) == (2.0, 0.04)


async def test_bars_are_redrawn_or_ended_as_vllm_does() -> None:
    """Graphs: one line with carriage returns (as in capture a-tiny); shards: a line each (vLLM's `_BAR_FORMAT`)."""
    out = io.StringIO()
    voice = LogVoice("EngineCore", 7, out)
    bar = Bar("Capturing CUDA graphs (decode, FULL)", 11, 1.87, 0.0, updates=2)
    await bar.draw(voice)
    await Bar("Loading safetensors checkpoint shards", 2, 1.0, 0.0).shards(voice)
    lines = out.getvalue().split("\n")
    assert lines[0].split("\r") == [
        "(EngineCore pid=7) ",
        "Capturing CUDA graphs (decode, FULL):   0%|          | 0/11 [00:00<?, ?it/s]",
        "Capturing CUDA graphs (decode, FULL):  55%|█████▍    | 6/11 [00:01<00:00,  5.88it/s]",
        "Capturing CUDA graphs (decode, FULL): 100%|██████████| 11/11 [00:01<00:00,  5.88it/s]",
    ]
    shard = "(EngineCore pid=7) \rLoading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00,  2.00it/s]"
    assert lines[2] == shard


def test_settings_name_what_is_wrong() -> None:
    """A value that is no number is refused with its variable, not ignored."""
    with pytest.raises(ValueError, match="SPARKWRIGHT_SIMULATOR_MEMORY_GIB='lots'"):
        settings_from({"SPARKWRIGHT_SIMULATOR_MEMORY_GIB": "lots"})


def test_one_time_scale_sets_both() -> None:
    """TIME_SCALE rules boot and tokens; TOKEN_SCALE alone only tokens; by default tokens are in real time."""
    scales = [
        (s.boot_scale, s.token_scale)
        for s in map(
            settings_from, ({}, {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0"}, {"SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "2"})
        )
    ]
    assert scales == [(0.06, 1.0), (0.0, 0.0), (0.06, 2.0)]


def test_a_model_folder_is_read_from_its_index(tmp_path: Path, captures: Path) -> None:
    """Weights: what the index reports, else the files, else the dimensions; shards: the index's."""
    config = (captures / "tiny-qwen3.config.json").read_text(encoding="utf-8")
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    (tmp_path / "a.safetensors").write_bytes(b"x" * 1000)
    assert model.read(tmp_path, "m", None).weights == 1000
    index = {"metadata": {"total_size": 5000}, "weight_map": {"w": "a.safetensors", "v": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    found = model.read(tmp_path, "m", None)
    assert (found.weights, found.shards) == (5000, 2)
    stated = {**json.loads(config), "sparkwright_twin": {"weights_gib": 10, "shards": 7}}
    (tmp_path / "config.json").write_text(json.dumps(stated), encoding="utf-8")
    found = model.read(tmp_path, "m", None)
    assert (found.weights, found.shards) == (10 * 2**30, 7)


def test_a_hub_id_is_looked_up_in_the_cache(tmp_path: Path) -> None:
    """org/name is the snapshot that refs/main names; a path that is not there is nothing."""
    root = tmp_path / "models--org--name"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text("abc\n", encoding="utf-8")
    (root / "snapshots" / "abc").mkdir(parents=True)
    assert model.find_model("org/name", str(tmp_path)) == root / "snapshots" / "abc"
    assert model.find_model("org/other", str(tmp_path)) is None
    assert model.find_model("/no/where", str(tmp_path)) is None


async def test_ranks_meet_and_step_together(unused_tcp_port: int) -> None:
    """The head waits until all have joined; a step is done when each worker has answered it."""
    head, workers = HeadLink(3), [WorkerLink(1), WorkerLink(2)]
    await head.listen("127.0.0.1", unused_tcp_port)
    await asyncio.gather(*(w.join("127.0.0.1", unused_tcp_port) for w in workers))
    await asyncio.wait_for(head.all_joined(), 2)

    async def serve(worker: WorkerLink) -> int:
        frame = await worker.next()
        await worker.answer()
        return int(frame["answered"])

    _, *seen = await asyncio.gather(head.ask({"op": "step", "answered": 4}), *map(serve, workers))
    assert seen == [4, 4]
    await head.bye()
    with pytest.raises(PeerLost) as lost:
        await workers[0].next()
    assert lost.value.said_bye
    for worker in workers:
        worker.close()


async def test_a_silent_rank_is_remarked_on_again_and_again() -> None:
    """Waiting goes on; the line comes after each interval."""
    remarks: list[int] = []
    twice = asyncio.Event()
    work = asyncio.ensure_future(twice.wait())

    def remark() -> None:
        remarks.append(1)
        if len(remarks) == 2:
            twice.set()

    await patient(work, 0.01, remark)
    assert len(remarks) >= 2
