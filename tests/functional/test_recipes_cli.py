# ruff: noqa: E501 (whole messages, one a line)
"""`sparkwright recipes`: list, show and validate as a user meets them."""

import json

import pytest
from click.testing import CliRunner

from sparkwright.cli.main import main
from sparkwright.cli.recipes import recipes
from sparkwright.domain.errors import RecipeError

GOOD = "title: mine\nmodel: {id: a/b}\nengine: {name: vllm, version: 0.21.0, runtime: process}\n"


@pytest.fixture
def call_recipes(tmp_path, monkeypatch):
    """Runs `recipes ...` in an empty folder with an empty home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # As under `sparkwright`: a command keeps the help option of its first call in a process, and docs are made of it.
    return lambda *words: CliRunner().invoke(recipes, words, **main.context_settings)


def write_own_recipe(tmp_path, name, text):
    folder = tmp_path / "home/.config/sparkwright/recipes"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_list(call_recipes):
    """One plain line for each recipe, nothing cut off."""
    result = call_recipes("list")
    assert result.exit_code == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["NAME", "ENGINE", "NODES", "PROFILES", "STATE", "TITLE"]
    assert lines[1].split()[:7] == ["deepseek-v4-flash", "vllm", "0.21.1", "2", "1m", "512k", "256k*"]
    assert "ready, simulated" in next(line for line in lines if line.startswith("simulator "))
    assert "\x1b" not in result.stdout
    assert lines[-2].startswith("  deepseek-v4-flash-sglang: FlashMLA's sparse decode has no sm_121 build")
    assert lines[-2].endswith(" Instead: deepseek-v4-flash")


def test_list_as_json(call_recipes):
    """The same for machines."""
    data = json.loads(call_recipes("list", "--json").stdout)
    rows = {row["name"]: row for row in data["recipes"]}
    assert {"deepseek-v4-flash", "minimax-m2.7-nvfp4", "simulator"} <= set(rows)
    first = rows["deepseek-v4-flash"]
    refused = rows["minimax-m2.7-fp8-sglang"]
    assert (refused["state"], refused["instead"]) == ("refused", "minimax-m2.7-nvfp4")
    assert (
        refused["reason"].startswith("It neither fits nor starts: ")
        and first["model"] == "deepseek-ai/DeepSeek-V4-Flash"
    )
    assert (first["engine"], first["nodes"], first["profiles"], first["state"], first["origin"]) == (
        "vllm", 2, ["1m", "512k", "256k"], "ready", "shipped",
    )  # fmt: skip
    assert data["broken"] == []


def test_a_broken_own_recipe_hides_no_other(call_recipes, tmp_path):
    """It is reported on stderr; the list stays."""
    write_own_recipe(tmp_path, "bad.yaml", "title: 1\nmax_model_len: 3\n")
    write_own_recipe(tmp_path, "good.yaml", GOOD)
    result = call_recipes("list")
    assert result.exit_code == 0
    assert "good " in result.stdout and "bad" not in result.stdout
    assert (
        "~/.config/sparkwright/recipes/bad.yaml:2: unknown key `max_model_len`; did you mean `serving.context`?"
        in result.stderr
    )
    assert json.loads(call_recipes("list", "--json").stdout)["broken"][0]["name"] == "bad"


def test_show(call_recipes):
    """Everything: state with reason, licence, flags, figures with conditions and source, notes."""
    text = call_recipes("show", "deepseek-v4-flash@1m").stdout
    for part in (
        "state     ready: Two independent owners",
        "license   Weights: MIT",
        "context          1,000,000 tokens",
        "  context 1,000,000, 6 sequences, memory fraction 0.80, vLLM 0.23.1rc1.dev407 (PR 41834) [1]\n"
        "    KV pool                           1,430,000 tokens\n",
        "  [1] https://forums.developer.nvidia.com/t/374742\n",
        "  pp1024 tg128, memory fraction 0.82, this image [2]\n",
        "    decode, one stream, depth 0        45.7 tokens/s\n",
        "  512k  serving.context 524,288, serving.sequences 16\n",
        "build's own  VLLM_USE_B12X_MOE\n",
        '  --default-chat-template-kwargs {"thinking":true,"reasoning_effort":"high"}\n',
        "load    usually 3 min 50 s, stuck after 3 min 00 s without progress",
        "UCX: the guide 374742",
        "https://github.com/GanyX19/deepseek-v4-1m-on-dgx-spark",
    ):
        assert part in text, part
    assert call_recipes("show", "deepseek-v4-flash", "--profile", "1m").stdout == text


def test_show_of_a_refused_one(call_recipes):
    """Reason and alternative are at the top."""
    text = call_recipes("show", "minimax-m2.7-fp8-sglang").stdout
    assert "state    refused: It neither fits nor starts: about 115 GB" in text
    assert "instead  minimax-m2.7-nvfp4\n" in text


@pytest.mark.parametrize("name", ["minimax-m2.7-nvfp4", "minimax-m2.7-nvfp4@agentic"])
def test_show_reports_what_the_other_profiles_change(call_recipes, name):
    """The profile is found by name, by NAME@PROFILE and by --profile alike."""
    other = "stable" if name.endswith("agentic") else "agentic"
    told = (
        "no speculation.method, no speculation.tokens"
        if other == "stable"
        else "speculation.method ngram, speculation.tokens 5"
    )
    assert f"  {other}  {told}\n" in call_recipes("show", name).stdout


def test_show_reports_simulated(call_recipes):
    """Every screen of the simulator reports it."""
    assert "simulated  yes: no model runs, every figure is made up" in call_recipes("show", "twin").stdout


def test_show_as_json(call_recipes):
    """The resolved recipe: bytes and seconds as numbers."""
    data = json.loads(call_recipes("show", "deepseek-v4-flash@512k", "--json").stdout)
    assert (data["profile"], data["serving"]["context"], data["model"]["size"]) == ("512k", 524288, 149000000000)
    assert data["phases"]["load"] == {"usual": 230.0, "stuck_after": 180.0}
    assert data["published"][0]["value"] == 1180000.0 and len(data["hash"]) == 12


def test_show_reference(call_recipes):
    """The manual is in the program."""
    assert call_recipes("show", "--reference").stdout.startswith("# The recipe reference")
    assert call_recipes("show", "--reference", "cluster").stdout.startswith("# The cluster file reference")
    assert isinstance(call_recipes("show", "--reference", "nodes").exception, RecipeError)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "nope"), "recipe 'nope' does not exist"),
        (("show", "twin@nope"), "shipped/simulator.yaml:37: profile 'nope' does not exist; profiles of this recipe: one-node, docker"),
        (("show",), "which recipe? `sparkwright recipes show NAME`"),
    ],
)  # fmt: skip
def test_show_what_is_not_there(call_recipes, words, message):
    """A RecipeError, which main turns into exit code 2."""
    error = call_recipes(*words).exception
    assert isinstance(error, RecipeError) and error.message == message and error.exit_code == 2


def test_validate(call_recipes, tmp_path):
    """Files and names side by side; exit code 2 when one is wrong, each error on its line."""
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(GOOD + "serving: {port: 80, contxt: 1}\n")
    assert call_recipes("validate", "./good.yaml", "twin").exit_code == 0
    result = call_recipes("validate", "./good.yaml", "./bad.yaml", "nope", "twin@nope")
    assert result.exit_code == 2
    assert result.stdout.splitlines()[1:] == [
        "./bad.yaml:4: `serving.port`: found 80; allowed 1024..65535: ports below 1024 belong to root, and TCP ends at 65535",
        "./bad.yaml:4: unknown key `serving.contxt`; did you mean `serving.context`?",
        "recipe 'nope' does not exist",
        "shipped/simulator.yaml:37: profile 'nope' does not exist; profiles of this recipe: one-node, docker",
    ]
    assert result.stdout.startswith("./good.yaml: valid (hash ")
    assert "./bad.yaml: 2 errors; `sparkwright recipes show --reference` explains every key" in result.stderr


SGLANG = """name: mine
title: Mine
model: {path: /models/m}
engine: {name: sglang, version: 0.5.12, image: "x:1", image_note: a test}
serving: {kv_dtype: fp9}
flags: {gpu-memory-utilization: 0.8}
env: {SGLANG_DISABLE_CUDA_GRAPH: 1}
"""


def test_validate_asks_the_engines_own_flags(call_recipes, tmp_path):
    """Another engine's word, a value, and a variable that this version does not read: each names the right one."""
    (tmp_path / "mine.yaml").write_text(SGLANG)
    result = call_recipes("validate", "./mine.yaml")
    assert result.exit_code == 2
    lines = {line.split()[1]: line for line in result.stdout.splitlines()}
    assert lines["ENG001"].endswith("did you mean --mem-fraction-static? (it is set by `serving.memory_fraction`)")
    assert "--kv-cache-dtype does not take 'fp9'" in lines["ENG002"]
    assert "--disable-cuda-graph" in lines["ENG008"]


