"""TensorRT-LLM's ranks: who runs mpirun, what every node is given, and what is refused."""

from dataclasses import replace

import pytest
import yaml

from sparkwright.domain.command import Secret
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import EngineChoice, Expose, Parallelism, Parsers, Recipe, Runtime, Serving, Speculation
from sparkwright.engines.catalog import engine, review
from unit.engines.samples import hub_context, placement, small_recipe

DOCKER = EngineChoice("trtllm", "1.3.0rc13", Runtime.DOCKER, image="trtllm:1")
TWO = replace(small_recipe(DOCKER, nodes=2), serving=Serving(context=4096, sequences=4, memory_fraction=0.4))
CONTEXT = replace(hub_context(), launch_key=Secret("launch-key"), api_key=None)


def render_ranks(recipe: Recipe, nodes: int = 2) -> tuple[RankSpec, ...]:
    return engine("trtllm").render(recipe, placement(nodes), CONTEXT)


def finding_codes(recipe: Recipe) -> list[str]:
    """The codes without the warning that every recipe over several nodes has."""
    return [finding.code for finding in engine("trtllm").check(recipe) if finding.code != "ENG032"]


def word_after(words: tuple[str, ...], name: str) -> str:
    return words[words.index(name) + 1]


def written(spec: RankSpec, name: str) -> str:
    return next(file.text for file in spec.files if file.name == name)


def test_one_node_needs_no_mpi() -> None:
    """trtllm-serve runs directly, with its options file and nothing of the launcher."""
    (spec,) = render_ranks(replace(TWO, nodes=1, parallelism=Parallelism()), 1)
    assert spec.entrypoint == ("trtllm-serve",)
    assert spec.argv == spec.engine_words
    assert [file.name for file in spec.files] == ["extra_llm_api_options.yaml"]
    assert not any(name.startswith("OMPI_") for name in spec.env)


def test_the_key_of_a_launch_is_in_no_command_line_and_no_environment() -> None:
    """It goes through the 0600 file only, and is taken away before the engine starts."""
    for spec in render_ranks(TWO):
        assert {name: value.reveal() for name, value in spec.secrets.items()} == {
            "SPARKWRIGHT_LAUNCH_KEY": "launch-key"
        }
        assert "launch-key" not in " ".join((*spec.argv, *spec.env.values()))
    assert "unset SPARKWRIGHT_LAUNCH_KEY" in word_after(render_ranks(TWO)[0].argv, "-c")


def test_the_agent_listens_on_its_fabric_address_only() -> None:
    """An agent on 0.0.0.0 would be an open port on the management network."""
    worker = render_ranks(TWO)[1]
    assert word_after(worker.argv, "--listen") == "192.168.100.11"
    assert worker.listens == (("192.168.100.11", 25000),)
    assert worker.engine_words == ()


def test_mpirun_knows_its_nodes_by_fabric_address() -> None:
    """No DNS, no ~/.ssh: one slot for each address, and our program where ssh would be."""
    head = render_ranks(TWO)[0]
    assert written(head, "hostfile") == "192.168.100.10 slots=1\n192.168.100.11 slots=1\n"
    assert word_after(head.argv, "plm_rsh_agent").endswith("mpi_launch.py rsh --port 25000")


def test_what_mpirun_hands_to_all_nodes_is_right_on_all() -> None:
    """It forwards the head's OMPI_MCA_ variables: a name of the head's interface in one stops the other daemons."""
    first, second = ({k: v for k, v in spec.env.items() if k.startswith("OMPI_")} for spec in render_ranks(TWO))
    assert first == second
    assert "OMPI_MCA_btl_tcp_if_include" not in first
    assert [spec.env["SPARKWRIGHT_INTERFACE"] for spec in render_ranks(TWO)] == ["enp1s0f0np0", "enp1s0f1np1"]


@pytest.mark.parametrize(
    ("first", "second", "network"),
    [
        ("192.168.100.10", "192.168.100.11", "192.168.100.10/31"),
        ("192.168.77.1", "192.168.77.2", "192.168.77.0/30"),
        ("10.0.0.200", "10.0.1.7", "10.0.0.0/23"),
    ],
)
def test_the_daemons_meet_in_the_smallest_common_network(first: str, second: str, network: str) -> None:
    """One prefix that suits every node; Open MPI 4.1 takes a /32 for all interfaces, the management one too."""
    fabric = {"spark-1": FabricChoice(first, "a"), "spark-2": FabricChoice(second, "b")}
    for spec in engine("trtllm").render(TWO, Placement(("spark-1", "spark-2"), fabric), CONTEXT):
        assert spec.env["OMPI_MCA_oob_tcp_if_include"] == network


def test_that_the_daemons_listen_everywhere_is_reported() -> None:
    """Open MPI has no option for it; one node has no daemons."""
    assert "ENG032" in [finding.code for finding in engine("trtllm").check(TWO)]
    assert [*engine("trtllm").check(replace(TWO, nodes=1, parallelism=Parallelism()))] == []


