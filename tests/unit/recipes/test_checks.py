# ruff: noqa: E501 (whole messages, one a line)
"""Rules across keys: each fires on its case and is silent next to it."""

import pytest

from sparkwright.domain.finding import Severity
from sparkwright.engines.catalog import review
from sparkwright.recipes.load import load_recipe, version_of_tag
from unit.for_each import for_each
from unit.recipes.samples import GOOD, errors, recipe_errors

TWIN = GOOD.replace("name: vllm", "name: twin")
LLAMA = GOOD.replace("name: vllm", "name: llama-cpp")
DOCKER = GOOD.replace("runtime: process", "runtime: docker")


def silent(more="", base=GOOD):
    return load_recipe(base + more, "r.yaml")


def test_model():
    """A model needs an id or a path."""
    assert errors(GOOD.replace("{id: org/name}", "{served_name: x}")) == [
        "r.yaml:2: `model`: neither `id` (hub id, `organisation/name`) nor `path` (on the nodes) is given"
    ]
    assert errors(GOOD.replace("{id: org/name}", "{path: ../x}")) == [
        "r.yaml:2: `model.path`: found '../x'; `..` is not allowed in it"
    ]
    assert silent(base=GOOD.replace("{id: org/name}", "{path: /data/x}")).model.label == "/data/x"


def test_on_disk():
    """A part of the checkpoint is less than the checkpoint, and not a part of nothing."""

    def sized(more):
        return GOOD.replace("org/name", f"org/name, {more}")

    assert errors(sized("size: 2GB, on_disk: 2GB")) == [
        "r.yaml:2: `model.on_disk`: found 2000000000 bytes; allowed: less than `model.size`, which is 2000000000"
    ]
    assert errors(sized("on_disk: 1GB")) == [
        "r.yaml:2: `model.on_disk`: found 1000000000 bytes; allowed: less than `model.size`, which is not given"
    ]
    assert silent(base=sized("size: 2GB, on_disk: 1GB")).model.on_disk == 1_000_000_000


def test_simulated():
    """Simulated is never passed off as real, in neither direction."""
    assert errors(TWIN) == [
        "r.yaml:2: `model.simulated`: found false; engine simulator simulates: write `simulated: true`, "
        "so that nobody takes its figures for real"
    ]
    assert errors(GOOD.replace("org/name", "org/name, simulated: true")) == [
        "r.yaml:2: `model.simulated`: found true; engine vllm is real: leave it out"
    ]
    assert silent(base=TWIN.replace("org/name", "org/name, simulated: true")).model.simulated


def test_image():
    """Docker needs an image; a tag that can move is a warning of `review` (ENG034), not an error."""
    assert errors(DOCKER) == [
        "r.yaml:3: `engine.image` is missing: runtime docker needs one, best by digest (`name@sha256:...`)"
    ]
    made = silent(base=DOCKER + "  image: a/b:1\n")
    assert [(one.code, one.severity) for one in review(made, ()) if one.code == "ENG034"] == [("ENG034", Severity.WARN)]
    assert silent("  image: a/b:1\n  image_note: no digest is published\n", DOCKER).engine.image == "a/b:1"
    assert silent(f"  image: a/b@sha256:{'0' * 64}\n", DOCKER).engine.image_note == ""


@for_each(
    "image, version",
    [
        ("vllm/vllm-openai:v0.34.0-aarch64", "0.34.0"),
        ("lmsysorg/sglang:v0.5.23rc1-cu130", "0.5.23rc1"),
        (f"docker.io/vllm/vllm-openai:v0.33.0@sha256:{'0' * 64}", "0.33.0"),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda-b10269", "b10269"),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc1", "1.3.0rc1"),
        ("nvcr.io/nvidia/vllm:25.09-py3", ""),  # NVIDIA's month, not vLLM's release
        ("vllm/vllm-openai:nightly", ""),
        ("registry:5000/vllm", ""),
    ],
)
def test_the_version_is_read_from_the_images_tag(image, version):
    """A recipe without `version` takes that of the tag; where the tag has none, the node is asked at `up`."""
    assert version_of_tag(image) == version
    without = DOCKER.replace("  version: 0.21.0\n", "")
    assert "version:" not in without and silent(f"  image: {image}\n", without).engine.version == version


