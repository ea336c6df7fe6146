"""llama.cpp over two nodes: where the workers listen, what the head is given, and what is refused."""

from dataclasses import replace

import pytest

from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Phase
from sparkwright.domain.finding import Severity
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Runtime, Serving
from sparkwright.engines.catalog import engine, traits
from sparkwright.engines.dialect import dialect
from unit.engines.samples import local_context, placement, small_recipe

DOCKER = EngineChoice("llama-cpp", "2026.10.11549", Runtime.DOCKER, image="llama.cpp:full")
PROCESS = replace(DOCKER, runtime=Runtime.PROCESS, image="")
TWO = replace(
    small_recipe(DOCKER, nodes=2), model=Model(path="m.gguf"), parallelism=Parallelism(pp=2), serving=Serving()
)


def render_ranks(recipe: Recipe, nodes: int = 2) -> tuple[RankSpec, ...]:
    context = replace(local_context(nodes, "/home/ai/models/m.gguf"), api_key=Secret("k-123"))
    return engine("llama-cpp").render(recipe, placement(nodes), context)


def rpc_findings(recipe: Recipe) -> list[tuple[str, str]]:
    return [(f.subject, f.severity) for f in engine("llama-cpp").check(recipe) if f.code == "ENG023"]


def word_after(words: tuple[str, ...], name: str) -> str:
    return words[words.index(name) + 1]


def test_workers_listen_on_the_fabric_only() -> None:
    """The protocol has no authentication: on 0.0.0.0 everybody could read the worker's memory."""
    worker = render_ranks(TWO)[1]
    assert word_after(worker.argv, "-H") == "192.168.100.11"
    assert worker.listens == (("192.168.100.11", 25000),)
    assert worker.engine_words == ()


def test_the_head_names_its_workers_in_rank_order() -> None:
    """All layers are offloaded, else the workers would get none; one node has neither option."""
    head = render_ranks(replace(TWO, nodes=3, parallelism=Parallelism(pp=3)), 2)[0]
    assert word_after(head.argv, "--rpc") == "192.168.100.11:25000"
    assert word_after(head.argv, "--n-gpu-layers") == "99"
    alone = render_ranks(replace(TWO, nodes=1, parallelism=Parallelism()), 1)[0]
    assert not {"--rpc", "--n-gpu-layers"} & set(alone.argv)


@pytest.mark.parametrize("name", ["gpu-layers", "n_gpu_layers", "--n-gpu-layers"])
def test_a_recipes_own_number_of_layers_is_used_alone(name: str) -> None:
    """Given twice, the last would win by accident."""
    argv = render_ranks(replace(TWO, flags={name: 40}))[0].argv
    assert sum(word in ("--gpu-layers", "--n-gpu-layers") for word in argv) == 1
    assert "40" in argv


def test_only_the_head_has_the_weights_and_the_key() -> None:
    """A worker needs neither: it gets its layers over the wire, and keeps large ones in a cache of its own node."""
    head, worker = render_ranks(TWO)
    assert traits(TWO).by_layer
    assert [m.container for m in head.mounts] == ["/models"]
    assert [(m.host, m.container, m.read_only) for m in worker.mounts] == [
        ("/home/ai/.cache/sparkwright/llama.cpp", "/cache", False)
    ]
    assert (set(head.secrets), set(worker.secrets)) == ({"LLAMA_API_KEY"}, set())
    assert worker.env["LLAMA_CACHE"] == "/cache"


@pytest.mark.parametrize(
    ("choice", "folder"),
    [
        (DOCKER, "/app"),
        (replace(DOCKER, entrypoint=("/opt/bin/llama-server",)), "/opt/bin"),
        (PROCESS, "/usr/local/bin"),
        (replace(PROCESS, entrypoint=("/opt/bin/llama-server",)), "/opt/bin"),
    ],
)
def test_the_worker_takes_the_program_next_to_the_server(choice: EngineChoice, folder: str) -> None:
    """Head and workers must be of one build: another version is refused by the protocol."""
    script, first = render_ranks(replace(TWO, engine=choice))[1].argv[-7:-5]
    assert first == folder
    assert 'PATH="$0:$PATH"' in script


@pytest.mark.parametrize(("version", "words"), [("b9999", ["--no-mmap"]), ("b10269", ["--load-mode", "none"])])
def test_weights_are_never_mapped_on_unified_memory(version: str, words: list[str]) -> None:
    """A mapped file and the CUDA buffers are the same memory; the option's name changed in 2026."""
    argv = render_ranks(replace(TWO, engine=replace(DOCKER, version=version)))[0].argv
    assert [word for word in argv if word in ("--no-mmap", "--load-mode", "none")] == words


def test_that_rpc_is_open_is_reported() -> None:
    """Always on several nodes, never on one."""
    assert rpc_findings(TWO) == [("nodes", Severity.WARN)]
    assert rpc_findings(replace(TWO, nodes=1, parallelism=Parallelism())) == []


def test_what_cannot_work_is_refused() -> None:
    """A wheel without RPC, and recipes whose workers would get nothing."""
    assert ("engine.venv", Severity.BLOCK) in rpc_findings(replace(TWO, engine=replace(PROCESS, venv="/opt/v")))
    assert ("flags", Severity.BLOCK) in rpc_findings(replace(TWO, flags={"n-gpu-layers": 0}))
    assert ("flags", Severity.BLOCK) in rpc_findings(replace(TWO, flags={"device": "none"}))


def test_a_worker_that_waits_holds_nobody_up() -> None:
    """Only the head reports how far the load is; a worker that still counted as starting would look stuck."""
    event = dialect("llama-cpp").read("Starting RPC server v7.0.0")
    assert event is not None
    assert (event.phase, event.ready, event.error) == (Phase.SERVER, False, False)
    later = dialect("llama-cpp").read("Accepted client connection")
    assert later is not None
    assert later.alive


@pytest.mark.parametrize(
    "line",
    [
        "error: no rpc-server here: it comes with a llama.cpp that was built with GGML_RPC=ON",
        "/src/ggml/src/ggml-rpc/ggml-rpc.cpp:566: Remote RPC server crashed or returned malformed response",
        "RPC server version mismatch: 6.0.0",
        "/src/ggml/src/ggml-rpc/ggml-rpc.cpp:547: Failed to connect to 192.168.100.11:25000",
        "Failed to create server socket",
    ],
)
def test_what_ends_rpc_is_an_error(line: str) -> None:
    """A lost worker, another version, no program: the cause is first."""
    event = dialect("llama-cpp").read(line)
    assert event is not None
    assert event.error
