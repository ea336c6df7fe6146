"""Texts that are made here."""

import ast
import json
import re
from random import Random

import pytest

from sparkwright.domain.workload import Text
from sparkwright.loadgen import texts
from sparkwright.loadgen.texts import CLOSING, QUESTIONS, blocks, single_lines
from sparkwright.simulator.text import SimulatedTokenizer


@pytest.mark.parametrize("kind", list(Text))
def test_the_same_seed_makes_the_same_text(kind: Text) -> None:
    """A run can be repeated word by word; another seed gives another."""
    assert blocks(kind, "1", 5, 60) == blocks(kind, "1", 5, 60)
    assert not set(blocks(kind, "1", 5, 60)) & set(blocks(kind, "2", 5, 60))


@pytest.mark.parametrize("kind", list(Text))
def test_nothing_comes_twice_in_a_long_text(kind: Text) -> None:
    """Repetition would make the text easier than it looks: every line of 20,000 words is another one."""
    found = "".join(blocks(kind, "0", 200, 100)).splitlines()
    told = [line for line in found if len(line) > 60]
    assert len(told) > 100
    assert len(set(told)) >= 0.999 * len(told)


@pytest.mark.parametrize("kind", list(Text))
def test_pieces_begin_and_end_where_tokenizers_cut(kind: Text) -> None:
    """A letter, quote or bracket in front and a line break behind: so the tokens of pieces add up."""
    for piece in (*blocks(kind, "0", 50, 60), *single_lines(kind, "0", 50)):
        assert re.match(r'[A-Za-z"{]', piece)
        assert piece.endswith("\n")
        assert piece.isascii()


def test_code_is_python() -> None:
    """The code can be parsed."""
    for block in blocks(Text.CODE, "0", 50, 60):
        assert any(isinstance(node, ast.FunctionDef) for node in ast.parse(block).body)


def test_json_is_json() -> None:
    """Each line is one object."""
    for block in blocks(Text.JSON, "0", 20, 60):
        assert all(isinstance(json.loads(line), dict) for line in block.splitlines())


def test_prose_reads_like_prose() -> None:
    """Sentences with a capital letter and a stop, nothing left unfilled, natural lengths of words."""
    for n in range(500):
        told = texts.sentence(Random(n))
        assert re.fullmatch(r'"?[A-Z][^{}]*[.]"?', told), told
        assert 5 <= len(told.split()) <= 40
    text = " ".join(blocks(Text.PROSE, "0", 50, 100))
    tokens = len(SimulatedTokenizer(50_000).pieces(text))
    assert 1.1 <= tokens / len(text.split()) <= 1.6


def test_single_words_are_short() -> None:
    """The words have at most six letters, each once: most vocabularies have them whole."""
    assert len(set(texts.COMMON)) == len(texts.COMMON) > 100
    assert all(word.isalpha() and word.islower() and len(word) <= 6 for word in texts.COMMON)


def test_what_ends_a_message_has_no_line_break() -> None:
    """Templates cut it off there, and the count would be one less."""
    assert all(text == text.strip() for text in (*QUESTIONS.values(), CLOSING))
