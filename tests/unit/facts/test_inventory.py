"""The listing of all checkpoints: odd answers. Real ones are read in tests/functional/test_inventory.py."""

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.facts.inventory import parse

ENTRY = "\n@@ entry\torg/x\t\npath\t/h/x\nroot\t/h\nrevision\tabc\nfile\t70\tmodel.safetensors\nfile\t9\tconfig.json\n"


def test_a_node_that_fails_reports_why() -> None:
    """Half a listing is none."""
    assert parse(Completed(124, ENTRY, "cut off"), "n") == Unknown("cut off", "exit 124")


def test_entries_are_distinguished() -> None:
    """The text before the first entry is a login shell's greeting."""
    found = parse(Completed(0, f"Welcome!\n{ENTRY}{ENTRY.replace('org/x', 'org/y')}", ""), "n")
    assert isinstance(found, tuple)
    assert [(one.node, one.id, one.complete, one.format, one.size) for one in found] == [
        ("n", "org/x", True, "?", 70),
        ("n", "org/y", True, "?", 70),
    ]


@given(st.text(), st.text(), st.binary(max_size=40))
def test_any_text_is_read(before: str, inside: str, packed: bytes) -> None:
    """A parser never raises, whatever a file is called or holds."""
    text = f"{before}{ENTRY}config\t{inside}\ngguf\t{packed.hex()}\n{inside}{ENTRY}"
    parse(Completed(0, text, ""), "n")
