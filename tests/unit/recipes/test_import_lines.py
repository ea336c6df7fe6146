"""Command lines, scripts, Compose files, units and running containers become recipes, or are refused with the line."""

import json

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.catalog import imagined_ranks, rehearse
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import Imported, import_recipe
from sparkwright.recipes.load import load_recipe
from unit.for_each import for_each

NOTHING: dict[str, str] = {}


def read(text: str, file: str = "theirs.sh", beside: dict[str, str] = NOTHING, **options) -> tuple[Recipe, Imported]:
    made = import_recipe(text, file, ImportOptions(**options), beside.get)
    assert made.errors == (), made.text
    return load_recipe(made.text, f"{made.name}.yaml"), made


DOCKER = """docker run -it --rm --gpus all -p 8001:8000 --ipc=host --shm-size 32g -e HF_TOKEN=$HF_TOKEN \\
  -e VLLM_USE_V1=1 -v ~/.cache/huggingface:/root/.cache/huggingface -v /data/models:/models:ro -v /opt/t:/t \\
  vllm/vllm-openai:v0.30.0 --model /models/qwen --max-model-len 128k -O3 -tp 2 -ep -dcp 2 \\
  --compilation-config.cudagraph_mode none --no-enable-prefix-caching --chat-template /t/x.jinja
"""


def test_a_docker_run_line() -> None:
    """Image, port, shm, mounts and variables; the image starts vLLM itself, and the model's folder is the host's."""
    recipe, made = read(DOCKER)
    assert (recipe.engine.name, recipe.engine.version, recipe.engine.image) == (
        "vllm",
        "0.30.0",
        "vllm/vllm-openai:v0.30.0",
    )
    assert recipe.model.path == "/data/models/qwen" and recipe.serving.port == 8001 and recipe.serving.context == 128000
    assert recipe.mounts == ("/opt/t:/t",) and recipe.shm_bytes == 32 * 1024**3 and recipe.env == {"VLLM_USE_V1": "1"}
    assert recipe.flags == {
        "optimization-level": 3,
        "decode-context-parallel-size": 2,
        "compilation-config.cudagraph_mode": "none",
        "enable-prefix-caching": False,
    }
    assert recipe.parallelism.tp == 2 and recipe.parallelism.ep and recipe.parsers.chat_template == "/t/x.jinja"
    assert any("HF_TOKEN" in note for note in made.notes)


@for_each(
    "text, engine, model",
    [
        ("vllm serve org/name --port 8000\n", "vllm", "org/name"),
        ("python3 -m vllm.entrypoints.openai.api_server --model org/name\n", "vllm", "org/name"),
        ("python -m sglang.launch_server --model-path org/name --tp 1\n", "sglang", "org/name"),
        ("trtllm-serve serve org/name --max_batch_size 4\n", "trtllm", "org/name"),
        ("trtllm-serve org/name\n", "trtllm", "org/name"),
        ("CUDA_VISIBLE_DEVICES=0 nohup /home/u/venv/bin/vllm serve org/name &\n", "vllm", "org/name"),
        ("llama-server -m /models/a.gguf -c 8192 -ngl 99 --jinja\n", "llama-cpp", "/models/a.gguf"),
    ],
)
def test_a_line_without_a_container(text: str, engine: str, model: str) -> None:
    """Each engine's own command runs as a process, from the virtual environment that the line names."""
    recipe, _ = read(text)
    assert (recipe.engine.name, recipe.engine.runtime, recipe.model.label) == (engine, Runtime.PROCESS, model)
    assert recipe.engine.venv == ("/home/u/venv" if "venv" in text else "")


def test_what_runs_beside_the_engine_is_named() -> None:
    """A command in the container's own shell, and a program in front of the engine, are never lost in silence."""
    line = "docker run a/b:c bash -c 'pip install x && numactl -N 0 vllm serve org/name --max-num-seqs 4'\n"
    recipe, made = read(line)
    assert recipe.serving.sequences == 4
    assert any("'pip install x' beside the engine" in note for note in made.notes)
    assert any("'numactl -N 0' before the engine" in note for note in made.notes)


