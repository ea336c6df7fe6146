"""An import renders the source's own options with the same values."""

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.engines.catalog import imagined_ranks
from sparkwright.engines.flag_data import read_data, versions
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import import_recipe
from sparkwright.recipes.load import load_recipe

VLLM = read_data("vllm", versions("vllm")[-1])
# Set for each rank, rendered in another way, left to the gateway, or refused as secrets: each has tests of its own.
APART = (
    "ssl-certfile ssl-keyfile "
    "host port uds nnodes node-rank master-addr master-port headless distributed-executor-backend api-key model "
    "config served-model-name revision enable-auto-tool-choice speculative-config tensor-parallel-size "
    "pipeline-parallel-size data-parallel-size enable-expert-parallel max-model-len max-num-seqs "
    "max-num-batched-tokens kv-cache-dtype gpu-memory-utilization kv-cache-memory-bytes tool-call-parser "
    "reasoning-parser tokenizer-mode chat-template data-parallel-address data-parallel-start-rank "
    "data-parallel-rank data-parallel-size-local data-parallel-rpc-port hf-token help version "
)
FLAGS = sorted(o.name for o in VLLM.options.values() if o.kind in ("flag", "bool") and o.name not in APART.split())
TEXTS = sorted(
    o.name for o in VLLM.options.values() if o.kind == "value" and o.type == "str" and not o.choices
    and o.name not in APART.split() and "key" not in o.name and "token" not in o.name
)  # fmt: skip
JSONS = sorted(o.name for o in VLLM.options.values() if o.kind == "json" and o.name not in APART.split())
PLAIN = st.text("abcXYZ019_.,:/=+-@%~", min_size=1, max_size=12).filter(
    lambda word: not word.startswith("-") and not word.startswith(("hf_", "sk-"))
)
NUMBERS = st.one_of(
    st.integers(0, 10**9).map(str), st.sampled_from(["0.80", "1e-5", "007", "1_000", "1.0", "-1", "12:30"])
)
KEYS = st.dictionaries(
    st.text("abc_", min_size=1, max_size=6),
    st.one_of(
        st.booleans(), st.none(), st.integers(-9, 9), st.text(max_size=6), st.lists(st.integers(0, 9), max_size=3)
    ),
    max_size=3,
)


@st.composite
def option_lines(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Options of one command line, each as the words that it should be rendered with."""
    made: list[tuple[str, ...]] = []
    for name in draw(st.lists(st.sampled_from(FLAGS), max_size=3, unique=True)):
        negative = VLLM.options[name].kind == "bool" and draw(st.booleans())
        made.append((f"--no-{name}" if negative else f"--{name}",))
    for name in draw(st.lists(st.sampled_from(TEXTS), max_size=3, unique=True)):
        made.append((f"--{name}", draw(st.one_of(PLAIN, NUMBERS))))
    for name in draw(st.lists(st.sampled_from(JSONS), max_size=2, unique=True)):
        made.append((f"--{name}", json.dumps(draw(KEYS), separators=(",", ":"), ensure_ascii=False)))
    if draw(st.booleans()):
        made.append(("--compilation-config.cudagraph_mode", draw(st.sampled_from(["FULL", "none", "PIECEWISE"]))))
    return made


@settings(max_examples=60, deadline=None)
@given(option_lines())
def test_options_come_out_as_they_went_in(options: list[tuple[str, ...]]) -> None:
    """Any options of vLLM's newest release, with any values, in the words of a shell."""
    words = [word for option in options for word in option]
    made = import_recipe(f"vllm serve org/name {shlex.join(words)}\n", "line.sh", ImportOptions(version=VLLM.version))
    assert made.errors == (), made.text
    (rank,) = imagined_ranks(load_recipe(made.text, "line.yaml"))
    there = " ".join(map(shlex.quote, rank.engine_words))
    for option in options:
        assert shlex.join(option) in there, (option, made.text)


SHORT = [
    ("-O3", "--optimization-level 3"),
    ("-O 2", "--optimization-level 2"),
    ("-ep -tp 2", "--tensor-parallel-size 2 --enable-expert-parallel"),
    ("-dcp 2", "--decode-context-parallel-size 2"),
    ("-cc.cudagraph_mode=FULL", "--compilation-config.cudagraph_mode FULL"),
    ("--compilation_config.cudagraph_mode none", "--compilation-config.cudagraph_mode none"),
    ("-ac.backend FLASHINFER", "--attention-config.backend FLASHINFER"),
    ("--max-model-len 128k", "--max-model-len 128000"),
    ("--max-model-len 128K", "--max-model-len 131072"),
    ("--kv-cache-memory-bytes 25G", f"--kv-cache-memory-bytes {25 * 1024**3}"),
    ("-q fp8", "--quantization fp8"),
    ("--no-enable-prefix-caching", "--no-enable-prefix-caching"),
    ("--limit-mm-per-prompt.image 2", "--limit-mm-per-prompt.image 2"),
    ("--speculative-config.method mtp --speculative-config.num_speculative_tokens 2",
     '--speculative-config {"method":"mtp","num_speculative_tokens":2}'),
]  # fmt: skip


@pytest.mark.parametrize("given_words, wanted", SHORT)
def test_short_options_nested_names_and_sizes(given_words: str, wanted: str) -> None:
    """Each with the meaning that vLLM's own parser gives it."""
    made = import_recipe(f"vllm serve org/name {given_words}\n", "line.sh", ImportOptions())
    rank = imagined_ranks(load_recipe(made.text, "line.yaml"))[0]
    assert wanted in " ".join(rank.engine_words)


@pytest.mark.full
def test_the_report_of_wild_recipes_finds_no_changed_option() -> None:
    """Real recipes, where they are at hand: nothing changed, nothing lost without a note."""
    import import_report

    folder = Path(__file__).parents[4] / "shared" / "data" / "wild-recipes"
    if not folder.is_dir():
        pytest.skip("data: ../shared/data/wild-recipes is not here")
    rows = [import_report.read_row(path) for path in sorted(folder.glob("*.yaml"))[::6]]
    assert [(row.file, row.changed, row.lost) for row in rows if row.changed or row.lost] == []
