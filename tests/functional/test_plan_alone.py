"""`sparkwright plan` and `recipes new` without nodes: stock ones, a hub on loopback, a folder on this machine."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.hub_http import FOLDER, MODEL, TREE, HubServer, file_entry, publish_model, serving
from functional.command import UserShell
from functional.tiny_gguf import write_tiny_gguf

GB = 10**9
VARIANTS = "/api/models?filter=base_model:quantized:org/name&sort=downloads&limit=20&expand[]=safetensors"


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    return UserShell(tmp_path)


@pytest.fixture
def hub_server() -> Iterator[HubServer]:
    with serving() as server:
        layers = {f"model.layers.{n}.mlp.up_proj.weight": ("BF16", GB // 3) for n in range(36)}
        half = {name: layers[name] for name in list(layers)[:18]}
        rest = {name: layers[name] for name in list(layers)[18:]} | {"model.embed_tokens.weight": ("BF16", 1244659712)}
        variants = [
            {"id": "lab/name-4bit", "safetensors": {"parameters": {"U8": 3 * GB, "BF16": GB}, "total": 4 * GB}},
            {"id": "x/huge", "safetensors": {"parameters": {"BF16": 80 * GB}}},
            {"id": "no/size"},
            "nonsense",
        ]
        server.answer(VARIANTS, variants)
        publish_model(server, {"model-00001-of-00002.safetensors": half, "model-00002-of-00002.safetensors": rest})
        yield server


def test_a_recipe_is_planned_for_nodes_that_nobody_has(user_shell: UserShell) -> None:
    """No cluster file is looked for; what is assumed is printed, and a node with less free memory does not fit."""
    code, out, err = user_shell.run("plan", "deepseek-v4-flash@1m", "--nodes", "2", "--json")
    plan = json.loads(out)
    assert code == 0, err
    assert "108.0 GiB free, 8 either way" in plan["assumed"][0]
    assert plan["verdict"]["verdict"] in ("fits", "may not fit")
    assert [entry["node"] for entry in plan["memory"]] == ["node-1", "node-2"]
    code, out, _ = user_shell.run("plan", "deepseek-v4-flash@1m", "--nodes", "2", "--free", "80GiB")
    assert code == 1 and "MEM002" in out and "80.0 GiB free" in out


def test_recipes_and_models_side_by_side_on_counts_of_nodes(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards the question before a second machine is bought: which of these on one, which on two."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_bytes(MODEL.read_bytes())
    words = ("plan", "qwen3.6-35b-a3b", "deepseek-v4-flash@1m", "./mine", "--nodes", "1,2")
    code, out, err = user_shell.run(*words, "--json", HF_HUB_OFFLINE="1")
    assert code == 0, err
    rows = {(one["name"], one["nodes"]): one for one in json.loads(out)["plans"]}
    assert len(rows) == 6
    verdicts = [rows["deepseek-v4-flash@1m", n]["verdict"]["verdict"] for n in (1, 2)]
    assert verdicts == ["does not fit", "fits"]
    code, out, _ = user_shell.run(*words, HF_HUB_OFFLINE="1")
    lines = [line for line in out.splitlines() if "deepseek-v4-flash@1m" in line]
    assert code == 0 and "GiB on a node" in lines[0] and "x 1,000,000" in lines[1]


def test_a_row_that_cannot_be_planned_costs_no_other_row(user_shell: UserShell) -> None:
    code, out, _ = user_shell.run("plan", "gpt-oss-120b", "no/model", "--nodes", "1", HF_HUB_OFFLINE="1")
    assert code == 0 and "no plan" in out and "no/model: no/model: HF_HUB_OFFLINE is set" in out
    code, _, err = user_shell.run("plan", "gpt-oss-120b", "--nodes", "1,many")
    assert code == 2 and "as in 2 or 1,2,4" in err
    assert user_shell.run("recipes", "new", "org/name", "--nodes", "1,2")[0] == 2


@pytest.mark.parametrize("form", ["compose", "systemd", "k8s"])
@pytest.mark.parametrize("words", [("--nodes", "2"), ()])
def test_files_for_nodes_that_nobody_has(user_shell: UserShell, form: str, words: tuple[str, ...]) -> None:
    """The addresses and folders of assumed nodes are called placeholders; without a cluster file no count is needed."""
    code, out, err = user_shell.run("plan", "deepseek-v4-flash", *words, "--emit", form)
    assert code == 0 and "192.168.100.1" in out and "no node was asked: replace" in err
    assert "/home/user/hub" in out


@pytest.fixture
def two_replicas(tmp_path: Path) -> str:
    """A recipe with two replicas of one node."""
    recipe = tmp_path / "two.yaml"
    text = "engine: {name: vllm, version: 0.33.0, runtime: process, venv: /opt/vllm}\nserving: {replicas: 2}\n"
    recipe.write_text(f"title: Two\nmodel: {{id: openai/gpt-oss-20b, size: 13GiB}}\n{text}")
    return str(recipe)


@pytest.mark.parametrize("words", [("--nodes", "2"), ()])
def test_files_for_replicas(user_shell: UserShell, two_replicas: str, words: tuple[str, ...]) -> None:
    """Guards who asked for two replicas and would get the files of one without a word."""
    code, out, err = user_shell.run(
        "plan", two_replicas, *words, "--emit", "systemd", "--folder", "files", "--force", "a test"
    )
    assert code == 0, err
    units = sorted(str(path.relative_to(user_shell.folder / "files")) for path in user_shell.folder.rglob("*.service"))
    assert units == ["two-r1/node-1/sparkwright-two-r1.service", "two-r2/node-2/sparkwright-two-r2.service"], out
    assert "Nothing here routes" in (user_shell.folder / "files/README.md").read_text()


def test_too_few_nodes_for_the_recipe_s_replicas(user_shell: UserShell, two_replicas: str) -> None:
    """Files are for all replicas or refused; the plan for one node is about one of them."""
    code, out, err = user_shell.run("plan", two_replicas, "--nodes", "1", "--emit", "systemd", "--force", "a test")
    assert (code, out) == (2, "") and "too few for 2 replicas of 1 node: 1 node" in err
    assert "replicas" not in user_shell.run("plan", two_replicas, "--nodes", "1", "--force", "a test")[1]
    assert user_shell.run("plan", two_replicas, "--nodes", "2")[1].startswith("2 replicas of 1 node each")


def test_files_of_more_nodes_than_one_replica_takes(user_shell: UserShell) -> None:
    """Guards a split over 16 nodes that nobody has measured: the files have the groups that the plan shows."""
    _, shown, _ = user_shell.run("plan", "deepseek-v4-flash@1m", "--nodes", "16")
    code, out, err = user_shell.run("plan", "deepseek-v4-flash@1m", "--nodes", "16", "--emit", "k8s")
    assert code == 0 and shown.startswith("8 replicas of 2 nodes each"), err
    assert out.count("kind: LeaderWorkerSet") == 8 and "node-16.sh" in out and "192.168.100.16" in out
    code, out, _ = user_shell.run("plan", "gpt-oss-20b", "--replicas", "3", "--emit", "k8s")
    assert code == 0 and out.count("kind: LeaderWorkerSet") == 1 and "replicas: 3" in out


@pytest.mark.parametrize(("expose", "address"), [("loopback", "127.0.0.1"), ("fabric", "192.168.100.1")])
def test_a_service_of_assumed_nodes_has_an_address(
    user_shell: UserShell, tmp_path: Path, expose: str, address: str
) -> None:
    """Guards an EndpointSlice without an address, which no cluster takes: there is one on the fabric, else none."""
    image = "image: acme/vllm:1, entrypoint: [vllm, serve]"
    text = f"engine: {{name: vllm, version: 0.33.0, {image}}}\nserving: {{expose: {expose}, replicas: 2}}\n"
    (tmp_path / "two.yaml").write_text(f"title: Two\nmodel: {{id: openai/gpt-oss-20b, size: 13GiB}}\n{text}")
    code, out, err = user_shell.run("plan", "./two.yaml", "--emit", "k8s", "--force", "a test")
    assert code == 0 and f"listens on {address}:8000 of node-1" in out, err
    assert ("kind: EndpointSlice" in out, f"- {address}\n" in out) == (expose == "fabric", expose == "fabric")
    assert ("there is no Service" in out) is (expose == "loopback")


def test_a_table_with_many_nodes_has_groups_too(user_shell: UserShell) -> None:
    """Guards two answers to one question: 16 nodes in a table are what 16 nodes alone are."""
    code, out, _ = user_shell.run("plan", "deepseek-v4-flash@1m", "--nodes", "2,16")
    assert code == 0 and "16: 8 x 2" in out and "8 replicas of 2" in out
    rows = json.loads(user_shell.run("plan", "deepseek-v4-flash@1m", "--nodes", "2,16", "--json")[1])["plans"]
    assert [(one["nodes"], one["replicas"], len(one["memory"])) for one in rows] == [(2, 1, 2), (16, 8, 2)]


@pytest.mark.full
def test_files_start_no_process_that_keeps_weights(user_shell: UserShell, tmp_path: Path) -> None:
    """Their ranks read weights from files, and do not look for it first."""
    text = "engine: {name: vllm, version: 0.33.0, runtime: process, venv: /opt/vllm}\nloading: {weight_cache: true}\n"
    recipe = tmp_path / "kept.yaml"
    recipe.write_text(f"title: Kept\nmodel: {{id: openai/gpt-oss-20b, size: 13GiB}}\n{text}")
    code, out, err = user_shell.run("plan", str(recipe), "--nodes", "1", "--emit", "systemd", "--force", "a test")
    assert "loading.weight_cache is left out" in err and "ipc_cache" not in out, out + err
    assert code == 0
    commands = user_shell.run("plan", str(recipe), "--nodes", "1", "--commands", "--force", "a test")[1]
    assert "weight cache process" in user_shell.run("plan", str(recipe), "--nodes", "1", "--why")[1] + commands


def test_no_files_of_a_plan_that_does_not_fit(user_shell: UserShell) -> None:
    code, out, err = user_shell.run("plan", "deepseek-v4-flash", "--nodes", "2", "--free", "60GiB", "--emit", "compose")
    assert code != 0 and not out and "nothing was written" in err


def test_the_default_screen_is_the_answer(user_shell: UserShell) -> None:
    """The screen has about 25 lines; omitted parts are named with the option that shows them."""
    words = ("plan", "deepseek-v4-flash@1m", "--nodes", "2")
    _, short, _ = user_shell.run(*words)
    _, long, _ = user_shell.run(*words, "--why", "--splits")
    assert len(short.splitlines()) <= 30 and "--splits" in short and "ways to split it (shape" not in short
    assert "ways to split it (shape" in long and len(long.splitlines()) > 2 * len(short.splitlines())


def test_another_recipe_of_the_model_is_named_where_it_fits(user_shell: UserShell) -> None:
    """Guards the owner of one node whose engine cannot leave a table on disk: the recipe whose engine can is named."""
    code, out, _ = user_shell.run("plan", "qwen3.8-flash-next", "--nodes", "1")
    assert code == 1 and "does not fit" in out
    named = out.split("other recipes of this model that fit\n")[1]
    command = named.split("sparkwright ")[1].split("\n")[0].split()
    assert command == ["plan", "qwen3.8-flash-next-single", "--nodes", "1"]
    assert user_shell.run(*command)[0] == 0
    (told,) = json.loads(user_shell.run("plan", "qwen3.8-flash-next", "--nodes", "1", "--json")[1])["other_recipes"]
    assert (told["recipe"], told["nodes"], told["command"].split()[1:]) == (command[1], 1, command)
    assert "other recipes" not in user_shell.run("plan", "qwen3.8-flash-next", "--nodes", "2")[1]


def test_a_context_beyond_the_models_own_is_the_first_reason(user_shell: UserShell) -> None:
    """Guards `60963.8 GiB short`, which says nothing: no memory would make this model take so many tokens."""
    code, out, _ = user_shell.run("plan", "qwen3.6-27b-fp8", "--nodes", "1", "--context", "999999999")
    assert code == 1
    assert "does not fit: the model supports 262,144 tokens, not 999,999,999 (MODEL013); " in out


def test_a_refusal_names_its_reasons_in_words(user_shell: UserShell) -> None:
    """Guards the first line: what fits and is refused begins with what is in the way, not only by its code."""
    code, out, _ = user_shell.run("plan", "qwen3.6-27b-fp8", "--nodes", "2", "--tp", "3", "--free", "112GiB")
    answer = out.split("\n\n")[1].replace("\n  ", " ")
    assert code == 1 and answer.startswith("refused: "), out
    assert "; tp 3 is not possible for this model (PAR001); by memory alone: fits" in answer


def test_a_model_of_the_hub_is_planned_from_its_headers(user_shell: UserShell, hub_server: HubServer) -> None:
    """Weights by its own tensors; the second time from the cache, and a recipe is made of it that is valid."""
    code, out, err = user_shell.run(
        "plan", "org/name", "--context", "32K", "--kv", "fp8", "--json", HF_ENDPOINT=hub_server.url
    )
    assert code == 0, err
    plan = json.loads(out)
    weights = next(line for line in plan["memory"][0]["lines"] if line["name"] == "weights")
    assert weights["bytes"] == pytest.approx(12 * GB + 1244659712, rel=0.01) and "tensors of" in weights["why"]
    assert plan["longest_context"] == 40960 and plan["verdict"]["verdict"] == "fits"
    assert max(hub_server.sent) < 100_000
    others = {one["model"]: one["verdict"] for one in plan["quantizations"]}
    assert others == {"lab/name-4bit": "fits", "x/huge": "does not fit"}
    hub_server.asked.clear()
    code, _, err = user_shell.run("recipes", "new", "org/name", "--out", "made.yaml", HF_ENDPOINT=hub_server.url)
    assert code == 0 and hub_server.asked == [], err
    assert user_shell.run("recipes", "validate", "./made.yaml")[0] == 0
    assert "# the longest that surely fits: 40960" in (user_shell.folder / "made.yaml").read_text()


def test_a_draft_models_configuration_is_read(user_shell: UserShell, hub_server: HubServer) -> None:
    """Its layers and weights are its own; without a hub they are assumed, and the plan prints so."""
    model = "model: {id: org/big, size: 20GB, shape: {layers: 40, heads: 32, kv_heads: 8, hidden: 4096, head_dim: 128}}"
    drafts = "speculation: {method: draft_model, tokens: 4, options: {model: org/name}}"
    engine = "engine: {name: vllm, version: 0.33.0, runtime: process}"
    (user_shell.folder / "r.yaml").write_text(f"title: x\n{model}\n{engine}\n{drafts}\nserving: {{context: 8192}}\n")
    words = ("plan", "./r.yaml", "--nodes", "1", "--why")
    _, read, err = user_shell.run(*words, HF_ENDPOINT=hub_server.url)
    _, offline, _ = user_shell.run(*words, HF_HUB_OFFLINE="1")
    assert "not known; assumed" in offline and "not known; assumed" not in read, err


def test_a_folder_needs_no_hub(user_shell: UserShell, tmp_path: Path) -> None:
    """Offline, with a config.json alone: by its dimensions, and the size of its weights is counted from them."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_bytes(MODEL.read_bytes())
    code, out, err = user_shell.run("plan", "./mine", "--tp", "2", HF_HUB_OFFLINE="1")
    assert code == 0, err
    assert "fits" in out and "users of" in out and "2 x DGX Spark" in out


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "HF_TOKEN"), (404, "no such model"), (200, "answer cannot be used")],
    ids=("gated", "missing", "a login page"),
)
def test_a_model_that_cannot_be_read_is_named(
    user_shell: UserShell, hub_server: HubServer, status: int, said: str
) -> None:
    """The message names the needed thing; a usage error, not a trace."""
    hub_server.replies[TREE] = (status, {}, b"<html>")
    code, _, err = user_shell.run("plan", "org/name", HF_ENDPOINT=hub_server.url)
    assert code == 2 and said in err and "hint:" in err


