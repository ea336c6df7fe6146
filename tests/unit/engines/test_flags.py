"""Flags against the data read from the wheels."""

import ast
import shlex

import pytest

from sparkwright.domain.finding import Finding, Severity
from sparkwright.engines.flag_data import flag_data, versions
from sparkwright.engines.flags import check_flags
from unit.engines.samples import DATA, shipped
from unit.for_each import for_each

SEED_003 = """serve deepseek-ai/DeepSeek-V4-Flash --served-model-name deepseek-v4-flash --host 0.0.0.0 --port 8000
 --trust-remote-code --tensor-parallel-size 2 --pipeline-parallel-size 1 --kv-cache-dtype fp8 --block-size 256
 --max-model-len 1000000 --max-num-seqs 6 --max-num-batched-tokens 8192 --gpu-memory-utilization 0.82
 --enable-prefix-caching --speculative-config '{"method":"mtp","num_speculative_tokens":2}' --tokenizer-mode deepseek_v4
 --distributed-executor-backend mp --tool-call-parser deepseek_v4 --enable-auto-tool-choice
 --reasoning-parser deepseek_v4 --default-chat-template-kwargs.thinking=true
 --reasoning-config '{"reasoning_parser":"deepseek_v4","reasoning_start_str":"","reasoning_end_str":""}'
 --default-chat-template-kwargs.reasoning_effort=high --enable-flashinfer-autotune --nnodes 2 --node-rank 1
 --master-addr 192.168.0.8 --master-port 25000 --headless"""


def flag_findings(words: str, engine: str = "vllm", version: str = "0.21.0") -> tuple[Finding, ...]:
    return check_flags(engine, version, shlex.split(words))


def only_finding(words: str, engine: str = "vllm", version: str = "0.21.0") -> Finding:
    (finding,) = flag_findings(words, engine, version)
    return finding


def test_the_published_command_passes() -> None:
    """Report 003's whole command line is one that vLLM 0.21.0 takes."""
    assert flag_findings(SEED_003) == ()


@pytest.mark.parametrize("log", ["m1-head", "m1-worker", "m2-head", "v4-1m-s6", "b-8b-graphs"])
def test_commands_that_ran_pass(log: str) -> None:
    """A command that the real engine accepted is never refused; and its non-default options are known under their
    names."""
    text = (DATA / "captures_logs" / f"{log}.log").read_text()
    assert flag_findings(text.splitlines()[0][2:]) == ()
    data, _ = flag_data("vllm", "0.21.0")
    assert data is not None
    for line in text.splitlines():
        if "non-default args: " in line:
            given = ast.literal_eval(line.split("non-default args: ", 1)[1])
            assert {name.replace("_", "-") for name in given} - {"model-tag"} <= set(data.options)


def test_an_unknown_flag_names_the_right_one() -> None:
    """Capture f-bad-flag: the engine would end at once; the finding reports what was meant."""
    finding = only_finding("serve m --kv-cache-dtyp fp8")
    assert (finding.code, finding.severity) == ("ENG001", Severity.OVERRIDE)
    assert finding.remedy == "did you mean --kv-cache-dtype?"


@for_each(
    "words, code, says",
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
        ("--quantization nvfp4", "ENG009", "did you mean modelopt_fp4?"),
    ],
)
def test_a_wrong_value_reports_what_is_allowed(words: str, code: str, says: str) -> None:
    """Each way to give a value wrongly has its code and a remedy that helps."""
    finding = only_finding(f"serve m {words}")
    assert finding.code == code
    assert says in finding.remedy