def test_a_script_that_ends_in_a_command() -> None:
    """Variables, defaults, exports and continuations are followed; other commands are named and left out."""
    recipe, made = read(
        """#!/bin/bash
set -euo pipefail
MODEL=org/name   # a comment
export VLLM_USE_V1=1
LEN=${LEN:-65536}
mkdir -p /tmp/x
exec vllm serve "$MODEL" --max-model-len ${LEN} \\
  --hf-overrides '{"rope_parameters": {"factor": 4.0}}' > log.txt 2>&1
"""
    )
    assert recipe.model.id == "org/name" and recipe.serving.context == 65536 and recipe.env == {"VLLM_USE_V1": "1"}
    assert recipe.flags == {"hf-overrides": {"rope_parameters": {"factor": 4.0}}}
    assert any(note.startswith("line 6: 'mkdir -p /tmp/x'") for note in made.notes)


TWO_NODES = """services:
  vllm:
    image: ${IMAGE:-example/vllm-ds4:production}
    network_mode: host
    ipc: host
    shm_size: "64gb"
    ulimits: {memlock: -1}
    volumes:
      - ${HF_CACHE:-${HOME}/.cache/huggingface}:/cache/huggingface
    environment:
      VLLM_USE_B12X_MOE: "1"
      NCCL_IB_HCA: "rocep1s0f0"
      NODE_RANK: "${NODE_RANK:?set 0 on head, 1 on worker}"
    command:
      - bash
      - -lc
      - >
        exec /usr/local/bin/own-vllm-entrypoint serve org/name
        --tensor-parallel-size 2 --max-model-len $LEN
        --speculative-config '{"method":"mtp","num_speculative_tokens":2}'
        --default-chat-template-kwargs.reasoning_effort=high
        --nnodes 2 --node-rank ${NODE_RANK} --master-addr ${MASTER_ADDR} ${HEADLESS:+--headless}
"""


def test_a_compose_file_for_two_nodes() -> None:
    """One file for both nodes: what differs from node to node is the launcher's, the image's program is kept."""
    recipe, made = read(TWO_NODES, "compose.yaml", {".env": "LEN=1000000\n# a comment\n"})
    assert (recipe.nodes, recipe.parallelism.tp, recipe.serving.context) == (2, 2, 1_000_000)
    assert recipe.engine.entrypoint == ("/usr/local/bin/own-vllm-entrypoint",)
    assert recipe.env == {"VLLM_USE_B12X_MOE": "1"} and recipe.mounts == () and recipe.shm_bytes == 64 * 1024**3
    assert recipe.flags == {"default-chat-template-kwargs.reasoning_effort": "high"}
    assert (recipe.speculation.method, recipe.speculation.tokens) == ("mtp", 2)
    assert any("own-vllm-entrypoint" in note for note in made.notes)


def test_a_compose_file_with_two_services() -> None:
    """The one that starts the engine is read, the other is named; of two engines one has to be chosen."""
    text = """services:
  llm: {image: "vllm/vllm-openai:v0.30.0", command: --model org/name --port 8000, ports: ["8000:8000"]}
  ui: {image: "ghcr.io/open-webui/open-webui:main", environment: [A=b]}
"""
    recipe, made = read(text, "compose.yaml")
    assert recipe.model.id == "org/name" and any(note.startswith("service ui: left out") for note in made.notes)
    both = text.replace("ghcr.io/open-webui/open-webui:main", "vllm/vllm-openai:v0.30.0")
    with pytest.raises(RecipeError, match=r"2 services start an engine.*llm \(vllm, .*; ui \(vllm"):
        read(both, "compose.yaml")
    assert read(both, "compose.yaml", service="llm")[0].model.id == "org/name"


