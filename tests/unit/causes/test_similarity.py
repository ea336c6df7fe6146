"""Logs without a known sign: what they resemble, by their rare words and their mechanism."""

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.candidates import mechanisms
from sparkwright.causes.load import families
from sparkwright.causes.similarity import words_of
from sparkwright.domain.diagnosis import Diagnosis
from sparkwright.logscan.sign import POSSIBLE


def examine_log(log: str, described: bool = True) -> Diagnosis:
    return examine([("a.log", [log.encode()])], 2026, {}, described=described)


@pytest.mark.parametrize(
    ("log", "key"),
    [
        ("E: ctl: could not bind the listener, address in use :8123", "port-already-in-use"),
        ("error: archive is corrupt: checksum of model.safetensors differs", "checkpoint-file-truncated-or-corrupt"),
    ],
)
def test_what_is_resembled_is_possible_at_most_and_shows_its_words(log: str, key: str) -> None:
    """Guards recall in a wording that no rule was written from, and that a resemblance is never more than possible."""
    found = examine_log(log)
    assert found.causes[0].key == key
    assert all(cause.confidence <= POSSIBLE for cause in found.causes if cause.resembles)


def test_what_resembles_nothing_is_named_nothing() -> None:
    """Guards `no known cause`: nothing is invented from an error of a program that nobody knows."""
    for text in (
        "zorg.QuuxError: the flimflam of turnip 7 is not snorkelled",
        "[ERROR]: Task failed: Module failed: non-zero return code",  # says only that something ended badly
    ):
        found = examine_log(text)
        assert found.causes == () and found.explanation


def test_lines_without_an_error_are_compared_only_where_somebody_describes_a_failure() -> None:
    """Guards lines that report nothing bad: they resemble no cause; a sentence with a word of failure may."""
    text = "the drafter's block is shorter than the draft tokens that were asked for"
    assert examine_log(text).causes == () and examine_log(text, described=False).causes == ()
    assert examine_log(f"it fails when {text}").causes[0].resembles


def test_names_are_compared_by_their_parts_too() -> None:
    assert {"cudaerrornodevice", "cuda", "error", "devic"} <= set(words_of("cudaErrorNoDevice"))


def test_mechanisms_name_causes_of_the_catalogue() -> None:
    """Guards the TOML against mistyped keys and families."""
    keys = {cause.key for group in families().values() for cause in group}
    assert [key for one in mechanisms() for row in one.causes for key in row["keys"] if key not in keys] == []
    assert [name for one in mechanisms() for name in one.families if name not in families()] == []
