"""`recipes inventory` on two node entries that are this machine, with models as the hub and people leave them."""

import json
import shutil
from pathlib import Path
from typing import Any

import gguf
import pytest

from fakes.sh import Sh
from functional.command import UserShell
from functional.hub_cache import CONFIGS, REVISION, SHARDS, hub_entry
from functional.tiny_gguf import write_tiny_gguf
from sparkwright.domain.checkpoint import Stored
from sparkwright.facts.inventory import inventory, parse
from sparkwright.facts.model_values import known_values


def folder(path: Path, config: str = "qwen3-8b") -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text((CONFIGS / f"{config}.config.json").read_text())
    (path / "model.safetensors").write_bytes(b"x" * 1000)
    return path


def listed(sh: Sh, *others: str) -> dict[str, Stored]:
    found = parse(sh.run(inventory("~/hub", "~/models", others)), "here")
    assert isinstance(found, tuple), found
    assert len({one.label for one in found}) == len(found)
    return {one.label: one for one in found}


@pytest.fixture(params=[name for name in ("dash", "bash") if shutil.which(name)])
def node_shell(request: pytest.FixtureRequest, tmp_path: Path) -> Sh:
    return Sh(tmp_path, request.param)


def test_every_kind_of_place_is_found(node_shell: Sh) -> None:
    """Hub entries, folders, GGUF files in both, and folders next to a recipe's own path; parts of a model are none."""
    hub_entry(node_shell.home / "hub", "org/one", "minimax-m2.7-nvfp4")
    ggufs = node_shell.home / "hub/models--org--two-GGUF/snapshots/f00d/Q8"
    (ggufs.parents[2] / "refs").mkdir(parents=True)
    ggufs.mkdir(parents=True)
    (ggufs.parents[2] / "refs/main").write_text("f00d")
    write_tiny_gguf(ggufs / "two.gguf")
    folder(node_shell.home / "models/plain")
    folder(node_shell.home / "models/plain/original")
    folder(node_shell.home / "models/plain-b/deep")
    folder(node_shell.home / "models/.hidden/x")
    (node_shell.home / "models/config.json").write_text("{}")
    (folder(node_shell.home / "models/family/small").parent / "config.json").write_text("{}")
    write_tiny_gguf(node_shell.home / "models/tiny.gguf")
    for part in (1, 2):
        write_tiny_gguf(node_shell.home / f"models/parts-0000{part}-of-00002.gguf")
    folder(node_shell.home / "else where/far")
    here = node_shell.home
    assert set(listed(node_shell, "~/else where", str(here / "models"), "/no/such")) == {
        "org/one", "org/two-GGUF Q8/two.gguf", f"{here}/models/plain", f"{here}/models/plain-b/deep",
        f"{here}/models/family", f"{here}/models/family/small", f"{here}/models/tiny.gguf",
        f"{here}/models/parts-00001-of-00002.gguf", f"{here}/else where/far",
    }  # fmt: skip


def test_what_is_whole_is_whole(node_shell: Sh) -> None:
    """Revision, size with links followed, and how the numbers are written, from config.json or the GGUF header."""
    hub_entry(node_shell.home / "hub", "org/one", "minimax-m2.7-nvfp4")
    hub_entry(node_shell.home / "hub", "org/mx", "gpt-oss-120b")
    write_tiny_gguf(node_shell.home / "tiny.gguf").rename(_made(node_shell.home / "models") / "tiny.gguf")
    found = listed(node_shell)
    assert all(one.complete for one in found.values()), found
    one, mx, tiny = found["org/one"], found["org/mx"], found[f"{node_shell.home}/models/tiny.gguf"]
    assert (one.checkpoint.revision, one.format, one.size) == (REVISION, "nvfp4 experts, bf16", 2000)
    assert (mx.format, tiny.format) == ("mxfp4 experts, bf16", "gguf F32")
    assert tiny.size == (node_shell.home / "models/tiny.gguf").stat().st_size