@for_each("version", ["0.30.0", "0.32.0+cpu", "0.33.0", "0.33.0+cu130.gabc", "nightly"])
def test_a_kv_type_that_no_build_for_cuda_has_is_refused(version: str) -> None:
    """vLLM 0.33's parser takes each text and the engine ends over it: only plugins for other hardware add types."""
    finding = flag_findings("serve m --kv-cache-dtype fp9", version=version)[-1]
    exact = version in ("0.30.0", "0.33.0")
    assert (finding.code, finding.severity) == ("ENG002", Severity.OVERRIDE if exact else Severity.WARN)
    assert "did you mean fp8?" in finding.remedy
    assert flag_findings("serve m --kv-cache-dtype octave_k3v4", version="0.33.0") == ()


@for_each(
    "words",
    ["--max-model-len 1M", "-tp 2", "--tensor_parallel_size=2", "--no-enable-prefix-caching", "--moe-backend MARLIN",
     "--attention-backend triton_attn", "--served-model-name a b c", "--max-model-len -1", "-O3 -tp 2",
     "--compilation-config.cudagraph_mode PIECEWISE", "--cudagraph-capture-sizes 1 2 4", "--hf-overrides '{}'"],
)  # fmt: skip
def test_every_right_spelling_passes(words: str) -> None:
    """Underscores, short names, `=`, dotted keys, folded case and human sizes are vLLM's own ways to write."""
    assert flag_findings(f"serve m {words}") == ()


def test_the_beginning_of_a_name_is_enough_where_it_is_unique() -> None:
    """argparse takes `--kv-cache-mem`; capture f-bad-flag shows what it reports where two names begin so."""
    assert flag_findings("serve m --kv-cache-mem 20G") == ()
    assert flag_findings("--model-path m --tp 2 --context-len 128k --max-prefill-tokens 8Ki", "sglang", "0.5.12") == ()
    assert "--kv-cache-dtype, --kv-cache-dtype-skip-layers" in only_finding("serve m --kv-cache-dtyp fp8").cause


SEED_000 = [
    ("--num-nodes 2", "did you mean --nnodes?"),
    ("--master-addr 10.0.0.1", "write --dist-init-addr ADDRESS:PORT"),
    ("--master-port 25000", "write --dist-init-addr ADDRESS:PORT"),
    ("--gpu-memory-utilization 0.8", "did you mean --mem-fraction-static?"),
    ("--max-model-len 131072", "did you mean --context-length?"),
    ("--kv-cache-dtype fp8", "write --kv-cache-dtype fp8_e4m3"),
    ("--fp8-gemm-runner-backend triton", "did you mean --fp8-gemm-backend?"),
]


@for_each("words, remedy", SEED_000)
@for_each("version", versions("sglang"))
def test_every_row_of_the_published_table_holds_in_every_version(version: str, words: str, remedy: str) -> None:
    """Report 000's table for 0.5.12, asked of all wheels: each old word is refused, and the right one is named."""
    finding = only_finding(f"--model-path m {words}", "sglang", version)
    assert (finding.severity, finding.remedy) == (Severity.OVERRIDE, remedy)


@for_each(
    "engine, version, words, remedy",
    [
        ("vllm", "0.33.0", "--mem-fraction-static 0.8", "did you mean --gpu-memory-utilization?"),
        ("vllm", "0.21.0", "--tp_size 2", "did you mean --tensor-parallel-size?"),
        ("vllm-ray", "0.21.0", "--context-length 9", "did you mean --max-model-len?"),
        ("llama-cpp", "2026.10.11549", "--max-model-len 9", "did you mean --ctx-size?"),
        ("sglang", "0.5.12", "--mem_fraction_static 0.8", "did you mean --mem-fraction-static?"),
        ("sglang", "0.5.12", "--no-enable-metrics", "write nothing: --enable-metrics is off unless it is given"),
        ("sglang", "0.5.23", "--cuda-graph-max-bs 4", "did you mean --cuda-graph-max-bs-decode?"),
        ("sglang", "0.5.12", "--headless", "remove it: it is vllm's, and sglang has none of that name"),
        ("vllm", "0.21.0", "--frobnicate", "remove it; if the image's own build has it, name it in engine.extra_flags"),
        ("trtllm", "1.3.0rc", "--max-seq-len 9", "did you mean --max_seq_len?"),
        ("trtllm", "1.3.0rc", "--gpu-memory-utilization 0.8", "did you mean --kv_cache_free_gpu_memory_fraction?"),
    ],
)
def test_the_right_word_of_this_engine_is_named(engine: str, version: str, words: str, remedy: str) -> None:
    """Another engine's word, another dash, a plain switch negated, and what an earlier version reported to use."""
    assert only_finding(f"m {words}", engine, version).remedy == remedy