SPLIT = """title: Mine
model: {id: a/b, shape: {layers: 2, heads: 25, kv_heads: 5}}
engine: {name: sglang, version: 0.5.12, image: "x:1", image_note: a test}
nodes: 2
"""


def test_validate_looks_at_the_split(call_recipes, tmp_path):
    """The shape is in the recipe: a tp that does not divide the heads is known without any node."""
    (tmp_path / "r.yaml").write_text(f"{SPLIT}parallelism: {{tp: 2}}\n")
    result = call_recipes("validate", "./r.yaml")
    assert (
        result.exit_code == 2
        and "PAR001 tp 2 is not possible for this model (tp 2 does not divide 25 query heads" in result.stdout
    )


def test_a_warning_is_called_one(call_recipes, tmp_path):
    """Next to `valid` a line of its own must not read like an error."""
    (tmp_path / "r.yaml").write_text(f"{SPLIT}parallelism: {{pp: 2}}\n".replace("0.5.12", "0.5.11"))
    result = call_recipes("validate", "./r.yaml")
    assert result.exit_code == 0 and result.stdout.startswith("./r.yaml: valid")
    assert all(
        line.startswith(("warning: ./r.yaml: ENG0", "note: ./r.yaml: ENG005")) for line in result.stderr.splitlines()
    )
    assert {line.partition(":")[0] for line in result.stderr.splitlines()} == {"warning", "note"}


def test_validate_as_json(call_recipes, tmp_path):
    """Each result with its errors; the exit code stays."""
    (tmp_path / "bad.yaml").write_text("title: [1\n")
    result = call_recipes("validate", "twin", "bad.yaml", "--json")
    data = json.loads(result.stdout)["results"]
    assert result.exit_code == 2
    assert [row["valid"] for row in data] == [True, False]
    assert data[0]["profiles"] == ["one-node", "docker"]
    assert data[1]["errors"][0].startswith("bad.yaml:2:1: this is no YAML")
