# ruff: noqa: E501 (whole messages, one a line)
"""A mistake in a recipe is reported with file, line, key, found, allowed, why, and the nearest valid key."""

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.engines.catalog import known_names
from sparkwright.recipes.load import load_recipe
from unit.for_each import for_each
from unit.recipes.samples import GOOD, errors, recipe_errors

FRACTION = (
    "r.yaml:7: `serving.memory_fraction`: found 0.95; allowed 0 or 0.05..0.92: it is a share of the whole 121.6 GiB "
    "that CPU and GPU have in common, and the system needs 8 to 10 GiB of it (NVCheckup's sizing rule); on two nodes "
    "0.80 to 0.82 is the practical most, 0.85 left 1 GB a node (GanyX19)"
)


def test_the_good_one_is_silent():
    """The base of all these tests has no error."""
    assert load_recipe(GOOD, "r.yaml").title == "A test"


@for_each(
    "more, near",
    [
        ("max_model_len: 1", "unknown key `max_model_len`; did you mean `serving.context`?"),
        ("max-model-len: 1", "unknown key `max-model-len`; did you mean `serving.context`?"),
        ("gpu_memory_utilization: 1", "unknown key `gpu_memory_utilization`; did you mean `serving.memory_fraction`?"),
        ("tensor_parallel_size: 2", "unknown key `tensor_parallel_size`; did you mean `parallelism.tp`?"),
        ("--max-num-seqs: 2", "unknown key `--max-num-seqs`; did you mean `serving.sequences`?"),
        ("mem_fraction_static: 2", "unknown key `mem_fraction_static`; did you mean `serving.memory_fraction`?"),
        ("image: x", "unknown key `image`; did you mean `engine.image`?"),
        ("context: 2", "unknown key `context`; did you mean `serving.context`?"),
        ("profile: {}", "unknown key `profile`; did you mean `profiles`?"),
        ("titel: x", "unknown key `titel`; did you mean `title`?"),
        ("volumes: []", "unknown key `volumes`; did you mean `mounts`?"),
        ("serving: {contxt: 2}", "unknown key `serving.contxt`; did you mean `serving.context`?"),
        ("serving: {api_key: sk-1234567890abc}", "unknown key `serving.api_key`; did you mean `serving.api_key_env`?"),
        ("published: [{wat: x}]", "unknown key `published[0].wat`; did you mean `published[0].what`?"),
        (
            "parallelism: {zzzz: 1}",
            "unknown key `parallelism.zzzz`; known here: tp, pp, dp, ep, and keys that begin with x-",
        ),
    ],
)
def test_unknown_keys(more, near):
    """The nearest valid key is named, across sections and from the engines' own names."""
    assert f"r.yaml:7: {near}" in recipe_errors(more)


def test_known_and_free_keys_are_silent():
    """Keys beginning x- are free at every level."""
    text = GOOD + "x-a: 1\nserving: {x-b: {c: 1}, context: 4096}\nprofiles: {p: {x-c: 1}, x-d: 2}\n"
    assert load_recipe(text, "r.yaml").serving.context == 4096


