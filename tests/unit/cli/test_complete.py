"""Shell completion through `run`, as the scripts of bash and fish call it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fakes.runs import CONDITIONS
from sparkwright.adapters.recipe_sources import RecipeSources
from sparkwright.cli.main import run
from sparkwright.domain.run import Run
from sparkwright.domain.workload import Workload
from sparkwright.wiring import places, run_store, shell_names


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> Any:
    """The values that a line completes to, in a home of the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "SPARKWRIGHT_CLUSTER"):
        monkeypatch.delenv(name, raising=False)

    def completing(line: str) -> list[str]:
        monkeypatch.setenv("_SPARKWRIGHT_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_LINE", line)
        code = run([])
        monkeypatch.delenv("_SPARKWRIGHT_COMPLETE")
        said = capsys.readouterr()
        assert (code, said.err) == (0, "")
        return said.out.split()

    return completing


ROWS = (
    ("sparkwright res", ["plain,restart"]),
    ("sparkwright plan deepseek-v4-flash@2", ["plain,deepseek-v4-flash@256k"]),
    ("sparkwright up gpt-oss-20", ["plain,gpt-oss-20b", "file,"]),
    ("sparkwright plan deepseek-v4-flash --profile 5", ["plain,512k"]),
    ("sparkwright explain DRV001", ["plain,DRV001"]),
    ("sparkwright explain drv001", ["plain,DRV001"]),
    ("sparkwright check --ignore MEM009", ["plain,MEM009"]),
    ("sparkwright explain gloo-wrong", ["plain,gloo-wrong-interface-loopback"]),
    ("sparkwright connect claude", ["plain,claude-code"]),
    ("sparkwright bench --workload agentic-q", ["plain,agentic-quick", "file,"]),
    ("sparkwright eval probes --probe tool-st", ["plain,tool-stream"]),
    ("sparkwright status x", []),
    ("sparkwright runs show x", []),
    ("sparkwright --deb", ["plain,--debug"]),
)


def test_names_are_completed(complete: Any) -> None:
    """Recipes, profiles, codes, clients, workloads and probes; nothing on stderr and exit code 0."""
    assert {line: complete(line) for line, _ in ROWS} == dict(ROWS)


def test_recipes_of_a_registry_are_completed(complete: Any, tmp_path: Path) -> None:
    """SOURCE/NAME of those that can be used, from the copy that the last update made."""
    (tmp_path / "registry/recipes").mkdir(parents=True)
    line = "command: vllm serve {model}\n"
    text = 'recipe_version: "2"\nmodel: org/name\nruntime: vllm\ncontainer: vllm/vllm-openai:v0.26.0\n'
    (tmp_path / "registry/recipes/good.yaml").write_text(text + line)
    (tmp_path / "registry/recipes/odd.yaml").write_text(text.replace("vllm\n", "other\n", 1) + line)
    where = places()
    RecipeSources(where.sources, where.cwd).add("registry", "mine", lambda recipes, path: ())
    assert complete("sparkwright plan mine/") == ["plain,mine/good", "file,"]
    assert "plain,mine/good" in complete("sparkwright recipes import m")


def test_runs_and_tags_are_completed(complete: Any) -> None:
    """The names come from this machine's store, newest first."""

    async def add() -> None:
        store = run_store()
        await store.add(Run("r-20260101-aaaa", 1.0, Workload("quick", "", ()), CONDITIONS, tags=("before",)))
        await store.aclose()

    asyncio.run(add())
    assert complete("sparkwright runs show r-2") == ["plain,r-20260101-aaaa"]
    assert complete("sparkwright compare be") == ["plain,before"]
    assert complete("sparkwright bench --resume la") == ["plain,last"]


def test_deployments_are_completed_for_their_cluster(complete: Any, tmp_path: Path) -> None:
    """Names as last seen; of the cluster that the line means, and no words that are no names."""
    (tmp_path / "cluster.yaml").write_text("name: lab\nnodes: [spark-1]\n")
    shell_names().keep_deployments("lab", ["two", "one"])
    shell_names().keep_deployments("other", ["three"])
    assert complete("sparkwright down ") == ["plain,one", "plain,two"]
    assert complete("sparkwright diagnose tw") == ["plain,two", "file,"]
    next((tmp_path / ".cache/sparkwright/completion").glob("deployments-lab*")).write_text('{"names": ["$(x)", 3]}')
    assert complete("sparkwright down ") == []


def test_bash_replaces_only_what_follows_a_word_break(complete: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bash that splits words at @ gets the rest of the word."""
    monkeypatch.setenv("COMP_WORDBREAKS", " \t\n\"'@><=;|&(:")
    assert complete("sparkwright plan deepseek-v4-flash@2") == ["plain,256k"]


def test_fish_and_zsh_are_answered(complete: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Both give their words in variables of click's scripts."""
    monkeypatch.setenv("COMP_WORDS", "sparkwright plan gpt-oss-1")
    for shell, word, wanted in (("fish", "gpt-oss-1", "plain,gpt-oss-120b"), ("zsh", "2", "plain\ngpt-oss-120b")):
        monkeypatch.setenv("_SPARKWRIGHT_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_CWORD", word)
        assert run([]) == 0
        assert wanted in capsys.readouterr().out
        monkeypatch.setenv("_SPARKWRIGHT_COMPLETE", f"{shell}_source")
        assert run([]) == 0
        assert "_sparkwright_completion" in capsys.readouterr().out
