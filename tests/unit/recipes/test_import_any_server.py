"""Imports for engines that a file describes, and for servers that nobody described: `engine: custom`."""

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Mod, Runtime
from sparkwright.engines.catalog import imagined_ranks, rehearse
from sparkwright.engines.mods import shell_text
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import import_recipe
from sparkwright.recipes.load import load_recipe

ATLAS = """recipe_version: "2"
model: org/Model-NVFP4
runtime: atlas
container: avarok/atlas-gb10:latest
min_nodes: 2
defaults:
  port: 8888
  host: 0.0.0.0
  tensor_parallel: 1
  ep_size: 2
  max_model_len: 12288
  max_batch_size: 1
  kv_cache_dtype: bf16
  gpu_memory_utilization: 0.90
  enable_prefix_caching: true
  speculative: false
  served_model_name: m
"""


def read(text, source="given.yaml", beside=lambda name: None):
    made = import_recipe(text, source, ImportOptions(), beside)
    assert made.errors == ()
    return load_recipe(made.text, "made.yaml"), made


def rank_lines(recipe):
    return [" ".join((*(rank.entrypoint or ()), *rank.argv)) for rank in imagined_ranks(recipe)]


def test_defaults_of_an_atlas_recipe_become_its_options():
    """sparkrun has no command for them either: it makes the same options (its runtimes/atlas.py)."""
    recipe, _ = read(ATLAS)
    assert recipe.engine.name == "atlas" and recipe.nodes == 2 and not recipe.engine.version
    more = (
        "--max-seq-len 12288 --kv-cache-dtype bf16 --gpu-memory-utilization 0.9 --ep-size 2 --max-batch-size 1 "
        "--enable-prefix-caching"
    )
    head, worker = rank_lines(recipe)
    ranks = "--rank {} --world-size 2 --master-addr 192.0.2.1 --master-port "
    assert set(head.split()) >= set(f"spark serve org/Model-NVFP4 --model-name m {more}".split())
    assert ranks.format(0) in head and ranks.format(1) in worker and "--port 0" in worker
    assert "--speculative" not in head and "--host" not in head and "--tp-size" not in head
    assert not [found for found in rehearse(recipe) if found.severity == "block"]


@pytest.mark.parametrize(
    "line",
    [
        "docker run --gpus all --network host avarok/atlas-gb10:latest serve org/M --port 8888 --max-seq-len 65536 "
        "--speculative --num-drafts 2 --tool-call-parser qwen3_coder",
        "spark serve org/M --port 8888 --max-seq-len 65536 --speculative --num-drafts 2 "
        "--tool-call-parser=qwen3_coder --rank 0 --world-size 1",
    ],
)
def test_a_line_of_a_described_engine(line):
    recipe, _ = read(line + "\n", "run.sh")
    assert (recipe.engine.name, recipe.model.id, recipe.serving.port) == ("atlas", "org/M", 8888)
    assert (recipe.serving.context, recipe.parsers.tool) == (65536, "qwen3_coder")
    assert recipe.flags == {"speculative": True, "num-drafts": 2}


def test_tensorfold_is_read_from_its_own_words():
    recipe, _ = read("tensorfold serve /m/glm --context 262144 --parallel 4 --name glm --mtp-drafts 3\n", "a.sh")
    assert (recipe.engine.name, recipe.engine.runtime) == ("tensorfold", Runtime.PROCESS)
    assert (recipe.serving.context, recipe.serving.sequences, recipe.model.served_name) == (262144, 4, "glm")
    assert recipe.flags == {"mtp-drafts": 3}


def test_tensorfold_s_version_is_read_from_the_tag_and_its_name_from_the_image():
    line = "docker run --gpus all ghcr.io/own/glm-tensorfold:v0.6.0-a1897d591f70 {} --context 4096 --port 8000\n"
    for words in ("tensorfold serve org/m", "serve org/m"):
        recipe, made = read(line.format(words), "run.sh")
        assert (recipe.engine.name, recipe.engine.version) == ("tensorfold", "0.6.0"), made.notes
    assert any("0.6.0 is written: the image's tag names it" in note for note in made.notes)


def test_a_server_that_nobody_knows_is_custom():
    recipe, made = read(
        "docker run --gpus all -v /w:/data -e MODE=fast own/speech:1 speech-serve --model org/voice --port 9000 "
        "--host 0.0.0.0 --served-model-name v --template '{x}'\n",
        "run.sh",
    )
    assert recipe.engine.name == "custom" and recipe.engine.image == "own/speech:1"
    assert (recipe.model.id, recipe.model.served_name, recipe.serving.port) == ("org/voice", "v", 9000)
    assert recipe.env == {"MODE": "fast"} and recipe.mounts == ("/w:/data",)
    (line,) = rank_lines(recipe)
    assert line.startswith("speech-serve --model org/voice --port ") and line.endswith(
        "--served-model-name v --template {x}"
    )
    assert any("speech-serve is no engine that sparkwright knows" in note for note in made.notes)


