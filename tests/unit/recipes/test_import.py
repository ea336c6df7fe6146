"""Other tools' recipes become ours: every key in its place, nothing lost in silence, no secret taken along."""

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe, RecipeState
from sparkwright.engines.catalog import imagined_ranks
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import Imported, import_recipe
from sparkwright.recipes.load import load_recipe
from unit.for_each import for_each
from unit.recipes import import_samples as samples

ALL = {name: text for name, text in vars(samples).items() if name.isupper()}
AS_IT_SAYS = ImportOptions()


def read(text: str, profile: str = "", options: ImportOptions = AS_IT_SAYS) -> tuple[Recipe, Imported]:
    made = import_recipe(text, "theirs.yaml", options)
    assert made.errors == ()
    return load_recipe(made.text, f"{made.name}.yaml", profile), made


@pytest.mark.parametrize("name", ALL)
def test_every_sample_loads_and_is_only_documented(name: str) -> None:
    """An import is a valid recipe, never called ready, and reports where it comes from."""
    recipe, made = read(ALL[name])
    assert recipe.state is RecipeState.DOCUMENTED and "imported from theirs.yaml" in recipe.state_reason
    assert all(" ".join(note.split()) in made.text for note in made.notes)


def test_a_command_template_is_resolved() -> None:
    """sparkrun v2: holes, short flags, JSON with a hole in it, a comment and a continuation with a space behind it."""
    recipe, _ = read(samples.SPARKRUN_V2)
    assert (recipe.model.id, recipe.model.revision, recipe.model.served_name) == (
        "acme/Big-MoE-NVFP4",
        "0123abc",
        "big-moe",
    )
    assert (recipe.engine.name, recipe.engine.version, recipe.nodes, recipe.parallelism.tp) == ("vllm", "0.24.0", 2, 2)
    assert (recipe.serving.port, recipe.serving.context, recipe.serving.memory_fraction) == (8001, 131072, 0.8)
    assert (recipe.speculation.method, recipe.speculation.tokens) == ("mtp", 3)
    assert recipe.speculation.options == {"moe_backend": "triton"} and recipe.parsers.tool == "qwen3_xml"
    assert recipe.flags == {
        "trust-remote-code": True, "load-format": "fastsafetensors", "enable-flashinfer-autotune": False,
    }  # fmt: skip
    assert recipe.env == {"VLLM_MARLIN_USE_ATOMIC_ADD": "1", "SIZE": "2"} and recipe.shm_bytes == 32 * 1024**3


def test_what_is_left_out_is_named_and_secrets_stay_behind() -> None:
    """Mods, other tools' paths, per-node values, hosts and keys are in the notes; the keys' values are nowhere."""
    _, made = read(samples.SPARKRUN_V2)
    for word in ("mods", "env.STATE_PATH", "env.NCCL_IB_HCA", "env.HF_TOKEN", "api_key", "host 0.0.0.0", "privileged"):
        assert any(word in note for note in made.notes), word
    assert "hf_abcdef" not in made.text + str(made.notes) and "sk-abcdef" not in made.text + str(made.notes)


def test_version_one_doubles_its_braces() -> None:
    """sparkrun v1: `{{` is a literal brace around holes; nobody asked for Ray, so vLLM connects the nodes."""
    recipe, made = read(samples.SPARKRUN_V1)
    assert recipe.speculation.tokens == 4 and recipe.engine.name == "vllm" and recipe.name == "flash-next-cluster"
    assert recipe.flags == {"compilation-config": {"pass_config": {"fuse_act_quant": True}}}
    assert any("engine.version: 0.33.0 is written: the source names none" in note for note in made.notes)