def test_the_only_engine_among_many_services() -> None:
    """A stack of databases and pages starts one engine; a second one behind a profile is not started by itself."""
    stack = "".join(f"  s{n}: {{image: a/b, command: sleep 1}}\n" for n in range(6))
    engine = "image: 'vllm/vllm-openai:v0.30.0', command: --model org/NAME --port 8000"
    text = f"services:\n{stack}  llm: {{{engine.replace('NAME', 'one')}}}\n"
    recipe, made = read(text, "compose.yaml")
    assert recipe.model.id == "org/one" and sum(note.startswith("service s") for note in made.notes) == 6
    more = f"{text}  big: {{{engine.replace('NAME', 'two')}, profiles: [big]}}\n"
    recipe, made = read(more, "compose.yaml")
    assert recipe.model.id == "org/one" and any("--service big" in note for note in made.notes)
    with pytest.raises(RecipeError, match=r"llm .*; big "):
        read(more.replace(", profiles: [big]", ""), "compose.yaml")


def test_a_systemd_unit() -> None:
    """ExecStart with Environment, several of them, and a continuation."""
    recipe, made = read(
        """[Unit]
Description=vLLM
[Service]
Environment=VLLM_USE_V1=1 "A_B=c d"
Environment=LEN=4096
ExecStartPre=/bin/sleep 5
ExecStart=/opt/venv/bin/vllm serve org/name \\
    --max-model-len ${LEN} --port 8100
Restart=always
[Install]
WantedBy=multi-user.target
""",
        "vllm.service",
    )
    assert recipe.engine.venv == "/opt/venv" and recipe.serving.context == 4096 and recipe.serving.port == 8100
    assert recipe.env["VLLM_USE_V1"] == "1" and recipe.env["A_B"] == "c d"
    assert any(note.startswith("ExecStartPre: left out") for note in made.notes)


def test_a_running_container() -> None:
    """`docker inspect`: command, variables without the image's own, mounts, port, and the version of a label."""
    row = {
        "Config": {
            "Image": "example/fork:latest",
            "Entrypoint": ["vllm", "serve"],
            "Cmd": ["org/name", "--max-num-seqs", "8"],
            "Env": ["VLLM_USE_V1=1", "PATH=/x", "CUDA_VERSION=13.0"],
            "Labels": {"org.opencontainers.image.version": "0.26.0"},
        },
        "HostConfig": {
            "Binds": ["/data:/data:ro"],
            "ShmSize": 2**35,
            "PortBindings": {"8000/tcp": [{"HostPort": "9000"}]},
        },
    }
    recipe, made = read(json.dumps([row]), "stdin")
    assert recipe.model.id == "org/name" and recipe.serving.sequences == 8 and recipe.serving.port == 9000
    assert recipe.engine.version == "0.26.0" and recipe.mounts == ("/data:/data:ro",) and recipe.shm_bytes == 2**35
    assert recipe.env == {"VLLM_USE_V1": "1"} and any("PATH, CUDA_VERSION" in note for note in made.notes)


def test_a_version_is_found_and_the_note_tells_how() -> None:
    """Tag, text, day of a nightly, newest release that knows all options; a release's own tag needs no note."""

    def version(image: str, more: str = "", name: str = "x") -> tuple[str, str]:
        text = (
            f"model: org/name\nname: {name}\nruntime: vllm\ncontainer: {image}\ncommand: vllm serve org/name {more}\n"
        )
        recipe, made = read(text, "theirs.yaml")
        return recipe.engine.version, " ".join(note for note in made.notes if note.startswith("engine.version"))

    assert version("vllm/vllm-openai:v0.26.0-aarch64") == ("0.26.0", "")
    found, why = version("example/other:2026-06-18-v0.24.0-fix-cu13.0.1")
    assert found == "0.24.0" and "tag names it" in why
    found, why = version("example/own", name="for vLLM 0.24.0")
    assert found == "0.24.0" and "name of the source" in why
    found, why = version("example/own:nightly-20260710")
    assert found == "0.24.0" and "2026-07-10" in why
    found, why = version("example/own:latest")
    assert found == "0.33.0" and "know every option" in why