def test_a_recipe_cannot_move_mpi_off_the_fabric() -> None:
    """Its environment is laid over ours, but for where the daemons meet."""
    moved = replace(TWO, env={"OMPI_MCA_oob_tcp_if_include": "docker0", "NCCL_DEBUG": "INFO"})
    env = render_ranks(moved)[0].env
    assert (env["OMPI_MCA_oob_tcp_if_include"], env["NCCL_DEBUG"]) == ("192.168.100.10/31", "INFO")


def test_every_option_is_spelled_as_click_wants_it() -> None:
    """Underscores, no `--no-` forms, a list as the option repeated."""
    flags = {
        "trust-remote-code": True,
        "fail_fast_on_attention_window_too_large": False,
        "custom_module_dirs": ["a", "b"],
    }
    recipe = replace(TWO, flags=flags, parsers=Parsers(tool="qwen3", reasoning="qwen3"))
    words = render_ranks(recipe)[0].engine_words
    assert "--trust_remote_code" in words
    assert not any("fail_fast" in word for word in words)
    assert words.count("--custom_module_dirs") == 2
    assert word_after(words, "--tp_size") == "2"
    assert word_after(words, "--tool_parser") == "qwen3"
    assert not {f.code for f in review(recipe, render_ranks(recipe))} - {"ENG005", "ENG032", "ENG034"}


def test_the_options_file_holds_ours_and_the_recipes() -> None:
    """The file's kv_cache_config replaces the command line's, so the fraction is in it, too; mappings merge.

    Read as TensorRT-LLM reads it, with PyYAML: a small number stays a number.
    """
    given = {"kv_cache_config": {"enable_block_reuse": False}, "enable_iter_perf_stats": False, "threshold": 1e-05}
    recipe = replace(
        TWO,
        serving=replace(TWO.serving, kv_dtype="fp8"),
        speculation=Speculation("mtp", 2),
        flags={"extra_llm_api_options": given},
    )
    head = render_ranks(recipe)[0]
    options = yaml.safe_load(written(head, "extra_llm_api_options.yaml"))
    fraction = {"dtype": "fp8", "free_gpu_memory_fraction": 0.4, "enable_block_reuse": False}
    assert options["kv_cache_config"] == fraction
    assert options["speculative_config"] == {"decoding_type": "MTP", "num_nextn_predict_layers": 2}
    assert (options["return_perf_metrics"], options["enable_iter_perf_stats"]) == (True, False)
    assert options["threshold"] == 1e-05
    assert (
        word_after(head.engine_words, "--extra_llm_api_options") == "/run/sparkwright/files/extra_llm_api_options.yaml"
    )


def test_a_venv_has_its_own_programs() -> None:
    """Process runtime: launcher, trtllm-llmapi-launch and trtllm-serve all come from the venv."""
    recipe = replace(TWO, engine=EngineChoice("trtllm", "1.3.0rc13", Runtime.PROCESS, venv="/opt/v"))
    head = render_ranks(recipe)[0]
    assert head.argv[0] == "/opt/v/bin/python"
    assert "/opt/v/bin/trtllm-llmapi-launch" in head.argv
    assert head.argv[head.argv.index("/opt/v/bin/trtllm-llmapi-launch") + 1] == "/opt/v/bin/trtllm-serve"


def test_a_model_of_the_hub_is_given_as_its_folder() -> None:
    """Offline, its tokenizer is not found by the hub's name alone; the folder is the one inside the container."""
    folder = "/models/hub/models--deepseek-ai--DeepSeek-V4-Flash/snapshots/abc"
    assert render_ranks(TWO)[0].engine_words[0] == folder


def test_a_key_that_nobody_checks_is_refused() -> None:
    """trtllm-serve has no API key: asking for one would only seem safe. The gateway has its own."""
    assert finding_codes(replace(TWO, serving=Serving(api_key_env="MY_KEY"))) == ["ENG021"]
    assert finding_codes(replace(TWO, serving=Serving(expose=Expose.ALL))) == []


def test_what_it_lacks_is_named() -> None:
    """Data-parallel replicas, a path to an options file, and methods that it does not have."""
    assert finding_codes(replace(TWO, parallelism=Parallelism(dp=2))) == ["ENG022"]
    assert finding_codes(replace(TWO, flags={"extra_llm_api_options": "/tmp/extra.yaml"})) == ["ENG022"]
    assert finding_codes(replace(TWO, speculation=Speculation("medusa"))) == ["ENG022"]
    assert finding_codes(replace(TWO, speculation=Speculation("x", options={"decoding_type": "SaveState"}))) == []
    assert finding_codes(replace(TWO, flags={"config": "/tmp/extra.yaml"})) == ["ENG013"]