@for_each(
    "more, message",
    [
        ("serving: {memory_fraction: 0.95}", FRACTION),
        ("serving: {port: 80}", "r.yaml:7: `serving.port`: found 80; allowed 1024..65535: ports below 1024 belong to root, and TCP ends at 65535"),
        ("serving: {context: 64}", "r.yaml:7: `serving.context`: found 64; allowed 0 or 128..16777216: fewer tokens hold no chat template, more than 16 Mi no known model has"),
        ("serving: {context: [1, 2]}", "r.yaml:7: `serving.context`: found a list of 2; expected one whole number; write a single value, not a list"),
        ("serving: {context: 256k}", "r.yaml:7: `serving.context`: found '256k'; expected one whole number; write it without quotes, units or line breaks"),
        ("serving: {context: 2.5}", "r.yaml:7: `serving.context`: found 2.5; expected one whole number"),
        ("serving: [port]", "r.yaml:7: `serving`: found a list of 1; expected a mapping, one `key: value` a line; write `name: value` lines without `-`"),
        ("serving: {expose: public}", "r.yaml:7: `serving.expose`: found 'public'; allowed: loopback, fabric or all"),
        ("parallelism: {ep: yes}", "r.yaml:7: `parallelism.ep`: found 'yes'; expected true or false; write true"),
        ("flags:\n- --trust-remote-code", "r.yaml:7: `flags`: found a list of 1; expected a mapping, one `key: value` a line; write `name: value` without dashes, as in `block-size: 256` (true for a bare flag)"),
        ("shm: 64 gigs", "r.yaml:7: `shm`: found '64 gigs'; a size is a number with k, m, g, GiB or GB, as in 64g or 149GB"),
        ("phases: {load: {usual: 4m}}", "r.yaml:7: `phases.load.usual`: found '4m'; a duration is a number with s, min or h, as in 230s or 4min"),
        ("phases: {lode: {usual: 4s}}", "r.yaml:7: unknown key `phases.lode`; did you mean `phases.load`?"),
        ("env: {VLLM_USE_X: true}", 'r.yaml:7: `env.VLLM_USE_X`: found true; expected a text: put it in quotes, as in "true" or "1"'),
        ("env: {HF_TOKEN: [hf_abcdefghijkl]}", "r.yaml:7: `env.HF_TOKEN`: found a value that is not shown; expected one text; write a single value, not a list"),
        ("serving: {api_key_env: sk-1234567890abcdef}", "r.yaml:7: `serving.api_key_env`: found a text that is not shown; allowed: the NAME of an environment variable, never the key itself"),
        ("title: again", "r.yaml:7: key `title` is there twice: on line 1 and on line 7"),
        ("name: Big Name", "r.yaml:7: `name`: found 'Big Name'; allowed: small letters, digits, `.`, `_` and `-`, at most 63, as in deepseek-v4-flash"),
        ("mounts: [/a]", "r.yaml:7: `mounts[0]`: found '/a'; allowed: HOST:CONTAINER or HOST:CONTAINER:ro with absolute paths, as in ~/patches:/patches:ro"),
        ("speculation: {method: mtp}", "r.yaml:7: `speculation.tokens` is missing; it has no default"),
        ('notes: ["a\\e[31m"]', "r.yaml:7: `notes[0]`: found control characters in the text; allowed: printable text, tabs and line breaks"),
    ],
)  # fmt: skip
def test_wrong_values(more, message):
    """Found, allowed and why, in one line."""
    assert message in recipe_errors(more)


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("{name: tgi, runtime: process}", f"r.yaml:3: `engine.name`: found 'tgi'; known: {', '.join(known_names())}; another is described by a file (docs/guides/adding-an-engine.md)"),
        ("{name: vlm, runtime: process}", f"r.yaml:3: `engine.name`: found 'vlm'; did you mean vllm? known: {', '.join(known_names())}; another is described by a file (docs/guides/adding-an-engine.md)"),
        ("{name: vllm, runtime: process, version: newest}", "r.yaml:3: `engine.version`: found 'newest'; allowed: one version, as in 0.21.0, b10269 or nightly; leave it out to have it read from the image or venv at `up`"),
        ("{name: vllm, runtime: process, version: '>=0.21'}", "r.yaml:3: `engine.version`: found '>=0.21'; allowed: one version, as in 0.21.0, b10269 or nightly; leave it out to have it read from the image or venv at `up`"),
        ("vllm", "r.yaml:3: `engine`: found 'vllm'; expected a mapping, one `key: value` a line"),
    ],
)  # fmt: skip
def test_wrong_engines(engine, message):
    """The engine is the heart of a recipe: name and exact version."""
    assert errors(f"title: t\nmodel: {{id: a/b}}\nengine: {engine}\n") == [message]


@for_each("version", ["0.21.0", "0.23.1rc1.dev407+g28fef2c70", "b10269", "2026.10.11549", "0.20", "1"])
def test_exact_versions_pass_as_written(version):
    """Versions keep their trailing zeros."""
    text = f"title: t\nmodel: {{id: a/b}}\nengine: {{name: vllm, version: {version}, runtime: process}}\n"
    assert load_recipe(text, "r.yaml").engine.version == version


@pytest.mark.parametrize("text", ["", "- a", "just words", "# only a comment"])
def test_no_mapping(text):
    """An empty file and a list are no recipe."""
    assert len(errors(text)) == 1
    assert errors(text)[0].startswith("r.yaml:1: found ")


def test_all_errors_come_together():
    """A user fixes a file once, not error by error."""
    found = recipe_errors(
        "max_model_len: 1\nserving:\n  port: 80\n  expose: public\nenv:\n  HF_TOKEN: hf_abcdefghijklm\nserving: {}\n"
    )
    assert found == [
        "r.yaml:7: unknown key `max_model_len`; did you mean `serving.context`?",
        "r.yaml:9: `serving.port`: found 80; allowed 1024..65535: ports below 1024 belong to root, and TCP ends at 65535",
        "r.yaml:10: `serving.expose`: found 'public'; allowed: loopback, fabric or all",
        "r.yaml:12: `env.HF_TOKEN`: a key must not be in a file (its value is not shown); take it out; "
        "run `hf auth login` on the node that downloads, or export it where you call sparkwright",
        "r.yaml:13: key `serving` is there twice: on line 8 and on line 13",
    ]


def test_a_rule_is_silent_where_its_keys_are_wrong():
    """`nodes: two` must not also be blamed on the parallelism."""
    assert [line[:17] for line in recipe_errors("nodes: two\nparallelism: {tp: 2}\n")] == ["r.yaml:7: `nodes`"]


def test_the_error_has_a_hint():
    """The hint names the place to read on."""
    with pytest.raises(RecipeError) as caught:
        load_recipe("a: 1", "r.yaml")
    assert caught.value.hint == "`sparkwright recipes show --reference` explains every key"
    assert caught.value.exit_code == 2


def test_a_file_of_another_tool_is_told_how_to_come_in():
    """A recipe of vLLM's or sparkrun's has a model, and neither of the keys that every recipe here has."""
    with pytest.raises(RecipeError) as caught:
        load_recipe("meta: {slug: a}\nmodel: {model_id: org/name}\n", "r.yaml")
    assert "`sparkwright recipes import r.yaml`" in caught.value.hint


def test_name_comes_from_the_file():
    """A recipe without a name is called as its file."""
    assert load_recipe(GOOD, "/somewhere/my-own.yaml").name == "my-own"
    assert (
        "<stdin>:1: `name` is missing, and the file's name cannot serve as one; allowed: small letters, digits, `.`, `_` and `-`, at most 63"
        in errors(GOOD, source="<stdin>")
    )
