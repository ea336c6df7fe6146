"""The listing of a node's model: the real listing, read by the real parser."""

import json
from pathlib import Path

import pytest

from fakes.sh import Sh
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.facts.checkpoint import parse
from sparkwright.remote import staging

REVISION = "0123456789abcdef0123456789abcdef01234567"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def find_checkpoint(sh: Sh, revision: str = "") -> Checkpoint:
    checkpoint = parse(sh.run(staging.list_hub("~/hub", "org/name", revision)))
    assert isinstance(checkpoint, Checkpoint)
    return checkpoint


def listed(sh: Sh, path: str) -> Checkpoint:
    checkpoint = parse(sh.run(staging.list_path(path)))
    assert isinstance(checkpoint, Checkpoint)
    return checkpoint


@pytest.fixture
def hub_entry(node_shell: Sh) -> Path:
    """A complete hub entry as the hub's client leaves it: blobs, and links to them from the snapshot."""
    root = node_shell.home / "hub/models--org--name"
    snapshot = root / "snapshots" / REVISION
    for folder in (root / "blobs", root / "refs", snapshot):
        folder.mkdir(parents=True)
    (root / "refs/main").write_text(REVISION)
    weights = dict.fromkeys(SHARDS, "x" * 10)
    index = json.dumps({"weight_map": {"a": SHARDS[0], "b": SHARDS[1]}})
    for name, text in {**weights, "model.safetensors.index.json": index, "config.json": '{"a":\n 1}'}.items():
        (root / "blobs" / name).write_text(text)
        (snapshot / name).symlink_to(f"../../blobs/{name}")
    return root


def test_a_complete_model_is_complete(node_shell: Sh, hub_entry: Path) -> None:
    """`path` is the snapshot that the engine loads, `root` the entry that is copied; sizes are those of the blobs."""
    model = find_checkpoint(node_shell)
    assert model.complete, model.missing
    assert (model.path, model.root) == (f"{hub_entry}/snapshots/{REVISION}", str(hub_entry))
    assert (model.revision, model.files) == (REVISION, 4)
    assert model.bytes > 20
    assert json.loads(model.config) == {"a": 1}


def test_a_branch_and_a_commit_name_the_same_snapshot(node_shell: Sh, hub_entry: Path) -> None:
    """A recipe may pin a commit, name a branch, or leave both out."""
    assert find_checkpoint(node_shell, "main") == find_checkpoint(node_shell) == find_checkpoint(node_shell, REVISION)


@pytest.mark.parametrize("name", ["absent", "empty", "link", "unfinished"])
def test_what_is_not_all_there_is_reported_by_name(node_shell: Sh, hub_entry: Path, name: str) -> None:
    """A missing shard, an empty one, a dead link and a download that was cut off: each would fail minutes later."""
    blob, shard = hub_entry / "blobs" / SHARDS[1], hub_entry / "snapshots" / REVISION / SHARDS[1]
    if name == "absent":
        shard.unlink()
    elif name == "empty":
        blob.write_text("")
    elif name == "link":
        blob.unlink()
    else:
        (hub_entry / "blobs/abc.incomplete").write_text("x")
    model = find_checkpoint(node_shell)
    assert not model.complete
    wanted = "abc.incomplete" if name == "unfinished" else SHARDS[1]
    assert any(wanted in text for text in model.missing), model.missing


@pytest.mark.parametrize("text", ["", REVISION + "\n"])
def test_a_bad_ref_is_reported(node_shell: Sh, hub_entry: Path, text: str) -> None:
    """Offline loading finds the snapshot by refs/main only, and a newline in it breaks the path."""
    if text:
        (hub_entry / "refs/main").write_text(text)
    else:
        (hub_entry / "refs/main").unlink()
    model = find_checkpoint(node_shell)
    assert model.path
    assert any("refs/main" in one for one in model.missing), model.missing


def test_a_ref_to_another_snapshot_is_reported(node_shell: Sh, hub_entry: Path) -> None:
    """The weights are there, but refs/main names another snapshot: `missing` names both."""
    (hub_entry / "refs/main").write_text("f" * 40)
    model = find_checkpoint(node_shell)
    assert (model.path.endswith(f"snapshots/{REVISION}"), model.revision, model.complete) == (True, REVISION, False)
    wanted = f"refs/main (names {'f' * 40}, of which there is no snapshot; there is {REVISION})"
    assert model.missing == (wanted,)


def test_a_model_that_is_not_there_is_nothing(node_shell: Sh) -> None:
    """The listing has no files and no path, only the folder where the model would be."""
    model = find_checkpoint(node_shell)
    assert (model.path, model.files, model.complete) == ("", 0, False)
    assert model.root == f"{node_shell.home}/hub/models--org--name"


def test_a_folder_with_odd_names_is_listed(node_shell: Sh) -> None:
    """Spaces, quotes and `$` in a path reach the node unchanged."""
    folder = node_shell.home / "my 'model'; $HOME"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "a b.safetensors").write_text("x")
    model = listed(node_shell, str(folder))
    assert (model.path, model.files, model.complete) == (str(folder), 2, True)


def test_one_file_is_a_model(node_shell: Sh) -> None:
    """A GGUF file, written with `~` as in a recipe."""
    (node_shell.home / "tiny.gguf").write_text("GGUF")
    model = listed(node_shell, "~/tiny.gguf")
    assert (model.path, model.bytes, model.complete) == (f"{node_shell.home}/tiny.gguf", 4, True)


def test_known_hosts_lines_name_the_fabric_address() -> None:
    """A line is the fabric address and the peer's key; a port other than 22 is written as `[address]:port`."""
    keys = ["ssh-ed25519 AAAA root@spark-2", "", "garbage"]
    assert staging.known_hosts("192.168.100.11", 22, keys) == "192.168.100.11 ssh-ed25519 AAAA\n"
    assert staging.known_hosts("192.168.100.11", 2222, keys) == "[192.168.100.11]:2222 ssh-ed25519 AAAA\n"


def test_a_node_shows_how_to_log_in(node_shell: Sh) -> None:
    """User, port (22 where the connection is not ssh) and home, on the first line."""
    user, port, home = node_shell.run(staging.peer_login()).stdout.splitlines()[0].split(" ")
    assert user and (port, home) == ("22", str(node_shell.home))


def test_no_token_is_in_a_command_line() -> None:
    """The hub's token is in no argument, where `ps` would show it to every user of the node."""
    command = staging.download("~/hub", "org/name", "", "hf_secret")
    assert "hf_secret" not in " ".join(command.argv)