def test_a_forks_own_names_are_declared_and_a_release_has_none() -> None:
    """Options, keys of JSON options and variables that no release has go to extra_*, but not for a release's image."""
    text = """model: org/name
runtime: vllm
container: example/fork:x
env: {VLLM_MY_FORK: "1", VLLM_USE_V1: "1"}
command: vllm serve org/name --my-fork-option 3 --scheduling-policy odd
  --speculative-config '{"method":"mtp","num_speculative_tokens":2,"fork_key":1}'
"""
    recipe, made = read(text, "theirs.yaml")
    assert set(recipe.engine.extra_flags) == {"my-fork-option", "scheduling-policy", "speculative-config.fork_key"}
    assert "VLLM_MY_FORK" in recipe.engine.extra_env
    assert any("is no release of it" in note and "my-fork-option" in note for note in made.notes)
    release, _ = read(text.replace("example/fork:x", "vllm/vllm-openai:v0.30.0"), "theirs.yaml")
    assert release.engine.extra_flags == () and release.engine.extra_env == ()


def test_what_an_author_states_is_kept() -> None:
    """sparkrun's metadata and vLLM's figures become statements of the source in `model`."""
    text = "model: org/name\nruntime: vllm\ncontainer: a/b:c\nmetadata: {model_params: 122B-A10B, model_dtype: nvfp4,"
    recipe, _ = read(text + " num_layers: 48, num_kv_heads: 8, head_dim: 128, kv_dtype: fp8}\n", "theirs.yaml")
    stated = recipe.model.stated
    assert stated and (stated.parameters, stated.active, stated.dtype) == (122 * 10**9, 10 * 10**9, "nvfp4")
    assert (stated.layers, stated.kv_heads, stated.head_dim, stated.kv_dtype) == (48, 8, 128, "fp8")
    text = (
        "model: {model_id: a/b, parameter_count: 550B}\nvariants: {default: {precision: bf16, vram_minimum_gb: 1320}}"
    )
    stated = read(text, "theirs.yaml")[0].model.stated
    assert stated and (stated.parameters, stated.memory, stated.dtype) == (550 * 10**9, 1320 * 10**9, "bf16")


def test_include_and_overrides() -> None:
    """A recipe over another one of the same folder; an override is applied where it holds for GB10 nodes."""
    base = """model: org/name
runtime: vllm
container: a/b:c
defaults: {tensor_parallel: 2, max_model_len: 1024, max_num_seqs: 4}
overrides:
  - {when: {nodes: 2, vendor: nvidia}, defaults: {max_num_seqs: 16}}
  - {when: {arch: sm_90}, defaults: {max_num_seqs: 64}}
command: vllm serve {model} -tp {tensor_parallel} --max-model-len {max_model_len} --max-num-seqs {max_num_seqs}
"""
    outer = "include: base\ndefaults: {max_model_len: 4096}\n"
    recipe, made = read(outer, "theirs.yaml", {"base.yaml": base})
    assert (recipe.serving.context, recipe.serving.sequences, recipe.nodes) == (4096, 16, 2)
    assert any("overrides[1]: left out" in note for note in made.notes)
    with pytest.raises(RecipeError, match=r"base\.yaml is not next to it"):
        read(outer, "theirs.yaml")
    with pytest.raises(RecipeError, match="in a circle"):
        read(outer, "theirs.yaml", {"base.yaml": "include: base\n"})
    with pytest.raises(RecipeError, match="in a registry"):
        read("include: '@x/../../etc'\n", "theirs.yaml")


DOUBLED = "A=xxxxxxxx\n" + "".join("A=$A$A\n" for _ in range(60)) + "vllm serve $A\n"
HOLES = (
    "model: a/b\nruntime: vllm\ndefaults: {a: '{b}{b}{b}{b}', b: " + "x" * 50_000 + "}\ncommand: vllm serve {a}{a}\n"
)
SIX = "services:\n" + "".join(f"  s{n}: {{image: a/b, command: sleep 1}}\n" for n in range(6))


