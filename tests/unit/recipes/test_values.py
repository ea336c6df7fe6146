"""Sizes, durations, texts and secrets as people write them."""

import pytest

from sparkwright.recipes.values import is_secret_name, looks_secret, seconds, shown_value, size_in_bytes
from sparkwright.recipes.yaml_lines import read_yaml
from unit.for_each import for_each


@for_each("text, value", [("230s", 230), ("4min", 240), ("1.5h", 5400), ("90", 90), (" 2 min ", 120), (7, 7)])
def test_durations(text, value):
    """Durations are human: s, min, h, or bare seconds."""
    assert seconds(text) == value


@for_each("text", ["4m", "", "fast", "-3s", True, None, [1], "1e9s", "4 minutes"])
def test_durations_that_are_refused(text):
    """`4m` could be metres, months or milli: it is refused, not guessed."""
    with pytest.raises(ValueError, match="a duration is a number with s, min or h, as in 230s or 4min"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "value"), [("64g", 64 * 1024**3), ("149GB", 149 * 10**9), ("18.5 GiB", int(18.5 * 1024**3)), (100, 100)]
)
def test_sizes(text, value):
    """Sizes as Docker and humans write them."""
    assert size_in_bytes(text) == value


@for_each("text", ["64 gigs", "-1g", True, None, [], "1" * 40, "9e999", "1._.g"])
def test_sizes_that_are_refused(text):
    """A text that is no size raises ValueError, also one that overflows."""
    with pytest.raises(ValueError, match="a size is a number with k, m, g, GiB or GB, as in 64g or 149GB"):
        size_in_bytes(text)


@for_each("name", ["HF_TOKEN", "OPENAI_API_KEY", "hf-token", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "TOKEN"])
def test_secret_names(name):
    """Names that hold keys."""
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["VLLM_MAX_TOKENS", "TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "KEYBOARD"])
def test_names_that_are_no_secret(name):
    """Ordinary variables are left alone."""
    assert not is_secret_name(name)


def test_values_that_look_like_keys_are_never_shown():
    """An error message must not put a key on the screen."""
    assert looks_secret("hf_abcdefghijklmn") and not looks_secret("hf_x")
    assert shown_value("sk-1234567890abcdef") == "a text that looks like a key (not shown)"


def test_shown():
    """One short line for any value."""
    assert [shown_value(v) for v in (True, None, [1], {"a": 1}, "x")] == [
        "true",
        "nothing",
        "a list of 1",
        "a mapping of 1",
        "'x'",
    ]
    assert shown_value(read_yaml("a: 0.20", "f").value["a"]) == "0.20"
    assert len(shown_value("y" * 500)) == 60