def test_a_compose_service_that_nobody_knows_is_custom_with_its_port_in_a_variable():
    recipe, _ = read(
        "services:\n  tts:\n    image: own/tts:2\n    command: [tts-server, --model, /models/v.gguf]\n"
        "    environment: {PORT: 8123, HOST: 0.0.0.0}\n    volumes: ['/srv/models:/models']\n"
    )
    assert recipe.engine.name == "custom" and recipe.serving.port == 8123 and recipe.env == {}
    assert recipe.model.path == "/srv/models/v.gguf"
    (rank,) = imagined_ranks(recipe)
    assert rank.env["PORT"] == str(dict(rank.listens).get("127.0.0.1")) and rank.argv == ("--model", "/models/v.gguf")


def test_several_commands_before_an_unknown_server_stay_one_shell():
    text = "model: org/m\ncontainer: own/x:1\ncommand: |\n  python fix.py && own-serve --port {port} {model}\n"
    recipe, _ = read(text + "runtime: own\nenv: {PORT: 8000}\ndefaults: {port: 8000}\n")
    assert rank_lines(recipe) == ["bash -c python fix.py && own-serve --port 8000 org/m"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("model: org/m\nruntime: own\ncontainer: own/x:1\ndefaults: {port: 1}\n", "gives no command to start it"),
        ("model: org/m\nruntime: own\ncontainer: own/x:1\ncommand: own-serve {model}\n", "on which port it listens"),
        ("model: org/m\nruntime: own\ncluster_only: true\ncommand: own-serve --port 1\n", "on several nodes"),
    ],
)
def test_what_an_unknown_server_lacks_is_the_reason(text, why):
    with pytest.raises(RecipeError, match=why):
        read(text)


def test_the_one_container_of_a_script_that_starts_an_engine_is_taken():
    """An owner's switch script starts the engine, and a dashboard after it."""
    recipe, made = read(
        "docker run -d --gpus all vllm/vllm-openai:v0.27.1 org/m --port 8000\n"
        "docker run -d --network host own/dashboard:1\n",
        "switch.sh",
    )
    assert (recipe.engine.name, recipe.model.id) == ("vllm", "org/m")
    assert any("own/dashboard" in note and "left out" in note for note in made.notes)


def test_a_command_over_ssh_and_one_that_a_variable_holds():
    recipe, made = read("ssh -p 22 me@spark-1 'docker run vllm/vllm-openai:v0.27.1 org/m --max-num-seqs 4'\n", "a.sh")
    assert recipe.serving.sequences == 4 and any("over ssh" in note for note in made.notes)
    text = 'N=${M:-"4"}\nCMD="vllm serve org/m --max-num-seqs $N"\n'
    text += 'if [ $A -gt 0 ]; then CMD="$CMD --cpu-offload-gb 2"; fi\n'
    recipe, made = read(text + "exec $CMD\n", "a.sh")
    assert recipe.serving.sequences == 4 and not recipe.flags
    assert any(note.startswith("${CMD}: left out") for note in made.notes)


def test_a_block_size_without_dspark_stays_its_own_option():
    line = "python -m sglang.launch_server --model-path org/m --speculative-algorithm EAGLE "
    recipe, _ = read(line + "--speculative-dspark-block-size 7 --speculative-num-draft-tokens 8\n", "a.sh")
    (rank,) = imagined_ranks(recipe)
    said = " ".join(rank.engine_words)
    assert "--speculative-dspark-block-size 7" in said and "--speculative-num-draft-tokens 8" in said


TEMPLATE_MOD = """model: org/m
runtime: vllm
container: own/vllm:0.27.1
mods: [mods/fix-chat-template]
command: vllm serve {model} --chat-template TARGET
"""
COPIES = "#!/bin/bash\n# for tools\nset -e\ncp t.jinja $WORKSPACE_DIR/fixed.jinja\n"
COPIES += 'echo "===> use --chat-template fixed.jinja"\n'


def recipe_with_mod(target, script):
    files = {"run.sh": script, "t.jinja": "{{ messages }}", "README.md": "x"}
    made = import_recipe(TEMPLATE_MOD.replace("TARGET", target), "r.yaml", ImportOptions(), folder=lambda name: files)
    assert made.errors == ()
    return load_recipe(made.text, "made.yaml")


def test_a_mod_that_only_copies_the_chat_template_runs_no_script():
    recipe = recipe_with_mod("fixed.jinja", COPIES)
    (mod,) = recipe.mods
    assert mod.script == "" and dict(mod.files) == {"t.jinja": "{{ messages }}"}
    assert recipe.parsers.chat_template == "/workspace/mods/fix-chat-template/t.jinja"
    assert not mod.is_code and Mod("m", {"a.py": "x"}, "").is_code
    assert "run.sh" not in shell_text(recipe.mods) and "/fix-chat-template/t.jinja" in shell_text(recipe.mods)


@pytest.mark.parametrize(
    ("target", "script"),
    [
        ("other.jinja", COPIES),
        ("fixed.jinja", COPIES + "pip install x\n"),
        ("fixed.jinja", COPIES + "cp b $WORKSPACE_DIR/b\n"),
    ],
)
def test_a_mod_that_does_more_keeps_its_script(target, script):
    recipe = recipe_with_mod(target, script)
    assert recipe.mods[0].script == "run.sh" and recipe.parsers.chat_template == target