@for_each(
    "text, file, word",
    [
        ("#!/bin/sh\nA=1\nvllm serve org/name | tee log\n", "x.sh", r"x\.sh:3: the engine is part of a pipe"),
        ("vllm serve $(cat model.txt)\n", "x.sh", r"x\.sh:1: .*output of a command"),
        ("\nvllm serve `cat model.txt`\n", "x.sh", r"x\.sh:2: .*output of a command"),
        ("vllm serve 'org/name\n", "x.sh", r"x\.sh:1: a quote .* is not closed"),
        ("if nvidia-smi; then\nvllm serve org/name\nfi\n", "x.sh", r"x\.sh:2: .*under a condition"),
        ("vllm serve a/b\nvllm serve a/c\n", "x.sh", "2 engines are started, in lines 1, 2"),
        ("docker run --no-such a/b vllm serve a/c\n", "x.sh", r"x\.sh:1: docker run: option --no-such"),
        ("docker run --gpus all\n", "x.sh", r"x\.sh:1: docker run names no image"),
        ("ls -l\n", "x.sh", "no engine is started"),
        (SIX, "compose.yaml", r"compose\.yaml:1: no service starts an engine: s0, s1"),
        ("services:\n  a: {image: a/b, command: sleep 1}\n", "compose.yaml", "no service starts an engine"),
        ("services:\n  a: {image: 'a/b\n", "compose.yaml", r"compose\.yaml:3:1"),
        ("[Service]\nExecStart=/bin/sleep 1\n", "x.service", "no engine is started"),
        ("[Service]\n", "x.service", "expected one ExecStart"),
        ("[]", "x.json", "expected"),
        (DOUBLED, "x.sh", "variables fill in more than"),
        (HOLES, "x.yaml", "variables fill in more than"),
        ("if true; then\n" * 9000, "x.sh", "more than 200 branches"),
        ("x" * 300_000, "x.sh", "at most 131072"),
        ("model: a/b\nruntime: vllm\ncommand: uvicorn server:app\n", "x.yaml", "starts no engine"),
        ("name: a\nmodel: {id: a/b}\nengine: {name: vllm}\n", "x.yaml", "a recipe of sparkwright already"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, file: str, word: str) -> None:
    """Pipes, output of commands, half a YAML, six services: a message with file and line, and no recipe."""
    with pytest.raises(RecipeError, match=word):
        import_recipe(text, file, ImportOptions())


def test_arrays_of_a_script() -> None:
    """Options in an array are followed; what a condition adds is named as missing, and does not take the rest away."""
    recipe, made = read(
        """#!/bin/bash
ARGS=(
  --max-model-len 65536   # tokens
  --kv-cache-dtype "fp8"
)
ARGS+=(--max-num-seqs 4)
[[ -n "$FAST" ]] && ARGS+=(--enforce-eager)
MORE=()
MODEL=org/name
[ -n "$OTHER" ] && MODEL=$OTHER
docker run -v "$(pwd)":/workspace a/vllm:1 vllm serve org/name "${ARGS[@]}" ${MORE[@]+"${MORE[@]}"}
"""
    )
    assert (recipe.serving.context, recipe.serving.sequences, recipe.serving.kv_dtype) == (65536, 4, "fp8")
    assert any(note.startswith("${ARGS}: left out, it has no value in the source") for note in made.notes)
    assert not any("[[" in note or "FAST" in note for note in made.notes), "a test is no command of its own"
    assert any("${PWD}:/workspace is left out" in note for note in made.notes)
    assert not any("MORE" in note for note in made.notes), "an empty array stands for nothing"


@for_each(
    "text, why",
    [
        ("MODEL=a/b\n[ -n $X ] && MODEL=c/d\nvllm serve $MODEL\n", "model: ${MODEL} has no value in the source"),
        ("docker run a/vllm:1 vllm serve $1\n", "model: ${1} has no value in the source"),
        ("M=$(cat x)\nvllm serve $M\n", "model: ${M} has no value in the source"),
    ],
)
def test_a_model_that_the_source_does_not_name(text: str, why: str) -> None:
    """The variable that stands for it is the reason, not only that our own key is missing."""
    made = import_recipe(text, "theirs.sh", ImportOptions())
    assert any(error.startswith(why) for error in made.errors), made.errors


@for_each(
    "text",
    [
        "cmake --build build --target llama-server -j\n",
        "Internet ─▶ GB10 box ─▶ llama-server (127.0.0.1:8080)\n",
        "echo vllm serve org/name\n",
    ],
)
def test_a_program_that_is_only_named_starts_nothing(text: str) -> None:
    """The name of an engine as an argument, or in prose, is no start."""
    with pytest.raises(RecipeError, match="no engine is started in it"):
        import_recipe(text, "theirs.sh", ImportOptions())


@for_each(
    "image, command, engine",
    [
        ("own/vllm-dgx-spark:v11", "serve --model org/name --port 8000", "vllm"),
        ("own/llama-cpp-spark:latest", "-m /models/a.gguf --port 8000", "llama-cpp"),
        ("own/inference:1", "--model org/name --max-model-len 8192 --gpu-memory-utilization 0.5", "vllm"),
        ("own/inference:1", "--model-path org/name --mem-fraction-static 0.5 --tp-size 1", "sglang"),
        ("own/llama-swap:1", "--config /c.yaml --listen 0.0.0.0:8080", ""),
        ("ollama/ollama:latest", "", ""),
    ],
)
def test_a_container_whose_image_starts_the_engine(image: str, command: str, engine: str) -> None:
    """The image's name tells the engine, or its options do; what tells neither is refused with the image's name."""
    text = f"services:\n  one: {{image: {image}, command: '{command}'}}\n"
    if engine:
        recipe, made = read(text, "compose.yaml", service="one")
        assert recipe.engine.name == engine and any(note.startswith(f"engine: {engine}, ") for note in made.notes)
        return
    with pytest.raises(RecipeError, match=f"the image {image}"):
        import_recipe(text, "compose.yaml", ImportOptions(service="one"))


def test_options_behind_a_comment_of_a_folded_line() -> None:
    """YAML folds lines into one, where `#` hides all that follows from the shell: the source serves without it."""
    text = """services:
  one:
    image: a/vllm:1
    entrypoint: [bash, -lc]
    command:
      - >
        vllm serve org/name --max-num-seqs 2
        # pinned:
        --revision abc
        --max-model-len 8192
"""
    recipe, made = read(text, "compose.yaml")
    assert recipe.serving.sequences == 2 and recipe.serving.context == 0
    (note,) = [note for note in made.notes if "comment for the shell" in note]
    assert "2 option(s)" in note and "--revision, --max-model-len" in note


def test_a_name_with_spaces_is_written_without() -> None:
    """Our names are one word; the note says which one clients ask for then."""
    recipe, made = read("vllm serve org/name --served-model-name 'Qwen 397B:int4'\n")
    assert recipe.model.served_name == "Qwen-397B:int4" and any("clients ask for Qwen-397B" in n for n in made.notes)


def test_one_rank_may_ask_for_rdma() -> None:
    """NCCL_NET=IB of a file for one node is no error: there is nobody to talk to."""
    recipe, _ = read("NCCL_NET=IB vllm serve org/name\n")
    assert not [finding for finding in rehearse(recipe) if finding.code == "ENG033"]


def test_an_option_that_no_version_has_keeps_its_no() -> None:
    """`--no-mmap`, which a newer table no longer has, is `mmap: false`, and written as it came."""
    recipe, _ = read("docker run own/llama-cpp:1 llama-server -m /m/a.gguf --no-mmap\n")
    assert recipe.flags == {"mmap": False} and "--no-mmap" in imagined_ranks(recipe)[0].engine_words


def test_the_context_of_llama_server_is_shared_by_its_slots() -> None:
    """--ctx-size counts for all slots together: it comes back as it was, not times the slots."""
    recipe, _ = read("llama-server -m /m/a.gguf --ctx-size 131072 --parallel 2\n")
    words = imagined_ranks(recipe)[0].engine_words
    assert recipe.serving.context == 65536 and words[words.index("--ctx-size") + 1] == "131072"
