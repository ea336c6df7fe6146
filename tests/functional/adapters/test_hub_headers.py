"""Headers by ranges from a real server on loopback: what a plan reads of a model without its weights."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.clock import FakeClock
from fakes.hub_http import FOLDER, Server, Tensors, put, serving
from sparkwright.adapters.hub import HttpHub
from sparkwright.domain.checkpoint import Checkpoint, TensorGroup
from sparkwright.domain.command import Completed, Secret
from sparkwright.domain.facts import Unknown
from sparkwright.facts.checkpoint import parse


def layers(first: int, last: int, dtype: str = "BF16") -> Tensors:
    return {f"model.layers.{n}.mlp.up_proj.weight": (dtype, 1000) for n in range(first, last)}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def hub(server: Server, folder: Path, **more: Secret) -> HttpHub:
    return HttpHub(folder / "hub", FakeClock(), server.url, **more)


async def read(server: Server, folder: Path) -> Checkpoint:
    text = await hub(server, folder).headers("org/name")
    assert isinstance(text, str), text
    found = parse(Completed(0, text, ""))
    assert isinstance(found, Checkpoint)
    return found


async def test_few_of_a_thousand_shards_are_read(server: Server, tmp_path: Path) -> None:
    """Tensors that differ in numbers only are alike: one shard of each kind is enough, and weights are never asked."""
    many = {f"model-{n + 1:05}-of-01000.safetensors": layers(n, n + 1) for n in range(999)}
    put(server, {**many, "model-01000-of-01000.safetensors": {"model.embed_tokens.weight": ("BF16", 5000)}})
    found = await read(server, tmp_path)
    assert found.tensors == (
        TensorGroup("model.embed_tokens.weight", "BF16", 5000, 1),
        TensorGroup("model.layers.#.mlp.up_proj.weight", "BF16", 999_000, 999),
    )
    assert sum(path.endswith(".safetensors") for path, _ in server.asked) == 2
    assert max(server.sent) < 200_000, "ranges, not files"
    assert found.complete and found.weights > 1_000_000
    before = len(server.asked)
    assert await hub(server, tmp_path).headers("org/name") and len(server.asked) == before


async def test_layers_in_different_formats_are_all_read(server: Server, tmp_path: Path) -> None:
    """Where what was met does not add up to the index's own sum, every shard is read and nothing is scaled."""
    small = {name: (dtype, 500) for name, (dtype, _) in layers(4, 6, "U8").items()}
    put(server, {"model-a.safetensors": layers(0, 4), "model-b.safetensors": small})
    found = await read(server, tmp_path)
    assert [(group.dtype, group.bytes, group.count) for group in found.tensors] == [("BF16", 4000, 4), ("U8", 1000, 2)]


async def test_one_file_without_an_index(server: Server, tmp_path: Path) -> None:
    """Small models have no index."""
    put(server, {"model.safetensors": layers(0, 3)}, indexed=False)
    assert [(group.bytes, group.count) for group in (await read(server, tmp_path)).tensors] == [(3000, 3)]


@pytest.mark.parametrize("body", [b"<html>welcome to the hotel", b"[1]", b"\xff" * 64, b""])
async def test_what_is_no_header_is_named(server: Server, tmp_path: Path, body: bytes) -> None:
    """A proxy's page in place of a file."""
    put(server, {"model.safetensors": layers(0, 3)}, indexed=False)
    server.replies[f"{FOLDER}model.safetensors"] = (200, {}, body)
    found = await hub(server, tmp_path).headers("org/name")
    assert isinstance(found, Unknown) and "answer is none" in found.why


@pytest.mark.parametrize(
    ("status", "why"), [(401, "export HF_TOKEN"), (403, "export HF_TOKEN"), (404, "no such model")]
)
async def test_a_gated_or_missing_model_is_named(server: Server, tmp_path: Path, status: int, why: str) -> None:
    """With what would be needed."""
    put(server, {"model.safetensors": layers(0, 3)}, indexed=False)
    server.replies[f"{FOLDER}model.safetensors"] = (status, {}, b"{}")
    found = await hub(server, tmp_path).headers("org/name")
    assert isinstance(found, Unknown) and why in found.why


async def test_files_may_be_elsewhere_and_without_ranges(server: Server, tmp_path: Path) -> None:
    """A redirect to another host keeps the range and loses the token."""
    put(server, {"model.safetensors": layers(0, 3)}, indexed=False)
    body = server.replies[f"{FOLDER}model.safetensors"]
    with serving() as other:
        other.ranges = False
        server.replies[f"{FOLDER}model.safetensors"] = (302, {"Location": f"{other.url}/blob"}, b"")
        other.replies["/blob"] = body
        text = await hub(server, tmp_path, token=Secret("hf_abc")).headers("org/name")
    assert isinstance(text, str) and "up_proj" in text
    assert other.asked == [("/blob", None)]
