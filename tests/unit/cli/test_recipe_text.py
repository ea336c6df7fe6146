"""Recipes as text, for wide places and for narrow terminals."""

import pytest

from sparkwright.cli import recipe_text
from sparkwright.cli.recipe_text import changes, describe, figures_text, first_sentence, flag_words, listing
from sparkwright.domain.recipe import Figure
from unit.engines.samples import shipped

ROW = {
    "name": "a-recipe",
    "engine": "vllm",
    "version": "0.21.0",
    "nodes": 2,
    "profiles": ["big", "small"],
    "default_profile": "small",
    "state": "ready",
    "simulated": False,
    "title": "Something on 2 nodes",
    "reason": "It works.",
    "instead": "",
}
REFUSED = ROW | {"name": "b", "state": "refused", "profiles": [], "reason": "It cannot.", "instead": "a-recipe"}


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 60 columns."""
    monkeypatch.setattr(recipe_text, "_width", lambda: 59)


def test_a_line_each_where_there_is_room() -> None:
    """The default profile is marked; the words of the table and what is refused are explained below."""
    head, first, second, *rest = listing([ROW, REFUSED]).splitlines()
    assert head.split() == ["NAME", "ENGINE", "NODES", "PROFILES", "STATE", "TITLE"]
    assert first.split()[:7] == ["a-recipe", "vllm", "0.21.0", "2", "big", "small*", "ready"]
    assert second.split()[3:6] == ["2", "-", "refused"]
    assert rest[0] == rest[2] == "" and "documented: " in rest[1] and "*: " in rest[1]
    assert rest[3:] == ["refused:", "  b: It cannot. Instead: a-recipe"]


def test_nothing_is_explained_when_nothing_is_refused() -> None:
    """No empty heading."""
    assert "refused" not in listing([ROW])


def test_two_lines_each_on_a_narrow_terminal(narrow: None) -> None:
    """Nothing is cut off and no line is longer than the terminal."""
    text = listing([ROW, ROW | {"simulated": True, "name": "a-twin"}])
    assert max(map(len, text.splitlines())) < 60
    assert "    Something on 2 nodes; profiles big small*\n" in text and "simulated" in text


@pytest.mark.parametrize(
    ("text", "first"),
    [("One. Two.", "One."), ("Only one.", "Only one."), ("vLLM 0.21 has it. Yes.", "vLLM 0.21 has it."), ("", "")],
)
def test_the_first_sentence(text: str, first: str) -> None:
    """A full stop inside a version ends nothing."""
    assert first_sentence(text) == first


def test_figures_of_one_measurement_are_together() -> None:
    """Conditions once, numbers in columns, each source once with its number."""
    rows = [("speed", 10.5, "tokens/s", "https://a", "warm"), ("KV pool", 1430000, "tokens", "https://a", "warm")]
    rows.append(("speed", 8, "tokens/s", "https://b", "cold"))
    assert figures_text([Figure(*row) for row in rows], 80).splitlines() == [
        "Published figures (others measured them)",
        "  warm [1]",
        "    speed         10.5 tokens/s",
        "    KV pool  1,430,000 tokens",
        "  cold [2]",
        "    speed  8 tokens/s",
        "  [1] https://a",
        "  [2] https://b",
    ]
    assert figures_text([], 80) == ""


def test_changes_between_profiles() -> None:
    """Only what is served differently, in the recipe's own keys; prose and figures are no change."""
    big, small = shipped("deepseek-v4-flash", "1m"), shipped("deepseek-v4-flash", "256k")
    assert changes(big, small) == "serving.context 262,144, serving.sequences 24"
    stable, agentic = shipped("minimax-m2.7-nvfp4", "stable"), shipped("minimax-m2.7-nvfp4", "agentic")
    assert changes(agentic, stable) == "no speculation.method, no speculation.tokens"
    assert changes(stable, stable) == "nothing but the figures"


def test_flags_are_words_of_a_command_line() -> None:
    """The output of `show` can be copied: bare flags, --no- forms, JSON without spaces."""
    given = {"trust-remote-code": True, "enable-x": False, "block-size": 256, "config": {"a": [1]}}
    assert list(flag_words(given)) == ["--trust-remote-code", "--no-enable-x", "--block-size 256", '--config {"a":[1]}']


@pytest.mark.parametrize("name", ["minimax-m2.7-nvfp4", "deepseek-v4-flash-0731", "qwen3-235b-a22b-nvfp4-trtllm"])
def test_a_narrow_terminal_breaks_prose_and_nothing_to_copy(name: str, narrow: None) -> None:
    """Sentences fit the terminal; a flag, a variable, an image or an address is whole."""
    recipe = shipped(name)
    text = describe(recipe)
    copied = {*flag_words(recipe.flags), *(f"{name} {value}" for name, value in recipe.env.items())}
    prose = [line for line in text.splitlines() if " ".join(line.split()) not in copied]
    assert not [line for line in prose if len(line) > 60 and len(line.split()) > 12]
    assert recipe.engine.image in text and all(f"{k} " in text and str(v) in text for k, v in recipe.env.items())
    assert all(flag in text for flag in flag_words(recipe.flags))
