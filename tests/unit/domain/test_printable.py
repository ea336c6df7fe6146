"""Text of nodes on a terminal."""

import click
import pytest

from sparkwright.cli.columns import printable_text
from sparkwright.domain.printable import printable

HOSTILE = [
    ("\x1b[2Jgone", "gone"),
    ("\x1b]0;title\x07gone", "gone"),
    ("a\x9b2Jb", "a 2Jb"),
    ("a\u202egnp.exe", "a gnp.exe"),
    ("50 %\r100 %\x08", "50 % 100 % "),
]


@pytest.mark.parametrize(("text", "clean"), HOSTILE)
def test_nothing_that_a_terminal_interprets_is_left(text: str, clean: str) -> None:
    """Guards the screen against a log, a name or an error of a node: escape sequences of any form, bidi marks."""
    assert printable(text) == clean
    assert printable_text(click.style(text, fg="red", bold=True)) == click.style(clean, fg="red", bold=True)


def test_what_is_no_control_stays() -> None:
    """Guards lines, tabs and other scripts."""
    assert printable("a\tb\nжук ±5 °C 日本") == "a\tb\nжук ±5 °C 日本"


def test_only_our_own_colors_pass() -> None:
    """Guards against text that hides what comes after it."""
    assert printable_text("\x1b[8mhidden") == "hidden"


def test_a_lone_surrogate_can_be_printed() -> None:
    """It cannot be encoded: the print would fail."""
    assert printable("a\ud800b\udfff").encode() == b"a b "