def test_defaults_are_the_flags_where_there_is_no_command() -> None:
    """sparkrun without a command: sglang's context, fraction and prefill chunk from sparkrun's own names for them."""
    recipe, made = read(samples.SPARKRUN_SGLANG)
    assert (recipe.engine.name, recipe.engine.version, recipe.nodes) == ("sglang", "0.5.16", 4)
    assert (recipe.serving.context, recipe.serving.batched_tokens, recipe.serving.sequences) == (65536, 4096, 16)
    assert recipe.model.revision == "fb27" and recipe.flags == {"attention-backend": "flashinfer"}
    assert recipe.parallelism.ep is False and made.notes == ()
    assert (recipe.speculation.method, recipe.speculation.tokens) == ("nextn", 3)
    assert recipe.speculation.options == {"attention-mode": "decode"}


def test_a_gguf_of_the_hub() -> None:
    """`repo:QUANT` names files that sparkwright does not choose automatically, and it reports it."""
    recipe, made = read(samples.SPARKRUN_LLAMA)
    assert recipe.model.id == "acme/Small-GGUF" and recipe.serving.context == 16384 and recipe.nodes == 1
    assert recipe.flags == {"gpu-layers": 99} and any("Q4_K_M" in note for note in made.notes)


def test_vllm_variants_become_profiles() -> None:
    """vLLM's recipe: the default variant is the base, another one a profile with GB10's overrides and nobody else's."""
    base, made = read(samples.VLLM)
    assert (base.model.id, base.engine.image) == ("acme/Flash-35B", "vllm/vllm-openai:v0.24.0")
    assert base.serving.sequences == 8 and base.speculation.method == "" and base.parsers.tool == "qwen3_xml"
    assert any("spec_decoding" in note for note in made.notes)
    small, _ = read(samples.VLLM, "nvfp4")
    assert (small.model.id, small.engine.version) == ("nvidia/Flash-35B-NVFP4", "0.27.1")
    assert (small.serving.kv_dtype, small.serving.memory_fraction, small.serving.context) == ("fp8", 0.5, 0)
    assert small.flags == {"trust-remote-code": True, "moe-backend": "marlin"}
    assert small.env == {"VLLM_USE_FLASHINFER_MOE_FP4": "1"} and small.serving.sequences == 8


def test_the_user_has_the_last_word() -> None:
    """Name, engine version and number of nodes of the call win over the source, and the change of ranks is reported."""
    recipe, made = read(samples.VLLM, options=ImportOptions("mine", "0.30.0", 2))
    assert (recipe.name, recipe.engine.version, recipe.nodes, recipe.parallelism.tp) == ("mine", "0.30.0", 2, 2)
    assert any("2 nodes asked for" in note for note in made.notes)


def test_what_cannot_load_reports_why() -> None:
    """A memory fraction that no GB10 has is not bent into shape: the result comes with the complaint and its line."""
    made = import_recipe(samples.SPARKRUN_V2.replace("0.8\n", "0.97\n"), "theirs.yaml", ImportOptions())
    (error,) = made.errors
    assert error.startswith("theirs.yaml:") and "memory_fraction" in error and "0.97" in error


@for_each(
    "text, word",
    [
        ("- a\n- b\n", "a mapping was expected"),
        ("a: [\n", "is no YAML"),
        ("a: 2026-13-45\n", "is no YAML"),
        ("- " * 5000, "nested too deeply"),
        ("a: {}\n", "in no format"),
        ("model: a/b\nruntime: nobodys\n", "nobodys"),
        ("model: {model_id: a/b}\nvariants: [1]\n", "another kind of value"),
        ("model: a/b\ndefaults: [1]\n", "another kind of value"),
    ],
)
def test_what_is_no_recipe_is_refused(text: str, word: str) -> None:
    """No list, no YAML that cannot be read, no compose file, no engine that we do not drive, no wrong kind of value."""
    with pytest.raises(RecipeError, match=word):
        import_recipe(text, "theirs.yaml", ImportOptions())


POWERFUL = """\
recipe_version: "2"
model: org/name
runtime: {runtime}
container: registry/engine:v0.21.0
env: {{VLLM_ALLOW_RUNTIME_LORA_UPDATING: 1, VLLM_SERVER_DEV_MODE: "1", LD_PRELOAD: /x/evil.so, PYTHONPATH: /x}}
command: {command} --trust-remote-code {flags}
"""


