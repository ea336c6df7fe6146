"""`loading.weight_cache`: the process that keeps a rank's weights, the options of both, and where it cannot be."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.domain.command import Completed
from sparkwright.domain.ledger import KEEPER, KV_POOL, WEIGHTS
from sparkwright.domain.plan import Keeper, RankSpec
from sparkwright.domain.recipe import EngineChoice, Loading, Mod, Parallelism, Recipe, Runtime, Serving, Speculation
from sparkwright.engines.catalog import engine_of, rehearse
from sparkwright.engines.flags import check_flags
from sparkwright.facts.keepers import parse
from sparkwright.planner.ledger import ledger
from unit.checks.samples import RECIPE, WHOLE, healthy
from unit.engines.samples import hub_context, local_context, placement, sglang_recipe, small_recipe

KEEPS = Loading(weight_cache=True)
SOCKETS = 107  # bytes of a Unix socket's path
ENGINE = EngineChoice("vllm", "0.33.0", Runtime.PROCESS, venv="/opt/venv")


def vllm_recipe(nodes: int = 1, **more: object) -> Recipe:
    flags = {"load_format": "fastsafetensors", "moe-backend": "marlin", "enable-log-requests": True}
    serving = Serving(context=32768, kv_dtype="fp8", memory_fraction=0.8, master_port=25000)
    return small_recipe(ENGINE, nodes, serving=serving, flags=flags, loading=KEEPS, **more)


def made_ranks(recipe: Recipe) -> tuple[RankSpec, ...]:
    context = replace(local_context(recipe.nodes, "/models/qwen3-8b"), deployment="chat")
    return engine_of(recipe).render(recipe, placement(recipe.nodes), context)


def keeper_of(rank: RankSpec) -> Keeper:
    assert rank.keeper
    return rank.keeper


def option_value(words: tuple[str, ...], option: str) -> str:
    return words[words.index(f"--{option}") + 1]


def test_vllm_keeps_the_same_weights_in_the_same_layout() -> None:
    """The files are read by the recipe's own loader; the server's options are none of it."""
    (rank,) = made_ranks(vllm_recipe())
    words = keeper_of(rank).spec.argv
    assert words[:5] == ("/opt/venv/bin/python", "-m", "vllm.entrypoints.cli.main", "preload", "--model")
    wanted = {"load-format": "fastsafetensors", "moe-backend": "marlin", "kv-cache-dtype": "fp8"}
    assert {name: option_value(words, name) for name in wanted} == wanted
    assert not {"--host", "--port", "--enable-log-requests", "--gpu-memory-utilization"} & set(words)
    folder = option_value(words, "weight-cache-socket-dir")
    assert keeper_of(rank).folder == folder and folder.startswith("/tmp/sparkwright-weights-")
    assert len(f"{folder}/vllm_weight_cache_{'0' * 32}_draft.sock") < SOCKETS
    assert option_value(rank.argv, "load-format") == "ipc_cache"
    assert option_value(rank.argv, "model-loader-extra-config") == f'{{"socket_dir":"{folder}"}}'
    assert [f for f in check_flags("vllm", "0.33.0", rank.engine_words) if f.severity.stops] == []


def test_over_two_nodes_they_meet_at_a_port_of_their_own() -> None:
    head, worker = made_ranks(vllm_recipe(2))
    for number, rank in enumerate((head, worker)):
        words = keeper_of(rank).spec.argv
        assert option_value(words, "weight-cache-master-port") == "25500" and option_value(words, "node-rank") == str(
            number
        )
        assert option_value(words, "master-addr") == "192.168.100.10" and "--headless" not in words
    assert keeper_of(head).spec.listens == (("192.168.100.10", 25500), ("192.168.100.10", 25501))
    assert keeper_of(worker).spec.listens == ()


def test_in_containers_the_sockets_are_in_what_both_mount() -> None:
    recipe = replace(vllm_recipe(), engine=replace(ENGINE, runtime=Runtime.DOCKER, image="org/vllm", venv=""))
    (rank,) = made_ranks(recipe)
    spec = keeper_of(rank).spec
    assert spec.entrypoint == ("vllm",) and spec.argv[0] == "preload"
    assert option_value(spec.argv, "weight-cache-socket-dir").startswith("/cache/weights-")
    assert "/cache" in {mount.container for mount in spec.mounts} and spec.mounts == rank.mounts
    assert keeper_of(rank).folder == ""


def test_sglang_finds_its_process_by_the_same_variables() -> None:
    """A daemon that its engine starts ends with it: ours is the standalone one, and the ranks are its clients."""
    recipe = replace(sglang_recipe(Runtime.PROCESS), loading=KEEPS, speculation=Speculation())
    head, worker = engine_of(recipe).render(recipe, placement(2), hub_context())
    for rank in (head, worker):
        spec = keeper_of(rank).spec
        assert spec.argv[:3] == ("/opt/v/bin/python", "-m", "sglang.srt.weight_cache.daemon")
        names = [f"SGLANG_WEIGHT_CACHE_{name}_TEMPLATE" for name in ("SOCKET", "READY")]
        assert [spec.env[name] for name in names] == [rank.env[name] for name in names]
        assert option_value(rank.argv, "weight-cache-mode") == "client" and "--weight-cache-mode" not in spec.argv
        assert option_value(spec.argv, "dist-init-method") == "tcp://192.168.100.10:25500"
        assert option_value(spec.argv, "kv-cache-dtype") == "fp8_e4m3"
        assert "k-123" not in f"{spec.argv}{spec.env}" and "--config" not in spec.argv
    assert [f for f in check_flags("sglang", "0.5.23", head.engine_words) if f.severity.stops] == []


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"engine": replace(ENGINE, version="0.26.0")}, "known for 0.32 and newer"),
        ({"engine": EngineChoice("llama-cpp", "b11549", Runtime.PROCESS)}, "llama-cpp has none"),
        ({"engine": replace(ENGINE, entrypoint=("vllm", "serve"))}, "engine.entrypoint"),
        ({"mods": (Mod("patch", {"run.sh": "true"}),)}, "mods"),
        ({"serving": Serving(on_demand=True)}, "serving.on_demand"),
        ({"parallelism": Parallelism(dp=2), "nodes": 2}, "parallelism.dp: 2"),
    ],
)
def test_where_no_process_can_keep_them_the_recipe_is_refused(changed: dict[str, object], why: str) -> None:
    """The ranks start as without the key then, so that `--force` is no surprise."""
    recipe = replace(vllm_recipe(), **changed)  # type: ignore[arg-type]
    (found,) = [one for one in rehearse(recipe) if one.code == "ENG038"]
    assert why in found.evidence and found.severity.stops
    usable = recipe.engine.name == "vllm"
    assert all(rank.keeper is None and "ipc_cache" not in rank.argv for rank in made_ranks(recipe)) if usable else True


def test_sglang_refuses_drafts_with_it_and_so_do_we() -> None:
    """Its ranks would end at once in containers: they watch the process by its number."""
    drafts = replace(sglang_recipe(Runtime.PROCESS), loading=KEEPS)
    contained = replace(sglang_recipe(Runtime.DOCKER), loading=KEEPS, speculation=Speculation())
    for recipe in (drafts, contained):
        assert [one.code for one in rehearse(recipe) if one.code == "ENG038"] == ["ENG038"]


def test_the_ledger_counts_the_weights_once_and_the_process_besides() -> None:
    """It is outside the fraction: vLLM takes the kept weights for its own part, and looks once the process is there."""
    engine = replace(RECIPE.engine, name="vllm", version="0.33.0", entrypoint=None)
    without = replace(RECIPE, engine=engine)
    plain = ledger(without, healthy("spark-1"), WHOLE, 2, "big")
    found = ledger(replace(without, loading=KEEPS), healthy("spark-1"), WHOLE, 2, "big")
    own = found.line(KEEPER)
    assert own and own.bytes and own.high and not plain.line(KEEPER)
    assert found.line(WEIGHTS) == plain.line(WEIGHTS) and KEEPER in found.outside
    assert found.line(KV_POOL) == plain.line(KV_POOL)
    assert found.left == plain.left - own.bytes


def test_names_that_a_node_reports_are_checked() -> None:
    """They become paths and words of commands."""
    text = "\n".join(
        (
            'process\t/s/keepers/chat/rank0\trunning\t{"keeper":"chat","rank":"0","keeper-hash":"abc"}',
            'process\tkeepers/chat/rank0\trunning\t{"keeper":"chat","rank":"0"}',
            'process\t/s/keepers/chat/rank0\trunning\t{"keeper":"../etc","rank":"0"}',
            'docker\tsparkwright-chat-weights1\texited\t{"sparkwright.keeper":"chat","sparkwright.rank":"1"}',
            "docker\tx\trunning\tnull",
            "noise",
        )
    )
    found = parse(Completed(0, text, ""), "spark-1")
    assert [(one.rank, one.running, one.spec_hash) for one in found] == [(0, True, "abc"), (1, False, "")]


def test_the_simulator_says_what_vllm_says() -> None:
    """The life of the process is tested without a GPU this way."""
    words = [
        sys.executable,
        "-m",
        "sparkwright.simulator",
        "preload",
        "--model",
        "m",
        "--weight-cache-socket-dir",
        "/x",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        lines = [running.stdout.readline(), running.stdout.readline()]
        running.terminate()
        assert running.wait(10) == 0
    assert "SIMULATED" in lines[0] and "Weight cache daemon READY: node 0/1" in lines[1]


def test_the_real_process_says_that_it_is_ready_in_the_words_that_are_waited_for() -> None:
    """A recording of `vllm preload` 0.33.0 on a GPU, with 65 GB of weights."""
    log = Path(__file__).resolve().parents[2] / "data/captures/vllm-0.33.0/preload.log"
    (rank,) = made_ranks(vllm_recipe())
    assert rank.keeper
    told = [line for line in log.read_text().splitlines() if rank.keeper.ready in line]
    assert len(told) == 1 and "serving 1 local rank(s)" in told[0]