def test_the_simulator_needs_a_version():
    """Nothing on a node shows which release it should play."""
    played = TWIN.replace("org/name", "org/name, simulated: true").replace("  version: 0.21.0\n", "")
    assert errors(played) == ["r.yaml:3: `engine.version` is missing: the simulator plays the version that it is given"]


def test_a_version_may_move():
    """`nightly` is no release: it is planned by the newest one that was read, with a warning."""
    assert silent(base=GOOD.replace("version: 0.21.0", "version: nightly")).engine.version == "nightly"


def test_runtime():
    """A key of the other runtime is refused, not ignored."""
    assert recipe_errors("  image: a/b:1\n") == [
        "r.yaml:7: `engine.image`: runtime process starts no container; leave it out (a profile removes it with `image: null`)"
    ]
    assert errors(DOCKER + "  venv: /opt/v\n  image: a/b:1\n  image_note: x\n") == [
        "r.yaml:7: `engine.venv`: belongs to `runtime: process`; with docker the engine is in the image"
    ]
    assert silent("  venv: /opt/v\n").engine.venv == "/opt/v"


def test_ranks():
    """One rank per GPU, one GPU per node."""
    assert recipe_errors("nodes: 2\nparallelism: {tp: 2, pp: 2}\n") == [
        "r.yaml:8: `parallelism`: found tp 2 x pp 2 x dp 1 = 4 ranks on `nodes: 2`; "
        "allowed: a product of 2, for each rank needs a GPU, and a GB10 node has one"
    ]
    assert silent("nodes: 4\nparallelism: {tp: 2, pp: 2}\n").parallelism.world_size == 4


def test_expert_parallel():
    """Experts need ranks to be spread over."""
    assert recipe_errors("nodes: 2\nparallelism: {pp: 2, ep: true}\n") == [
        "r.yaml:8: `parallelism.ep`: found true with tp 1 and dp 1; "
        "experts are spread over tp x dp ranks, so one of the two must be 2 or more"
    ]
    assert silent("nodes: 2\nparallelism: {dp: 2, ep: true}\n").parallelism.ep


def test_llama_cpp_parallelism():
    """llama.cpp has no tensor parallelism over nodes."""
    assert errors(LLAMA + "nodes: 2\nparallelism: {tp: 2}\n") == [
        "r.yaml:8: `parallelism`: found tp 2, dp 1, ep false; allowed: tp 1, dp 1, ep false: "
        "llama.cpp splits layers over nodes (pp) and nothing else"
    ]
    assert silent("nodes: 2\nparallelism: {pp: 2}\n", LLAMA).parallelism.pp == 2


def test_pipeline_with_mtp():
    """MTP's draft layer sits behind the last stage."""
    assert recipe_errors("nodes: 2\nparallelism: {pp: 2}\nspeculation: {method: mtp, tokens: 2}\n") == [
        "r.yaml:8: `parallelism.pp`: found 2 with `speculation.method: mtp`; allowed: 1: "
        "the draft layer works on the last hidden state, which only the last stage has"
    ]
    assert silent("nodes: 2\nparallelism: {tp: 2}\nspeculation: {method: mtp, tokens: 2}\n").speculation.tokens == 2


def test_ports():
    """API and rendezvous cannot share a port."""
    assert recipe_errors("serving: {master_port: 8000}\n") == [
        "r.yaml:7: `serving.master_port`: found 8000, the same as `serving.port`; the ranks' rendezvous needs a port of its own"
    ]
    assert silent("serving: {master_port: 8001}\n").serving.master_port == 8001


def test_batched_tokens():
    """One step must hold a token of each sequence."""
    assert recipe_errors("serving: {batched_tokens: 64, sequences: 65}\n") == [
        "r.yaml:7: `serving.batched_tokens`: found 64; allowed: 65 (`serving.sequences`) or more, "
        "for one step must hold a token of each sequence"
    ]
    assert silent("serving: {batched_tokens: 64, sequences: 64}\n").serving.sequences == 64


