"""Copies between folders of this machine: the script that copies between nodes, without its ssh."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.sh import Sh
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.cluster import Transfer
from sparkwright.domain.host_facts import PageCache
from sparkwright.domain.units import KIB
from sparkwright.facts.checkpoint import parse
from sparkwright.facts.memory import parse_cache
from sparkwright.remote import staging
from sparkwright.remote.programs import measure
from sparkwright.remote.programs.wire import COPYING, PARTIAL

pytestmark = pytest.mark.skipif(not shutil.which("rsync"), reason="rsync is not installed")
HERE = staging.Peer("ai", "127.0.0.1", 22, "", local=True)
DIGEST = "sha256:" + "0123456789abcdef" * 4


Copier = Callable[[Sh, Path, Path], str]


@pytest.fixture(params=["rsync", "streams"])
def copy_model(request: pytest.FixtureRequest) -> Copier:
    """Both ways have the same result."""

    def by(sh: Sh, source: Path, target: Path) -> str:
        words = str(source), str(target), HERE
        done = sh.run(staging.copy_tree(*words) if request.param == "rsync" else staging.push_tree(*words, Transfer()))
        assert done.ok, done.stdout + done.stderr
        return done.stdout

    return by


def listed(sh: Sh, path: Path) -> Checkpoint:
    checkpoint = parse(sh.run(staging.list_path(str(path))))
    assert isinstance(checkpoint, Checkpoint)
    return checkpoint


@pytest.fixture
def model_folder(node_shell: Sh) -> Path:
    """A folder whose name a shell would stumble over."""
    folder = node_shell.home / "from here/it's a `model`; $HOME"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_text("weights")
    return folder


def test_a_copy_counts_only_once_it_is_settled(node_shell: Sh, model_folder: Path, copy_model: Copier) -> None:
    """Nothing but our mark distinguishes half a model from all of it between two files."""
    target = node_shell.home / "to there" / model_folder.name
    assert "100%" in copy_model(node_shell, model_folder, target)
    assert listed(node_shell, target).missing == (f"{COPYING} (a copy that was not finished)",)
    assert node_shell.run(staging.settle(str(target))).ok
    assert listed(node_shell, target).complete
    assert sorted(p.name for p in target.iterdir()) == ["config.json", "model.safetensors"]


def test_settling_removes_what_old_downloads_left(node_shell: Sh, model_folder: Path) -> None:
    """A leftover would call the complete model unfinished for ever; dropping the cache alone leaves it."""
    (model_folder / "abc.12345678.incomplete").write_text("x")
    assert node_shell.run(staging.drop_cache(str(model_folder))).ok
    assert not listed(node_shell, model_folder).complete
    assert node_shell.run(staging.settle(str(model_folder))).ok
    assert listed(node_shell, model_folder).complete


@pytest.mark.parametrize("python", ["python3", "no-python3-here"])
def test_settling_leaves_no_page_cache(node_shell: Sh, python: str) -> None:
    """Settling works for thousands of files, whose names a shell would stumble over, and on a node without python3.

    The kernel keeps a page that it moves at that moment (compaction): of 6 MB a few may stay.
    """
    model = node_shell.home / "it's a `model`; $HOME"
    model.mkdir(parents=True)
    for number in range(300):
        (model / f"{number} {'-n' * (number % 2)}.bin").write_bytes(bytes(20_000))
    command = staging.settle(str(model))
    done = node_shell.run(replace(command, argv=tuple(word.replace("python3", python) for word in command.argv)))
    found = parse_cache(node_shell.run(measure([str(model)])))
    assert done.ok and isinstance(found, PageCache) and found.cached <= 64 * KIB


def test_partial_files_are_no_part_of_a_model(node_shell: Sh, model_folder: Path, copy_model: Copier) -> None:
    """The partial files that rsync keeps are neither counted nor sent on."""
    (model_folder / PARTIAL).mkdir()
    (model_folder / PARTIAL / "model.safetensors").write_text("w")
    assert listed(node_shell, model_folder).files == 2
    target = node_shell.home / "copy"
    copy_model(node_shell, model_folder, target)
    assert not (target / PARTIAL).exists()


def test_links_inside_stay_and_links_outside_add_their_bytes(node_shell: Sh, copy_model: Copier) -> None:
    """huggingface_hub 2 links blobs to a store next to all models, which the other node does not have."""
    root, store = node_shell.home / "hub/models--a--b", node_shell.home / "hub/blobs/ab"
    for folder in (root / "blobs", root / "snapshots/1", store):
        folder.mkdir(parents=True)
    (store / "xet").write_text("weights")
    (root / "blobs/etag").symlink_to("../../blobs/ab/xet")
    (root / "snapshots/1/model.safetensors").symlink_to("../../blobs/etag")
    target = node_shell.home / "other/models--a--b"
    copy_model(node_shell, root, target)
    assert (target / "snapshots/1/model.safetensors").is_symlink()
    assert not (target / "blobs/etag").is_symlink()
    assert (target / "snapshots/1/model.safetensors").read_text() == "weights"


def test_a_file_is_copied_as_a_file(node_shell: Sh, copy_model: Copier) -> None:
    """The file goes alone, also where it is a link; its neighbours stay behind, and there is no mark next to it."""
    (node_shell.home / "m").mkdir()
    (node_shell.home / "m/big.gguf").write_text("GGUF")
    (node_shell.home / "m/tiny.gguf").symlink_to("big.gguf")
    target = node_shell.home / "t/tiny.gguf"
    copy_model(node_shell, node_shell.home / "m/tiny.gguf", target)
    assert [p.name for p in target.parent.iterdir()] == ["tiny.gguf"]
    assert not target.is_symlink() and listed(node_shell, target).complete


def test_a_model_in_parts_is_all_its_parts(node_shell: Sh, copy_model: Copier) -> None:
    """It is named by the first file; every part is listed and copied, and one that lacks is named."""
    (node_shell.home / "m").mkdir()
    for number in (1, 2, 3):
        (node_shell.home / f"m/big-{number:05}-of-00003.gguf").write_text("GGUF")
    first = node_shell.home / "m/big-00001-of-00003.gguf"
    assert (listed(node_shell, first).files, listed(node_shell, first).complete) == (3, True)
    copy_model(node_shell, first, node_shell.home / "t" / first.name)
    assert listed(node_shell, node_shell.home / "t" / first.name).complete
    (node_shell.home / "m/big-00003-of-00003.gguf").unlink()
    assert listed(node_shell, first).missing == ("big-00003-of-00003.gguf (absent, and the model needs it)",)


def test_shards_without_an_index_are_counted_by_their_names(node_shell: Sh, model_folder: Path) -> None:
    """A copy that was cut off before the index came would else look complete."""
    (model_folder / "model.safetensors").rename(model_folder / "model-00001-of-00002.safetensors")
    assert listed(node_shell, model_folder).missing == (
        "model-00002-of-00002.safetensors (absent, and the model needs it)",
    )


@pytest.mark.parametrize(
    ("reference", "tag"),
    [
        (f"nvcr.io/nvidia/vllm@{DIGEST}", "nvcr.io/nvidia/vllm:sparkwright-0123456789abcdef"),
        (f"localhost:5000/vllm:26.01@{DIGEST}", "localhost:5000/vllm:sparkwright-0123456789abcdef"),
        ("vllm/vllm-openai:v0.21.0", ""),
    ],
)
def test_a_copied_image_gets_a_name(reference: str, tag: str) -> None:
    """Docker forgets the digest of what it loads; a tag travels as it is."""
    assert staging.copied_tag(reference) == tag