def test_a_value_in_other_letters_finds_the_right_one() -> None:
    """vLLM's FLASHINFER is SGLang's flashinfer; a wrong kind gets an example, not an order."""
    assert only_finding("m --attention-backend FLASHINFER", "sglang", "0.5.12").remedy.startswith(
        "did you mean flashinfer?"
    )
    assert only_finding("m --block-size seventeen").remedy == "as in --block-size 8"


def test_a_switch_has_the_second_negation_where_its_parser_pairs_them() -> None:
    """vLLM 0.33.0 takes --disable-x next to --no-enable-x, 0.26.0 does not; its own parser was asked."""
    for word in ("--disable-prefix-caching", "--enable-custom-all-reduce", "--no-enable-prefix-caching"):
        assert check_flags("vllm", "0.33.0", ["serve", "m", word]) == ()
    assert only_finding("serve m --disable-prefix-caching", version="0.26.0").code == "ENG001"


def test_what_another_version_has_is_reported() -> None:
    """The data of all versions shows when an option came and went; nobody wrote that down by hand."""
    assert "vllm has it from 0.33.0 on" in only_finding("serve m --enable-hc-sp").evidence
    gone = only_finding("serve m --max-num-partial-prefills 1", version="0.33.0")
    assert "vllm had it up to 0.26.0, and no longer in 0.27.1" in gone.evidence
    assert gone.remedy.startswith("leave it out, or take another version")


def test_a_value_of_another_version_reports_of_which() -> None:
    """`dspark` and 4-bit KV caches are values, not options: the same history serves them."""
    method = only_finding("serve m --speculative-config.method dspark")
    assert (method.code, "vllm has it from 0.26.0 on" in method.evidence) == ("ENG002", True)
    dtype = only_finding("--model-path m --kv-cache-dtype nvfp4", "sglang", "0.5.12")
    assert "sglang has it from 0.5.16 on" in dtype.evidence


def test_what_an_engine_will_drop_names_its_successor() -> None:
    """SGLang's own deprecation comes through with the flag that it names."""
    finding = only_finding("--model-path m --disable-cuda-graph", "sglang", "0.5.23")
    assert (finding.code, finding.severity) == ("ENG007", Severity.WARN)
    assert finding.remedy == "use --cuda-graph-backend-{decode,prefill}=disabled"


def test_only_data_of_this_very_version_refuses() -> None:
    """A fork may have flags of its own: they are warned about, and silent where the recipe names them."""
    note, unknown = flag_findings("serve m --enable-b12x", version="0.21.1")
    assert (note.code, unknown.code, unknown.severity) == ("ENG005", "ENG001", Severity.WARN)
    assert check_flags("vllm", "0.21.0", ["serve", "m", "--enable-b12x", "on"], ["enable_b12x"]) == ()


def test_llama_cpp_knows_its_own() -> None:
    """mmap's switches were replaced in this build: the old word leads to the new one."""
    version = shipped("tiny-llama-cpp").engine.version
    assert only_finding("llama-server -m x --no-mmap", "llama-cpp", version).remedy == "write --load-mode none"
    assert flag_findings("llama-server -m x -fa on -ctk q8_0 --no-jinja --rpc a:1", "llama-cpp", version) == ()
    assert only_finding("llama-server --draft 3", "llama-cpp", version).code == "ENG007"