def _made(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda root: (root / f"snapshots/{REVISION}/{SHARDS[1]}").unlink(), f"{SHARDS[1]} (absent"),
        (lambda root: (root / f"blobs/0123{SHARDS[1]}").unlink(), f"{SHARDS[1]} (broken link"),
        (lambda root: (root / "blobs/77.incomplete").write_text("x"), "unfinished download"),
        (lambda root: (root / "refs/main").write_text("dead"), "no file of it is there"),
        (lambda root: (root / "refs/main").write_text(REVISION + "\n"), "ends with a newline"),
        (lambda root: (root / "refs/main").unlink(), "refs/main (absent"),
        (lambda root: shutil.rmtree(root / "snapshots"), "no file of it is there"),
        (lambda root: [p.unlink() for p in root.rglob("model*")], "no weights"),
    ],
)
def test_what_is_not_whole_reports_what_is_missing(node_shell: Sh, spoil: Any, said: str) -> None:
    """Half a download looks like a model until an engine has read for minutes."""
    spoil(hub_entry(node_shell.home / "hub", "org/one", "minimax-m2.7-nvfp4"))
    found = parse(node_shell.run(inventory("~/hub", "~/models", ())), "here")
    assert isinstance(found, tuple)
    assert [one.id for one in found if said in " ".join(one.missing)] == ["org/one"]


def test_every_snapshot_counts(node_shell: Sh) -> None:
    """An older revision may be the one that a recipe pins."""
    hub_entry(node_shell.home / "hub", "org/one", "minimax-m2.7-nvfp4", "a" * 40)
    hub_entry(node_shell.home / "hub", "org/one", "minimax-m2.7-nvfp4")
    found = parse(node_shell.run(inventory("~/hub", "~/models", ())), "here")
    assert isinstance(found, tuple)
    assert [(one.checkpoint.revision, one.complete) for one in found] == [(REVISION, True), ("a" * 40, True)]


def test_nothing_there_is_no_trouble(node_shell: Sh) -> None:
    """A fresh node has neither folder."""
    assert listed(node_shell) == {}


def test_gguf_files_are_named_as_their_publishers_do() -> None:
    """The numbers of general.file_type are those of the format's own package."""
    official = {str(kind.value): kind.name.removeprefix("MOSTLY_").removeprefix("ALL_") for kind in gguf.LlamaFileType}
    ours = known_values("gguf")["file_types"]
    same = {number: name for number, name in ours.items() if official.get(number, "").startswith(name)}
    assert same == {number: name for number, name in ours.items() if number in official}
    assert len(same) > 25


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    entry = "  - {{name: {0}, ssh: local, paths: {{state: {1}/{0}/state, models: {1}/{0}/models, hub: {1}/{0}/hub}}}}\n"
    nodes = "".join(entry.format(name, tmp_path) for name in ("a", "b"))
    (tmp_path / "cluster.yaml").write_text(f"head: a\nnodes:\n{nodes}")
    return UserShell(tmp_path)


@pytest.mark.full
def test_the_right_one_was_there_all_along(user_shell: UserShell) -> None:
    """Report 001: weeks of work on FP8, and the NVFP4 that fits lay on both disks."""
    for node in "ab":
        hub_entry(user_shell.folder / node / "hub", "lukealonso/MiniMax-M2.7-NVFP4", "minimax-m2.7-nvfp4")
    code, out, err = user_shell.run("recipes", "inventory")
    assert code == 0, err
    assert "1 checkpoint on 2 nodes" in out
    row = next(line.split() for line in out.splitlines() if "01234567" in line)
    assert row[:4] == ["lukealonso/MiniMax-M2.7-NVFP4", "01234567", "nvfp4", "experts,"]
    assert row[-4:] == ["complete", "a", "b", "-"]
    assert "minimax-m2.7-nvfp4 could use it with model.id: lukealonso/MiniMax-M2.7-NVFP4" in out
    assert "minimax-m2.7-fp8-sglang could use it" in out


@pytest.mark.full
def test_a_recipes_own_checkpoint_and_who_lacks_it(user_shell: UserShell) -> None:
    """A checkpoint is known by id and by path; `up` copies one that only one node has."""
    hub_entry(user_shell.folder / "a/hub", "openai/gpt-oss-120b", "gpt-oss-120b")
    (user_shell.folder / "b/models").mkdir(parents=True)
    write_tiny_gguf(user_shell.folder / "b/models/tiny.gguf")
    code, out, err = user_shell.run("recipes", "inventory", "--json")
    assert code == 0, err
    one, tiny = json.loads(out)["checkpoints"]
    assert (one["node"], one["id"], one["lacking"]) == ("a", "openai/gpt-oss-120b", ["b"])
    assert {"recipe": "gpt-oss-120b", "how": "yes", "change": {}, "why": ""} in one["recipes"]
    assert (tiny["node"], tiny["format"], tiny["lacking"]) == ("b", "gguf F32", ["a"])
    assert [use["recipe"] for use in tiny["recipes"] if use["how"] == "yes"] == ["tiny-llama-cpp"]
    _, out, _ = user_shell.run("recipes", "inventory")
    assert "openai/gpt-oss-120b: not on b: `up` copies it there over the fabric" in out


