"""The messages that engines can raise or log, and which one a line is."""

import ast

import pytest
from engine_message import FoundMessage as Template
from engine_message import message_lines
from engine_messages import MessageReader, message_rows, template, whole_words
from engine_messages_cpp import cpp_messages
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.engines.messages import PROGRAMS, SLOT, Message, listed, message_of
from unit.engines.samples import ROOT
from unit.for_each import for_each

LEVELS = {"", "E", "W", "I"}
CPP_SOURCE = """
bool cache::find(uint64_t n) {
    if (!n) {
        LLAMA_LOG_ERROR("%s: failed to find %" PRIu64 " free "
                        "cells in the cache\\n", __func__, n);
    }
    LOG_INF("%s: cache of %8.2f MiB was made\\n", __func__, size(n, "no message of this call"));
    throw std::runtime_error(std::string("the cache type '") + name(type) + "' is not known here");
}

int main() {
    GGML_ABORT("cannot hold %d tokens", 7);
}
"""
SOURCE = """
class Worker:
    def request_memory(self, need):
        msg = f"Free memory on device ({need} GiB) is less than desired"
        logger.info_once("Available KV cache memory: %s GiB", need)
        if need < 0:
            raise ValueError(msg)
        assert need, "no memory was " "asked for at all"
        raise errors.OutOfMemory("Cannot hold {} of {}".format(need, 3) + "\\nTry a smaller model instead.")
"""


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_shipped_files_have_sorted_rows_of_seven_fields(program: str) -> None:
    """Guards the search, which bisects, and versions without a wheel that they were read from."""
    listing = listed(program)
    heads = [line.split(" ") for line in listing if line.startswith("# ")]
    assert listing == sorted(listing)
    assert all(len(head) == 4 and head[2].endswith((".whl", ".tar.gz")) and len(head[3]) == 64 for head in heads)
    known = {"", *(head[1] for head in heads)}
    for row in listing[len(heads) :]:
        word, text, level, _, _, since, until = row.split("\t")
        assert word in whole_words(text)
        assert {since, until} <= known
        assert level in LEVELS or level[:1].isupper()


@for_each(
    "line, place, level",
    [
        (
            "(EngineCore pid=79) ValueError: Free memory on device cuda:0 (22.76/24.0 GiB) on startup is less than "
            "desired GPU memory utilization (0.97, 23.28 GiB). Decrease GPU memory utilization or reduce GPU memory "
            "used by other processes.",
            "vllm/v1/worker/utils.py, request_memory",
            "ValueError",
        ),
        (
            "INFO 11-21 04:14:00 [gpu_worker.py:440] Available KV cache memory: 10.2 GiB",
            "vllm/v1/worker/gpu_worker.py, Worker.determine_available_memory",
            "I",
        ),
        (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            "sglang/srt/",
            "RuntimeError",
        ),
        (
            "0.00.031.972 E gguf_init_from_reader: failed to read key-value pairs",
            "llama.cpp/ggml/src/gguf.cpp, gguf_init_from_reader",
            "E",
        ),
    ],
)
def test_a_line_is_traced_to_its_place_in_the_source(line: str, place: str, level: str) -> None:
    """Guards the place and severity that an explanation shows: recorded lines of real engines."""
    message = message_of(line)
    assert message is not None
    assert message.place.startswith(place)
    assert message.level == level


@pytest.mark.parametrize("line", ["", "failed with error 2", "x" * 5000, "GET /v1/models 200", "{} {} {}"])
def test_other_lines_are_no_message(line: str) -> None:
    """Guards lines that share little with a message."""
    assert message_of(line) is None


@given(st.lists(st.text(st.characters(exclude_characters="{}\n"), max_size=20), max_size=5))
def test_what_a_line_fills_in_is_read_back(values: list[str]) -> None:
    """Guards the arguments: as many as the template has places, and none that is not in the line."""
    message = Message("vllm", " and then ".join(["begins with", *[SLOT] * len(values)]), "E", "a.py", "f")
    found = message.values(" and then ".join(["begins with", *values]))
    assert found is not None
    assert len(found) == len(values)


def test_messages_are_read_from_the_sources_of_a_wheel() -> None:
    """Guards every form of message that the engines write."""
    reader = MessageReader("vllm/worker.py")
    reader.visit(ast.parse(SOURCE))
    assert {(one.text, one.level) for one in reader.found} == {
        ("Free memory on device ({} GiB) is less than desired", "ValueError"),
        ("Available KV cache memory: {} GiB", "I"),
        ("no memory was asked for at all", "AssertionError"),
        ("Cannot hold {} of {}", "OutOfMemory"),
        ("Try a smaller model instead.", "OutOfMemory"),
    }
    assert {one.function for one in reader.found} == {"Worker.request_memory"}


def test_messages_are_read_from_sources_in_cpp() -> None:
    """Guards texts in several pieces, formats of the preprocessor, and levels by the macro that is called."""
    assert {(one.text, one.level, one.function) for one in cpp_messages("llama.cpp/src/cache.cpp", CPP_SOURCE)} == {
        ("{}: failed to find {} free cells in the cache", "E", "cache::find"),
        ("{}: cache of {} MiB was made", "I", "cache::find"),
        ("the cache type '{}' is not known here", "Exception", "cache::find"),
        ("cannot hold {} tokens", "E", "main"),
    }


def test_a_row_names_the_versions_that_have_it() -> None:
    """Guards since and until, and that a message that moved is one row with its newest place."""
    old, new = (Template("Cannot allocate the cache now", "E", file, "f") for file in ("a.py", "b.py"))
    gone = Template("Cannot do without the old thing", "E", "a.py", "f")
    assert sorted(message_rows({"0.19.0": {old, gone}, "0.21.0": {new}})) == [
        "allocate\tCannot allocate the cache now\tE\tb.py\tf\t\t",
        "without\tCannot do without the old thing\tE\ta.py\tf\t\t0.19.0",
    ]
    assert template(ast.parse("'a %s' % x", mode="eval").body) == "a {}"
    assert list(message_lines("short\nlong enough to be found by")) == ["long enough to be found by"]


def test_every_program_whose_texts_ship_has_its_notice() -> None:
    """They belong to other projects: licence and copyright go where their texts go, into the wheel."""
    folder = ROOT / "src/sparkwright/engines/data/messages"
    notice = (folder / "THIRD_PARTY.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in notice.splitlines() if "https://" in line]
    found = {name: (licence, owner) for name, _, licence, owner in rows}
    assert set(found) == set(PROGRAMS) == {path.name.removesuffix(".txt.gz") for path in folder.glob("*.txt.gz")}
    assert {licence for licence, _ in found.values()} == {"Apache-2.0", "BSD-3-Clause", "MIT"} and all(
        owner for _, owner in found.values()
    )
    assert "Permission is hereby granted, free of charge" in notice
    assert "Redistributions in binary form must reproduce the above copyright" in notice
    assert "Apache License" in (ROOT / "LICENSE").read_text("utf-8")