def test_what_gives_power_away_is_named_when_it_is_taken_over():
    """Somebody's file is imported as it is, but nobody can claim that these went by unseen."""
    flags = "--enable-prompt-embeds --allowed-local-media-path /"
    text = POWERFUL.format(runtime="vllm", command="vllm serve org/name", flags=flags)
    notes = import_recipe(text, "theirs.yaml", ImportOptions()).notes
    sglang = "--enable-custom-logit-processor"
    text = POWERFUL.format(runtime="sglang", command="sglang serve --model-path org/name", flags=sglang)
    notes += import_recipe(text, "theirs.yaml", ImportOptions()).notes
    named = {note.partition(":")[0] for note in notes if ": taken over; it " in note}
    assert named == {
        "env.VLLM_ALLOW_RUNTIME_LORA_UPDATING",
        "env.VLLM_SERVER_DEV_MODE",
        "env.LD_PRELOAD",
        "env.PYTHONPATH",
        "flags.trust-remote-code",
        "flags.enable-prompt-embeds",
        "flags.allowed-local-media-path",
        "flags.enable-custom-logit-processor",
    }


def test_an_import_names_every_pointer_and_every_unknown_variable():
    """A pointer is known by the form of the value: a path, a module, a URL; a list of names never has them all."""
    text = """recipe_version: "2"
model: org/name
runtime: vllm
container: registry/engine:v0.21.0
env: {PATH: "/x:/bin", GCONV_PATH: /x, OPENSSL_CONF: /x, VLLM_PLUGINS: a, NCCL_NET_PLUGIN: x, NCCL_DEBUG: WARN,
  HF_ENDPOINT: "https://hub.example", PIP_INDEX_URL: "https://p.example/simple", HTTPS_PROXY: "http://p:1",
  SSL_CERT_FILE: /c.pem, VLLM_USE_V1: "1"}
command: vllm serve org/name --tool-parser-plugin /x/p.py --reasoning-parser-plugin /x/r.py --worker-cls a.b.C
  --logits-processors a.b:D --io-processor-plugin y --tokenizer other/name --chat-template /etc/passwd --seed 7
"""
    notes = import_recipe(text, "theirs.yaml", ImportOptions()).notes
    named = {note.partition(":")[0].rpartition(".")[2] for note in notes if ": taken over; it " in note}
    wanted = "PATH GCONV_PATH OPENSSL_CONF VLLM_PLUGINS NCCL_NET_PLUGIN HF_ENDPOINT PIP_INDEX_URL HTTPS_PROXY"
    wanted += " SSL_CERT_FILE tool-parser-plugin reasoning-parser-plugin worker-cls logits-processors"
    wanted += " io-processor-plugin tokenizer chat_template"
    assert set(wanted.split()) - named == set()
    assert named & {"NCCL_DEBUG", "VLLM_USE_V1", "seed"} == set()


@pytest.mark.parametrize("auto", ["auto", "-1"])
def test_a_context_that_vllm_chooses_is_kept(auto: str) -> None:
    """`--max-model-len auto` is no number: it stays vLLM's option, and its command line is the source's."""
    text = f"recipe_version: '2'\nmodel: org/m\nruntime: vllm\ncontainer: a/b:1\ndefaults: {{max_model_len: {auto}}}\n"
    with_command, made = read(text + "command: vllm serve {model} --max-model-len {max_model_len}\n")
    without, _ = read(text)
    for recipe in (with_command, without):
        words = imagined_ranks(recipe)[0].engine_words
        assert words[words.index("--max-model-len") + 1] == auto and recipe.serving.context == 0
    assert not any("max_model_len" in note for note in made.notes)


def test_a_context_that_sglang_cannot_choose_is_named() -> None:
    """SGLang has no such value: without the option it takes the model's own length."""
    recipe, made = read("model: org/m\nruntime: sglang\ncontainer: a/b:1\ndefaults: {max_model_len: auto}\n")
    assert recipe.flags == {} and any("'auto' is no whole number" in note for note in made.notes)