OTHER_MODEL = {"num_hidden_layers": 12, "num_attention_heads": 32, "hidden_size": 1024, "num_key_value_heads": 8}
ODD_LAYERS = {**OTHER_MODEL, "num_hidden_layers": 36, "hidden_size": 4096, "layer_types": ["wave"] * 36}


@pytest.mark.parametrize(
    ("config", "said", "stops"),
    [
        (ODD_LAYERS, "wave", 0),
        (OTHER_MODEL, "is of another model: 12 layers, the weights have 36", 1),
        (None, "config.json (absent", 1),
    ],
    ids=("an unknown kind of layer", "a config of another model", "no config.json"),
)
def test_without_a_config_that_fits_the_tensors_sizes_count(
    user_shell: UserShell, hub_server: HubServer, config: dict[str, object] | None, said: str, stops: int
) -> None:
    """Wide ranges, marked so, and what is wrong with the configuration by name; `up` refuses what no engine loads."""
    rows = {"input_layernorm": 1, "self_attn.k_proj": 1024, "self_attn.v_proj": 1024, "self_attn.o_proj": 4096}
    sizes = {**rows, "mlp.up_proj": 12288}
    tensors = {
        f"model.layers.{n}.{name}.weight": ("BF16", 2 * 4096 * size) for n in range(36) for name, size in sizes.items()
    }
    tensors["model.embed_tokens.weight"] = ("BF16", 2 * 4096 * 151936)
    publish_model(hub_server, {"model.safetensors": tensors}, indexed=False)
    if config is None:
        hub_server.answer(TREE, [file_entry("model.safetensors", sum(size for _, size in tensors.values()))])
    else:
        hub_server.answer(f"{FOLDER}config.json", config)
    code, out, err = user_shell.run("plan", "org/name", "--context", "32K", "--json", HF_ENDPOINT=hub_server.url)
    assert code == stops, err
    plan = json.loads(out)
    kv = plan["verdict"]["kv"]
    assert kv["tokens"] > 400_000 and kv["high"] >= 4 * kv["tokens"] and kv["low"] <= kv["tokens"] // 2
    assert "by the tensors' sizes alone" in kv["doubts"][0]
    findings = " ".join(f"{one['title']} {one['evidence']}" for one in plan["findings"])
    assert said in findings and "sizes alone" in findings, findings


