"""`plan` and `up` on node entries that are this machine, with its real memory: the gate, its remedies, the search."""

import json
import shlex
from pathlib import Path

import pytest

from functional.command import UserShell

CONFIG = json.loads((Path(__file__).parents[1] / "data" / "models" / "qwen3-8b.config.json").read_text())
SMALL = {"num_hidden_layers": 2, "hidden_size": 512, "intermediate_size": 1024, "vocab_size": 4096}
RECIPE = """title: x
model: {path: m}
engine: {name: vllm, version: 0.21.0, runtime: process}
nodes: 1
"""
# A token takes 8 KiB: 40,960 of them 320 MiB.
TOO_SMALL = {"memory_fraction": 0.4, "context": 40960, "kv_cache_bytes": 64 << 20}


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    """Two nodes that are this machine, and a model of 2 layers on it."""
    folder = tmp_path / "models" / "m"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | SMALL))
    write_sparse_model(folder / "model.safetensors", 48 << 20)
    entry = "  - {{name: {0}, ssh: local, paths: {{state: {1}/state-{0}, models: {1}/models}}}}\n"
    (tmp_path / "cluster.yaml").write_text("head: a\nnodes:\n" + "".join(entry.format(n, tmp_path) for n in "ab"))
    return UserShell(tmp_path)


def write_sparse_model(path: Path, size: int) -> None:
    """A sparse safetensors file whose header promises one tensor of so many bytes."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with path.open("r+b") as sparse:
        sparse.truncate(8 + len(header) + size)


def plan(shell: UserShell, serving: dict[str, float], *words: str) -> dict[str, object]:
    (shell.folder / "r.yaml").write_text(f"{RECIPE}serving: {json.dumps(serving)}\n")
    _, out, err = shell.run("plan", "./r.yaml", "--json", *words)
    assert out, err
    found: dict[str, object] = json.loads(out)
    return found


def memory_codes(found: dict[str, object]) -> list[str]:
    findings = found["findings"]
    assert isinstance(findings, list)
    return [finding["code"] for finding in findings if finding["code"].startswith("MEM")]


@pytest.mark.full
def test_what_is_proposed_holds(user_shell: UserShell) -> None:
    """A pool of 64 MiB is too small for one sequence: each remedy passes once it is written into the recipe."""
    refused = plan(user_shell, TOO_SMALL)
    assert memory_codes(refused) == ["MEM003"]
    remedies = refused["remedies"]
    assert isinstance(remedies, list)
    assert [list(remedy["keys"]) for remedy in remedies[:2]] == [["serving.kv_cache_bytes"], ["serving.context"]]
    for remedy in remedies[:2]:
        changed = {key.removeprefix("serving."): value for key, value in remedy["keys"].items()}
        assert memory_codes(plan(user_shell, TOO_SMALL | changed)) == []


def test_up_prints_what_does_fit(user_shell: UserShell) -> None:
    """The refusal ends with the way on; going past it needs a reason."""
    (user_shell.folder / "r.yaml").write_text(f"{RECIPE}serving: {json.dumps(TOO_SMALL)}\n")
    code, _, err = user_shell.run("up", "./r.yaml")
    assert code == 1, err
    assert "what does fit, cheapest first\n  1. serving.kv_cache_bytes: 1 GiB\n" in err
    code, _, err = user_shell.run("up", "./r.yaml", "--force")
    assert code == 2 and "--force needs a reason" in err


@pytest.mark.full
def test_the_search_finds_the_models_longest_context(user_shell: UserShell) -> None:
    """A tiny model has room for all that its config allows; the text has the YAML to paste."""
    words = shlex.split("plan ./r.yaml --optimize context")
    (user_shell.folder / "r.yaml").write_text(f"{RECIPE}serving: {{context: 2048, memory_fraction: 0.5}}\n")
    _, out, err = user_shell.run(*words)
    assert f"    context: {CONFIG['max_position_embeddings'] // 4096 * 4096}\n" in out, err
    _, out, _ = user_shell.run(*words, "--json")
    best = json.loads(out)["best"]
    assert best["fits"] and best["context"] == CONFIG["max_position_embeddings"] // 4096 * 4096


def test_two_recipes_are_compared(user_shell: UserShell) -> None:
    """Side by side as text and as JSON; options that are of one plan only are refused."""
    (user_shell.folder / "r.yaml").write_text(f"{RECIPE}serving: {{context: 4096, memory_fraction: 0.4}}\n")
    (user_shell.folder / "wide.yaml").write_text(RECIPE.replace("nodes: 1", "nodes: 3\nparallelism: {tp: 3}"))
    _, out, _ = user_shell.run("plan", "./r.yaml", "./wide.yaml", "twin")
    assert out.split("\n")[0].split() == ["r", "wide", "twin"] and "wants 3 nodes, cluster" in out
    _, out, _ = user_shell.run("plan", "./r.yaml", "twin", "--json")
    first, second = json.loads(out)["plans"]
    assert first["verdict"]["kv"]["tokens"] > 4096 and second["simulated"]
    code, _, err = user_shell.run("plan", "./r.yaml", "twin", "--optimize", "context")
    assert code == 2 and "without --optimize" in err


def test_the_checkpoint_that_fits_has_been_on_the_disk_all_along(user_shell: UserShell) -> None:
    """Report 001: the recipe names a form of the model that is too large; the other one lies next to it."""
    models = user_shell.folder / "models"
    write_sparse_model(models / "m" / "model.safetensors", 1 << 40)
    (models / "m-small").mkdir()
    (models / "m-small" / "config.json").write_text((models / "m" / "config.json").read_text())
    write_sparse_model(models / "m-small" / "model.safetensors", 48 << 20)
    found = plan(user_shell, {"context": 4096, "memory_fraction": 0.4})
    remedies = found["remedies"]
    assert isinstance(remedies, list)
    assert memory_codes(found) == ["MEM001"]
    assert [remedy["keys"].get("model.path") for remedy in remedies] == [str(models / "m-small")]