@pytest.mark.full
def test_node_by_node(user_shell: UserShell) -> None:
    """Each copy on a line of its own, an unfinished one next to the whole one."""
    for node in "ab":
        hub_entry(user_shell.folder / node / "hub", "openai/gpt-oss-120b", "gpt-oss-120b")
    (user_shell.folder / "b/hub/models--openai--gpt-oss-120b/blobs/1.incomplete").write_text("")
    _, out, _ = user_shell.run("recipes", "inventory", "--nodes")
    rows = [line.split()[-3:-1] for line in out.splitlines() if line.startswith("  openai/")]
    assert rows == [["complete", "a"], ["incomplete", "b"]]
    assert "openai/gpt-oss-120b: incomplete on b: blobs/1.incomplete (unfinished download)" in out


def test_a_node_that_does_not_answer(user_shell: UserShell) -> None:
    """The others are shown, the exit code reports that one is missing."""
    hub_entry(user_shell.folder / "a/hub", "openai/gpt-oss-120b", "gpt-oss-120b")
    text = (user_shell.folder / "cluster.yaml").read_text()
    (user_shell.folder / "cluster.yaml").write_text(
        text.replace("name: b, ssh: local", "name: b, ssh: 'no-such-host.invalid'")
    )
    code, out, err = user_shell.run("recipes", "inventory")
    assert code == 3
    assert "1 checkpoint on 1 node\n" in out
    assert "error: b: " in err


FP8 = """title: M2 in FP8
model:
  id: MiniMaxAI/MiniMax-M2.7
  size: 229GB
  shape: {architecture: MiniMaxM2ForCausalLM, layers: 62, hidden: 3072, heads: 48, kv_heads: 8, head_dim: 128,
    vocab: 200064, experts: 256, experts_per_token: 8, expert_intermediate: 1536, quantization: fp8, format: fp8,
    group: 128, rows: 128, positions: 196608}
engine: {name: vllm, version: 0.21.0, runtime: process}
nodes: 2
parallelism: {tp: 2}
serving: {context: 196608, memory_fraction: 0.85, sequences: 4}
"""


def test_a_plan_that_does_not_fit_names_the_checkpoint_that_would(user_shell: UserShell) -> None:
    """The refusal of an FP8 checkpoint reports in its first remedy what lies on the disks next to it."""
    meminfo = (CONFIGS.parent / "facts/meminfo/idle.txt").read_text()
    cluster = (user_shell.folder / "cluster.yaml").read_text()
    for node in "ab":
        entry = hub_entry(user_shell.folder / node / "hub", "lukealonso/MiniMax-M2.7-NVFP4", "minimax-m2.7-nvfp4")
        for number, name in enumerate(SHARDS):
            with (entry / f"blobs/0123{name}").open("r+b") as file:
                file.truncate(65 * 1024**3 + number)  # sparse: no block of it is written
        (user_shell.folder / node / "root/proc").mkdir(parents=True)
        (user_shell.folder / node / "root/proc/meminfo").write_text(meminfo)
        env = f"env: {{SPARKWRIGHT_SYSROOT: {user_shell.folder}/{node}/root}}"
        cluster = cluster.replace(f"{{name: {node},", f"{{name: {node}, {env},")
    (user_shell.folder / "cluster.yaml").write_text(cluster)
    (user_shell.folder / "m2.yaml").write_text(FP8)
    code, out, err = user_shell.run("plan", "./m2.yaml")
    assert (code, err) == (1, "")
    assert "MEM001" in out
    cheapest = out.partition("what does fit, cheapest first")[2].splitlines()[1]
    assert cheapest.strip().startswith("1. model.id: lukealonso/MiniMax-M2.7-NVFP4")