@pytest.mark.parametrize("config", [b"{}", b"[]", b"<html>", b'{"num_hidden_layers": 4}'])
def test_a_config_without_dimensions_is_no_reason_to_fail(
    user_shell: UserShell, hub_server: HubServer, config: bytes
) -> None:
    """The plan uses the tensors' bytes alone, or names the config; never a bug of ours."""
    hub_server.replies[f"{FOLDER}config.json"] = (200, {}, config)
    code, out, err = user_shell.run("plan", "org/name", HF_ENDPOINT=hub_server.url)
    assert code in (0, 1, 2), err
    assert "org/name" in out + err


def test_a_gguf_file_that_is_cut_short_is_planned_for_the_engine_of_such_files(
    user_shell: UserShell, tmp_path: Path
) -> None:
    """Its header cannot be read; its name still tells whose it is, and the reason is the file, not an engine."""
    whole = write_tiny_gguf(tmp_path / "whole.gguf")
    (tmp_path / "cut.gguf").write_bytes(whole.read_bytes()[:200])
    code, out, _ = user_shell.run("plan", str(tmp_path / "cut.gguf"), "--nodes", "1")
    assert code == 1 and "on llama-cpp" in out and "not known" in out
    assert "MODEL006" in out and "cut short inside its header, after 200 bytes" in out


