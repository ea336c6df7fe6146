"""Headers by ranges from a real server on loopback: what a plan reads of a model without its weights."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from fakes.clock import FakeClock
from fakes.hub_http import FOLDER, TREE, HubServer, Tensors, file_entry, publish_model, serving
from sparkwright.adapters.hub import HttpHub
from sparkwright.adapters.hub_headers import _cover
from sparkwright.domain.checkpoint import Checkpoint, TensorGroup
from sparkwright.domain.command import Completed, Secret
from sparkwright.domain.facts import Unknown
from sparkwright.facts.checkpoint import parse


def layers(first: int, last: int, dtype: str = "BF16") -> Tensors:
    return {f"model.layers.{n}.mlp.up_proj.weight": (dtype, 1000) for n in range(first, last)}


@pytest.fixture
def server() -> Iterator[HubServer]:
    with serving() as server:
        yield server


def make_hub(server: HubServer, folder: Path, **more: Secret) -> HttpHub:
    return HttpHub(folder / "hub", FakeClock(), server.url, **more)


async def read(server: HubServer, folder: Path) -> Checkpoint:
    text = await make_hub(server, folder).headers("org/name")
    assert isinstance(text, str), text
    found = parse(Completed(0, text, ""))
    assert isinstance(found, Checkpoint)
    return found


async def test_few_of_a_thousand_shards_are_read(server: HubServer, tmp_path: Path) -> None:
    """Tensors that differ in numbers only are alike: one shard of each kind is enough, and weights are never asked."""
    many = {f"model-{n + 1:05}-of-01000.safetensors": layers(n, n + 1) for n in range(999)}
    publish_model(server, {**many, "model-01000-of-01000.safetensors": {"model.embed_tokens.weight": ("BF16", 5000)}})
    found = await read(server, tmp_path)
    assert found.tensors == (
        TensorGroup("model.embed_tokens.weight", "BF16", 5000, 1),
        TensorGroup("model.layers.#.mlp.up_proj.weight", "BF16", 999_000, 999),
    )
    assert sum(path.endswith(".safetensors") for path, _ in server.asked) == 2
    assert max(server.sent) < 200_000, "ranges, not files"
    assert found.complete and found.weights > 1_000_000
    before = len(server.asked)
    assert await make_hub(server, tmp_path).headers("org/name") and len(server.asked) == before


async def test_layers_in_different_formats_are_all_read(server: HubServer, tmp_path: Path) -> None:
    """Every shard is read and nothing is scaled if the seen ones do not add up to the index's own sum."""
    small = {name: (dtype, 500) for name, (dtype, _) in layers(4, 6, "U8").items()}
    publish_model(server, {"model-a.safetensors": layers(0, 4), "model-b.safetensors": small})
    found = await read(server, tmp_path)
    assert [(group.dtype, group.bytes, group.count) for group in found.tensors] == [("BF16", 4000, 4), ("U8", 1000, 2)]


async def test_one_file_without_an_index(server: HubServer, tmp_path: Path) -> None:
    """Small models have no index."""
    publish_model(server, {"model.safetensors": layers(0, 3)}, indexed=False)
    assert [(group.bytes, group.count) for group in (await read(server, tmp_path)).tensors] == [(3000, 3)]


@pytest.mark.parametrize("body", [b"<html>welcome to the hotel", b"[1]", b"\xff" * 64, b""])
async def test_what_is_no_header_is_named(server: HubServer, tmp_path: Path, body: bytes) -> None:
    """A proxy's page in place of a file."""
    publish_model(server, {"model.safetensors": layers(0, 3)}, indexed=False)
    server.replies[f"{FOLDER}model.safetensors"] = (200, {}, body)
    found = await make_hub(server, tmp_path).headers("org/name")
    assert isinstance(found, Unknown) and "answer cannot be used" in found.why


@pytest.mark.parametrize(
    ("status", "why"), [(401, "export HF_TOKEN"), (403, "export HF_TOKEN"), (404, "no such model")]
)
async def test_a_gated_or_missing_model_is_named(server: HubServer, tmp_path: Path, status: int, why: str) -> None:
    """The model is named with the thing that it needs."""
    publish_model(server, {"model.safetensors": layers(0, 3)}, indexed=False)
    server.replies[f"{FOLDER}model.safetensors"] = (status, {}, b"{}")
    found = await make_hub(server, tmp_path).headers("org/name")
    assert isinstance(found, Unknown) and why in found.why


async def test_files_may_be_elsewhere_and_without_ranges(server: HubServer, tmp_path: Path) -> None:
    """A redirect to another host keeps the range and loses the token."""
    publish_model(server, {"model.safetensors": layers(0, 3)}, indexed=False)
    body = server.replies[f"{FOLDER}model.safetensors"]
    with serving() as other:
        other.ranges = False
        server.replies[f"{FOLDER}model.safetensors"] = (302, {"Location": f"{other.url}/blob"}, b"")
        other.replies["/blob"] = body
        text = await make_hub(server, tmp_path, token=Secret("hf_abc")).headers("org/name")
    assert isinstance(text, str) and "up_proj" in text
    assert other.asked == [("/blob", None)]


def test_shards_without_end_are_covered_in_few_looks() -> None:
    """A repository names as many shards and kinds as it likes: the work is linear in what it names."""
    looks = 0

    class Counted(str):
        __slots__ = ()

        def __hash__(self) -> int:
            nonlocal looks
            looks += 1
            return super().__hash__()

    many = 3000
    named = {f"kind{'x' * (n % 7)}{chr(97 + n % 26)}.{n}.k{n:x}": Counted(f"{n}.safetensors") for n in range(many)}
    files = dict.fromkeys(named.values(), 1)
    looks = 0
    assert len(list(islice(_cover(named, files), 64))) == 64
    assert looks < 20 * many


def test_the_shard_with_most_kinds_comes_first() -> None:
    """Few files together hold a tensor of each kind; one that adds nothing is not read."""
    named = {
        "a.1.w": "one",
        "b.1.w": "two",
        "c.1.w": "two",
        "d.1.w": "two",
        "a.2.w": "two",
        "e.w": "three",
        "d.2.w": "three",
    }
    assert list(_cover(named, dict.fromkeys(("one", "two", "three"), 1))) == ["two", "three"]


async def test_a_list_of_files_without_end_is_refused(server: HubServer, tmp_path: Path) -> None:
    """Pages of 30 MB, one after the other, would take all memory: a model's list is bounded as a whole."""
    server.answer(TREE, [file_entry(f"{'x' * 900}{n}", 1) for n in range(9_000)], Link=f'<{TREE}>; rel="next"')
    found = await make_hub(server, tmp_path).headers("org/name")
    assert isinstance(found, Unknown) and "a list of files of more than 16 MiB" in found.why, found
    assert len(server.asked) == 2
