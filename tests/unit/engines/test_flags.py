"""Flags against the data read from the wheels: vLLM 0.21.0 and llama.cpp's server in xllamacpp 2026.10.11549."""

import ast
import shlex

import pytest

from sparkwright.domain.finding import Finding, Severity
from sparkwright.engines.flags import RENAMED, check_flags, check_variables, flag_data, load_flags, versions
from unit.engines.samples import DATA, shipped

SEED_003 = """serve deepseek-ai/DeepSeek-V4-Flash --served-model-name deepseek-v4-flash --host 0.0.0.0 --port 8000
 --trust-remote-code --tensor-parallel-size 2 --pipeline-parallel-size 1 --kv-cache-dtype fp8 --block-size 256
 --max-model-len 1000000 --max-num-seqs 6 --max-num-batched-tokens 8192 --gpu-memory-utilization 0.82
 --enable-prefix-caching --speculative-config '{"method":"mtp","num_speculative_tokens":2}' --tokenizer-mode deepseek_v4
 --distributed-executor-backend mp --tool-call-parser deepseek_v4 --enable-auto-tool-choice
 --reasoning-parser deepseek_v4 --default-chat-template-kwargs.thinking=true
 --reasoning-config '{"reasoning_parser":"deepseek_v4","reasoning_start_str":"","reasoning_end_str":""}'
 --default-chat-template-kwargs.reasoning_effort=high --enable-flashinfer-autotune --nnodes 2 --node-rank 1
 --master-addr 192.168.0.8 --master-port 25000 --headless"""


def found(words: str, engine: str = "vllm", version: str = "0.21.0") -> tuple[Finding, ...]:
    return check_flags(engine, version, shlex.split(words))


def one(words: str, engine: str = "vllm", version: str = "0.21.0") -> Finding:
    (finding,) = found(words, engine, version)
    return finding


def test_the_published_command_passes() -> None:
    """Seed 003's whole command line is one that vLLM 0.21.0 takes."""
    assert found(SEED_003) == ()


@pytest.mark.parametrize("log", ["m1-head", "m1-worker", "m2-head", "v4-1m-s6", "b-8b-graphs"])
def test_commands_that_ran_pass(log: str) -> None:
    """What the real engine accepted is never refused; and what it called non-default is known under that name."""
    text = (DATA / "captures_logs" / f"{log}.log").read_text()
    assert found(text.splitlines()[0][2:]) == ()
    data, _ = flag_data("vllm", "0.21.0")
    assert data is not None
    for line in text.splitlines():
        if "non-default args: " in line:
            given = ast.literal_eval(line.split("non-default args: ", 1)[1])
            assert {name.replace("_", "-") for name in given} - {"model-tag"} <= set(data.options)


def test_an_unknown_flag_names_the_right_one() -> None:
    """Capture f-bad-flag: the engine would end at once; the finding says what was meant."""
    finding = one("serve m --kv-cache-dtyp fp8")
    assert (finding.code, finding.severity) == ("ENG001", Severity.OVERRIDE)
    assert finding.remedy == "did you mean --kv-cache-dtype?"


@pytest.mark.parametrize(("word", "right"), sorted(RENAMED["vllm"].items()))
def test_other_engines_words_are_translated(word: str, right: str) -> None:
    """Spelling does not lead from SGLang's words to vLLM's; a table does, and it names options that exist."""
    data, _ = flag_data("vllm", "0.21.0")
    assert data is not None
    assert one(f"serve m --{word} 1").remedy == f"did you mean {right}?"
    assert right in data.names


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("--kv-cache-dtype fp9", "ENG002", "did you mean fp8?"),
        ("--speculative-config.method mpt", "ENG002", "did you mean mtp?"),
        ("""--speculative-config '{"method":"mtp","num_spec_tokens":2}'""", "ENG004", "num_speculative_tokens"),
        ("--speculative-config {method:mtp}", "ENG003", "quotes"),
        ("--max-num-batched-tokens eight", "ENG003", "8192"),
        ("--gpu-memory-utilization 1.2", "ENG003", "at most 1"),
        ("--tensor-parallel-size 2 4", "ENG003", "remove"),
        ("--headless yes", "ENG003", "remove"),
        ("--load-format", "ENG003", "--load-format"),
        ("--tool-call-parser deepsek_v4", "ENG009", "did you mean deepseek_v4?"),
    ],
)
def test_a_wrong_value_says_what_is_allowed(words: str, code: str, says: str) -> None:
    """Each way to give a value wrongly has its code and a remedy that helps."""
    finding = one(f"serve m {words}")
    assert finding.code == code
    assert says in finding.remedy


@pytest.mark.parametrize(
    "words",
    ["--max-model-len 1M", "-tp 2", "--tensor_parallel_size=2", "--no-enable-prefix-caching", "--moe-backend MARLIN",
     "--attention-backend triton_attn", "--served-model-name a b c", "--max-model-len -1", "-O3 -tp 2",
     "--compilation-config.cudagraph_mode PIECEWISE", "--cudagraph-capture-sizes 1 2 4", "--hf-overrides '{}'"],
)  # fmt: skip
def test_every_right_spelling_passes(words: str) -> None:
    """Underscores, short names, `=`, dotted keys, folded case and human sizes are vLLM's own ways to write."""
    assert found(f"serve m {words}") == ()


def test_a_neighbour_of_the_same_series_serves_with_a_note() -> None:
    """A fork may have flags of its own: they are warned about, not refused."""
    note, unknown = found("serve m --enable-b12x", version="0.21.1")
    assert (note.code, note.severity) == ("ENG005", Severity.INFO)
    assert (unknown.code, unknown.severity) == ("ENG001", Severity.WARN)


def test_a_version_without_data_stops() -> None:
    """The finding lists the versions that can be checked."""
    finding = one("serve m", version="0.99.0")
    assert finding.code == "ENG006"
    assert finding.severity.stops
    assert "0.21.0" in finding.evidence


def test_variables_that_the_engine_ignores_are_named() -> None:
    """A typo in a VLLM_ variable is silent in the engine (E65); variables of libraries are not ours to judge."""
    assert check_variables("vllm", "0.21.0", ["VLLM_HOST_IP", "NCCL_NET", "VLLM_NO_USAGE_STATS"]) == ()
    (finding,) = check_variables("vllm", "0.21.0", ["VLLM_CACHE_ROT"])
    assert (finding.code, finding.remedy) == ("ENG008", "did you mean VLLM_CACHE_ROOT?")


def test_llama_cpp_knows_its_own() -> None:
    """mmap's switches were replaced in this build: the old word leads to the new one."""
    version = shipped("tiny-llama-cpp").engine.version
    assert one("llama-server -m x --no-mmap", "llama-cpp", version).remedy == "did you mean --load-mode none?"
    assert found("llama-server -m x -fa on -ctk q8_0 --no-jinja --rpc a:1", "llama-cpp", version) == ()
    assert one("llama-server --draft 3", "llama-cpp", version).code == "ENG007"


def test_data_says_where_it_comes_from() -> None:
    """Every data file names its wheel and hash, and loads."""
    for engine in ("vllm", "llama-cpp", "twin"):
        for version in versions(engine):
            data, said = flag_data(engine, version)
            assert data is not None
            assert not said
            assert version in data.wheel
            assert len(data.sha256) == 64
            assert len(data.options) > 200


def test_a_file_that_is_no_flag_data_is_refused() -> None:
    """Half a file is an error at loading, not a list of flags without findings."""
    with pytest.raises(KeyError):
        load_flags('{"engine": "vllm"}')