def test_damaged_files_never_begin_with_fits(user_shell: UserShell, tmp_path: Path) -> None:
    """The answer is the damage; whether whole files would fit comes after it."""
    folder = tmp_path / "torn"
    folder.mkdir()
    (folder / "config.json").write_bytes(MODEL.read_bytes())
    head = b'{"a": {"dtype": "BF16", "shape": [1000], "data_offsets": [0, 2000]}}'
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(999))
    code, out, err = user_shell.run("plan", "./torn", "--nodes", "1", HF_HUB_OFFLINE="1")
    assert code == 1, err
    answer = out.split("\n\n")[1]
    assert answer.startswith("refused: ") and "(MODEL006); with whole files: fits" in answer.replace("\n  ", " ")


def test_missing_files_never_begin_with_fits(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards the answer for an incomplete folder: first what is in the way, and no figure from a part of its files."""
    folder = tmp_path / "gone"
    folder.mkdir()
    (folder / "config.json").write_bytes(MODEL.read_bytes())
    head = b'{"a": {"dtype": "BF16", "shape": [1000], "data_offsets": [0, 2000]}}'
    (folder / "model-00001-of-00002.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(2000))
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    code, out, err = user_shell.run("plan", "./gone", "--nodes", "1", HF_HUB_OFFLINE="1")
    assert code == 1, err
    answer = out.split("\n\n")[1].replace("\n  ", " ")
    first = "is incomplete: files are missing (MODEL001); with all of its files: fits"
    assert answer.startswith("refused: ") and first in answer.split(" tokens of KV cache")[0], out
    assert "model-00002-of-00002.safetensors (absent" in out
    assert "MODEL014" not in out and " MiB  fits" not in out
    plan = json.loads(user_shell.run("plan", "./gone", "--nodes", "1", "--json", HF_HUB_OFFLINE="1")[1])
    assert "MODEL001" in [one["code"] for one in plan["findings"]]
    table = user_shell.run("plan", "./gone", "gpt-oss-120b", "--nodes", "1", HF_HUB_OFFLINE="1")[1]
    row = next(line.split() for line in table.splitlines() if "/gone " in line)
    assert row[2] == "refused" and row[-3:] == ["MODEL001;", "otherwise", "fits"], row


def test_what_is_too_large_is_answered_with_what_would_fit(user_shell: UserShell, tmp_path: Path) -> None:
    """No speed of what does not run; more nodes, and checkpoints of fewer bits, by size."""
    folder = tmp_path / "big"
    folder.mkdir()
    (folder / "config.json").write_bytes((MODEL.parent / "llama-4-scout.config.json").read_bytes())
    code, out, err = user_shell.run("plan", "./big", "--nodes", "2", HF_HUB_OFFLINE="1")
    assert code == 1, err
    answer = out.split("\n\n")[1]
    assert answer.startswith("does not fit") and "tokens/s" not in answer
    assert "nodes: 4" in out and "a checkpoint of 4 bits" in out


def test_a_cache_type_that_the_engine_has_not_is_refused(user_shell: UserShell, tmp_path: Path) -> None:
    """The refusal lists the engine's types; and a split that the model forbids is no plain `fits`."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_bytes(MODEL.read_bytes())
    code, _, err = user_shell.run("plan", "./mine", "--kv", "fp9", HF_HUB_OFFLINE="1")
    assert code == 2 and "not a type of vllm" in err and "fp8" in err
    code, out, _ = user_shell.run("plan", "./mine", "--tp", "3", HF_HUB_OFFLINE="1")
    assert code == 1 and out.split("\n\n")[1].startswith("refused: ") and "(PAR001)" in out


def test_what_does_not_go_together_is_refused(user_shell: UserShell) -> None:
    """Figures of a start, files of other tools and searches are of nodes that are there."""
    code, _, err = user_shell.run("plan", "gpt-oss-120b", "--nodes", "2", "--optimize", "context")
    assert code == 2 and "--optimize needs the nodes" in err
    assert user_shell.run("plan", "gpt-oss-120b", "--engine", "sglang")[0] == 2
    assert user_shell.run("plan", "gpt-oss-120b", "--node-type", "abacus")[0] == 2