def test_gateway():
    """The gateway's two ports are its own, and files go with `tls: files` and with nothing else."""
    assert recipe_errors("serving: {gateway: {port: 8000}}\n") == [
        "r.yaml:7: `serving.gateway.port`: found 8000; `serving.gateway.port` is `serving.port`"
    ]
    assert recipe_errors("serving: {gateway: {port: 7999}}\n") == [
        "r.yaml:7: `serving.gateway.port`: found 7999; the port after it, for metrics, is `serving.port`"
    ]
    assert recipe_errors("serving: {gateway: {certificate: /c.pem}}\n") == [
        "r.yaml:7: `serving.gateway.certificate`: a path is expected with `serving.gateway.tls: files`, found 'internal' and '/c.pem'"
    ]
    assert len(recipe_errors("serving: {gateway: {tls: files}}\n")) == 2
    gateway = silent(
        "serving: {gateway: {tls: files, certificate: /c.pem, key: /k.pem, names: [a.b], body_limit: 1m}}\n"
    )
    assert (gateway.serving.gateway.tls, gateway.serving.gateway.body_limit, gateway.serving.gateway.names) == (
        "files",
        2**20,
        ("a.b",),
    )


@pytest.mark.parametrize("name", ["NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "VLLM_HOST_IP", "MASTER_ADDR"])
def test_per_rank_variables(name):
    """One value for all ranks is wrong on one of them."""
    assert recipe_errors(f"env: {{{name}: x}}\n") == [
        f"r.yaml:7: `env.{name}` differs from node to node and is filled in by the launcher: "
        "leave it out; a node's interface and HCAs can be given in the cluster file"
    ]


def test_gid_index():
    """Index 3 is folklore: it moves."""
    assert recipe_errors("env: {NCCL_IB_GID_INDEX: 3}\n") == [
        "r.yaml:7: `env.NCCL_IB_GID_INDEX` names an index that differs between nodes and moves when a link bounces: "
        "leave it out; with NCCL_IB_ROCE_VERSION_NUM=2 NCCL finds the entry on each node"
    ]
    assert silent("env: {NCCL_IB_ROCE_VERSION_NUM: 2}\n").env == {"NCCL_IB_ROCE_VERSION_NUM": "2"}


@pytest.mark.parametrize(
    "entry", ["OPENAI_API_KEY: abc", "VLLM_API_KEY: x", "MY_PASSWORD: x", "INNOCENT: hf_abcdefghijklmnop"]
)
def test_keys_in_env(entry):
    """A key in a file ends in a repository; its value is not repeated."""
    name, _, value = entry.partition(": ")
    (line,) = recipe_errors(f"env: {{{entry}}}\n")
    assert line == (
        f"r.yaml:7: `env.{name}`: a key must not be in a file (its value is not shown); take it out, "
        "export it where you call sparkwright, and name the variable in `serving.api_key_env`"
    )
    assert value not in line.removeprefix(f"r.yaml:7: `env.{name}`") or len(value) == 1 or value == "abc"


def test_env_names():
    """Names with a dash or a blank never reach the engine."""
    assert recipe_errors("env: {A-B: x}\n") == [
        "r.yaml:7: `env.A-B` is no name of an environment variable: letters, digits and `_`, no digit first"
    ]
    assert silent("env: {HF_TOKEN: '', RAY_memory_monitor_refresh_ms: 0, F: 1.50}\n").env["F"] == "1.50"


@for_each(
    "flag, message",
    [
        ("--foo: 1", "`flags.--foo`: write flags without dashes, as in `foo`"),
        ("max-model-len: 1", "`flags.max-model-len` is set by `serving.context`; leave it out here"),
        ("gpu_memory_utilization: 1", "`flags.gpu_memory_utilization` is set by `serving.memory_fraction`; leave it out here"),
        ("port: 1", "`flags.port` is set by `serving.port`; leave it out here"),
        ("node-rank: 1", "`flags.node-rank` is filled in for each rank by the launcher; leave it out here"),
        ("api-key: abc", "`flags.api-key`: a key on the command line is seen by every user of the node; use `serving.api_key_env`"),
        ("hf-token: abc", "`flags.hf-token`: a key on the command line is seen by every user of the node; use `serving.api_key_env`"),
        ("block-size 256: x", "`flags.block-size 256`: a flag's name is one word; its value comes after the colon"),
        ('a: "x\\ny"', "`flags.a`: found a text of several lines; a flag takes one value: for JSON write a mapping or a list, for long text use `>-`"),
        ("a: sk-1234567890", "`flags.a`: a key must not be in a file (its value is not shown)"),
        ('a: "x\\0y"', "`flags.a`: found control characters in the text; allowed: printable text"),
    ],
)  # fmt: skip
def test_flags_that_are_refused(flag, message):
    """A flag that a key sets, or that is none, is reported with the right place."""
    assert recipe_errors(f"flags:\n  {flag}\n") == [f"r.yaml:8: {message}"]


def test_flags_that_pass():
    """All kinds of values, plain again."""
    flags = silent(
        "flags:\n  a: 256\n  b: true\n  c: false\n  d: {x: [1, null]}\n  e: 0.50\n  f: on\n  g: >-\n    one\n    two\n"
    ).flags
    assert flags == {"a": 256, "b": True, "c": False, "d": {"x": [1, None]}, "e": 0.5, "f": "on", "g": "one two"}
    assert type(flags["a"]) is int and type(flags["e"]) is float


def test_the_engine_decides_which_flags_are_ours():
    """`ctx-size` is llama.cpp's word; vLLM does not know it."""
    assert errors(LLAMA + "flags: {ctx-size: 1}\n") == [
        "r.yaml:7: `flags.ctx-size` is set by `serving.context`; leave it out here"
    ]
    assert silent("flags: {ctx-size: 1}\n").flags == {"ctx-size": 1}


def test_mounts():
    """Two mounts in one place hide each other."""
    assert recipe_errors("mounts:\n  - /a:/x\n  - /b:/x:ro\n")[1] == (
        "r.yaml:9: `mounts[1]`: found '/b:/x:ro'; another mount has the same place in the container"
    )
    assert silent("mounts: [/a:/x, '~/b:/y:ro']\n").mounts == ("/a:/x", "~/b:/y:ro")


def test_figures_need_sources():
    """A number without its source is not published."""
    assert recipe_errors("published:\n  - what: decode\n    value: 3\n    unit: t/s\n    source: ''\n") == [
        "r.yaml:11: `published[0].source` is empty; a figure without its source is not published"
    ]
    assert silent("published: [{what: d, value: 3, unit: t/s, source: s}]\n").published[0].value == 3.0


def test_gates():
    """A start has no baseline; a line that is none is named with its place."""
    assert silent("gates:\n  - ttft.p90 < 5s @ level=1-user\n  - errors == 0\n").gates[1] == "errors == 0"
    assert errors(GOOD + "gates:\n  - errors == 0\n  - ttfs < 1s\n") == [
        f"r.yaml:{GOOD.count(chr(10)) + 3}: `gates[1]`: found 'ttfs < 1s': no metric 'ttfs': did you mean ttft?"
    ]
    (found,) = errors(GOOD + "gates: [decode >= baseline]\n")
    assert "`gates[0]`" in found and "a start has none" in found


def test_replicas():
    """Their number has bounds, a name has room for `-r2`, and a model that rests has none."""
    assert errors(GOOD + "serving: {replicas: 65}\n")[0].startswith(
        "r.yaml:7: `serving.replicas`: found 65; allowed 1..64"
    )
    assert errors(GOOD + "serving:\n  on_demand: true\n  replicas: 2\n") == [
        "r.yaml:9: `serving.replicas`: found 2 with `serving.on_demand: true`; replicas share the load of a model that always serves; leave out one of the two"
    ]
    assert silent("serving: {replicas: 2}\n").serving.replicas == 2
