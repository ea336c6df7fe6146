"""The other engines' command lines: their own flags, their own way of refusing, and what the simulator makes of
them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from simulators import console, llama, ray, sglang, trtllm
from simulators.console import NoStart

CONFIG = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 512}


def test_sglang_refuses_what_its_version_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    """argparse's two lines and exit code 2, for a flag of another engine as for a wrong choice."""
    for words in (["--gpu-memory-utilization", "0.8"], ["--kv-cache-dtype", "fp8"]):
        with pytest.raises(SystemExit) as stop:
            sglang.run(["--model-path", "m", *words], {})
        assert stop.value.code == 2
        assert "launch_server.py: error: " in capsys.readouterr().err


def test_sglang_has_the_flags_of_the_version_that_is_asked_for() -> None:
    """0.5.10's data, not another's; a version without data is named."""
    with pytest.raises(NoStart, match=r"sglang-0\.4\.1") as stopped:
        sglang.run(["--model-path", "m"], {"SPARKWRIGHT_SIMULATOR_VERSION": "0.4.1"})
    assert stopped.value.code == 2


@pytest.mark.parametrize("version", ["0.5.10", "0.5.12", "0.5.16", "0.5.17", "0.5.20", "0.5.23"])
def test_every_read_version_of_sglang_can_be_played(version: str) -> None:
    """Versions list a flag's names in another order; what is given arrives all the same."""
    parser = console.parser("launch_server.py", f"sglang-{version}")
    words = ["--model-path", "m", "--tp-size", "2", "--nnodes", "2", "--node-rank", "1", "--context-length", "4096"]
    given = parser.parse_args([*words, "--dist-init-addr", "10.0.0.1:25000", "--mem-fraction-static", "0.5"])
    args = sglang._canonical(partial(parser.value, given))
    assert (args.tensor_parallel_size, args.nnodes, args.node_rank, args.max_model_len) == (2, 2, 1, 4096)
    assert (args.master_addr, args.master_port, args.gpu_memory_utilization) == ("10.0.0.1", 25000, 0.5)
    assert given.enable_metrics is False


def test_sglang_takes_its_key_from_the_file_and_the_command_line_wins(tmp_path: Path) -> None:
    """--config is before everything else, wherever it is written."""
    file = tmp_path / "key.yaml"
    file.write_text(json.dumps({"api-key": "hidden", "port": 1}))
    words = sglang._configured(["--model-path", "m", "--config", str(file), "--port", "2"])
    assert words == ["--api-key", "hidden", "--port", "1", "--model-path", "m", "--port", "2"]


def test_trtllm_refuses_as_click_does(capsys: pytest.CaptureFixture[str]) -> None:
    """Usage, and the one option that it does not know."""
    with pytest.raises(SystemExit) as stop:
        trtllm.run(["m", "--max-model-len", "4096"], {})
    assert stop.value.code == 2
    assert "Error: No such option: --max-model-len" in capsys.readouterr().err


def test_trtllm_reports_when_mpi_has_too_few_ranks(tmp_path: Path) -> None:
    """Two ranks need mpirun: started alone it does not wait for ever."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(NoStart, match="world size 2"):
        trtllm.run([str(tmp_path), "--tp_size", "2"], {})


def test_the_options_file_of_trtllm_overrides_the_command_line(tmp_path: Path) -> None:
    """The options merge as in its own loader; only rank 0 has the file."""
    file = tmp_path / "extra.yaml"
    file.write_text("max_batch_size: 3\nkv_cache_config: {free_gpu_memory_fraction: 0.4, enable_block_reuse: false}\n")
    given = trtllm._given(["m", "--max_batch_size", "8", "--extra_llm_api_options", str(file)], trtllm.VERSION)
    args = trtllm._canonical(given, (0, 1), {})
    assert (args.max_num_seqs, args.gpu_memory_utilization, args.enable_prefix_caching) == (3, 0.4, False)


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("77.0;tcp://127.0.0.1,10.0.1.1,10.0.2.1:4000;tcp6://[fd00::1]:4001", "10.0.1.1"),
        ("77.0;tcp://127.0.0.1:4000", "127.0.0.1"),
        ("", "127.0.0.1"),
    ],
)
def test_mpi_ranks_meet_where_mpirun_listens(uri: str, address: str) -> None:
    """The ranks meet at the first of mpirun's addresses that is not only this node's own."""
    assert trtllm._head({"OMPI_MCA_orte_hnp_uri": uri}) == address


def test_llama_server_loads_only_gguf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is none ends it with code 1, as does a word that it does not know."""
    file = tmp_path / "m.gguf"
    file.write_bytes(b"PK\x03\x04")
    with pytest.raises(NoStart, match="invalid magic") as stopped:
        llama.run(["-m", str(file)], {})
    assert stopped.value.code == 1
    with pytest.raises(SystemExit) as stop:
        llama.run(["-m", str(file), "--nnodes", "2"], {})
    assert stop.value.code == 1
    assert capsys.readouterr().err.startswith("error: invalid argument: ")


def test_the_slots_of_llama_share_its_context(tmp_path: Path) -> None:
    """--ctx-size is of all slots together, and every RPC server is one more device in the pipeline."""
    words = ["-m", str(tmp_path / "m.gguf"), "--ctx-size", "8192", "--parallel", "4"]
    given = console.parser("llama-server", f"llama-cpp-{llama.VERSION}").parse_args(words)
    args = llama._canonical(given, 2)
    assert (args.max_model_len, args.max_num_seqs, args.pipeline_parallel_size) == (2048, 4, 2)


def test_what_is_in_the_file_is_not_carried_to_ray_s_workers(tmp_path: Path) -> None:
    """Everything else of the head's environment is (vllm/ray/ray_env.py)."""
    (tmp_path / ray.NOT_CARRIED).write_text('["VLLM_HOST_IP"]')
    env = {"VLLM_HOST_IP": "10.0.0.1", "VLLM_USE_V1": "1", "VLLM_CONFIG_ROOT": str(tmp_path)}
    assert "VLLM_HOST_IP" not in ray.carried(env)
    assert ray.carried(env)["VLLM_USE_V1"] == "1"
    assert ray.carried({"VLLM_HOST_IP": "10.0.0.1"}) == {"VLLM_HOST_IP": "10.0.0.1"}


def test_llama_server_reports_its_build(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` as the real one answers, which is how an image or a node is asked what it has."""
    assert llama.run(["--version"], {}) == 0
    assert capsys.readouterr().err == "version: 11549 (simulated)\n"
