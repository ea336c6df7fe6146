"""The words that differ between engines: every one is a real option, so the data shows."""

import pytest

from sparkwright.engines.definitions import read_definition, written_name
from sparkwright.engines.flag_data import read_data, versions
from sparkwright.engines.flag_words import history, right_value, right_word
from sparkwright.engines.tables import SEPARATE


@pytest.mark.parametrize("engine", SEPARATE)
def test_every_word_is_an_option_of_its_engine(engine: str) -> None:
    """A remedy that names what does not exist is worse than none."""
    names = set().union(*(read_data(engine, version).names for version in versions(engine)))
    definition = read_definition(engine)
    words = [*(word for row in definition.words.values() for word in row), *definition.renamed.values()]
    assert len(words) > 10 and [word for word in words if written_name(word) not in names] == []


@pytest.mark.parametrize("engine", SEPARATE)
def test_a_past_word_is_gone_from_every_version(engine: str) -> None:
    """An option that some version still has needs no line by hand: the data knows when it went."""
    every = [option for version in versions(engine) for option in read_data(engine, version).options.values()]
    names = {spelled for option in every for spelled in {*option.spellings} - {*option.negations}}
    assert [word for word in read_definition(engine).renamed if f"--{word}" in names] == []


def test_a_meaning_leads_from_each_engine_to_each_other() -> None:
    """The files of two engines meet in a meaning's name: a typing error there would lose the advice."""
    shared = [name for engine in SEPARATE for name in read_definition(engine).words]
    assert {name for name in shared if shared.count(name) == 1} <= {"model"}
    assert right_word(read_data("trtllm", "1.3.0rc"), "--max-model-len").word == "--max_seq_len"
    assert right_value("sglang", "kv-cache-dtype", ("fp8",)) == "fp8_e4m3"


def test_the_best_word_that_this_version_has_is_taken() -> None:
    """0.5.12 has --cuda-graph-max-bs only; 0.5.16 calls that deprecated and has a better one."""
    old, new = read_data("sglang", "0.5.12"), read_data("sglang", "0.5.23")
    assert right_word(old, "--max-cudagraph-capture-size").word == "--cuda-graph-max-bs"
    assert right_word(new, "--max-cudagraph-capture-size").word == "--cuda-graph-max-bs-decode"


def test_another_engines_alias_leads_there_too() -> None:
    """`--tp_size` is TensorRT-LLM's alias, `-c` llama.cpp's: the data knows them, no table repeats them."""
    data = read_data("vllm", "0.21.0")
    assert right_word(data, "--ep_size").word == "--enable-expert-parallel"
    assert right_word(data, "--ctx-size").word == "--max-model-len"


def test_nothing_is_reported_of_what_nobody_knows() -> None:
    """An invented option has neither a meaning elsewhere nor a history."""
    assert right_word(read_data("vllm", "0.21.0"), "--frobnicate").word == ""
    assert history(read_data("vllm", "0.21.0"), "--frobnicate") == ""
