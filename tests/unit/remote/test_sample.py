"""The arguments of the sampling script."""

import pytest

from sparkwright.facts import sample
from sparkwright.facts.kernel import WORTH


def test_its_pace_reaches_the_script() -> None:
    """nvidia-smi takes whole seconds only; a start time of 0 means new lines only."""
    words = sample.follow(0.5, 0.2, 1795302869.9, "~/s", "chat").argv[-7:]
    assert words == ("0.5", "1", "1795302870", "60", "~/s", "chat", "2")
    assert sample.follow(5).argv[-7:] == ("5", "5", "0", "60", "", "", "2")


@pytest.mark.parametrize("command", [sample.follow(5), sample.memory()])
def test_nothing_is_left_to_fill_in_and_nothing_is_changed(command: sample.Command) -> None:
    """It only reads, and every name in it has been replaced."""
    assert "@FIELDS@" not in command.argv[2]
    assert "@WORTH@" not in command.argv[2]
    assert command.changes == ""


def test_kernel_words_fit_between_single_quotes() -> None:
    """They are written into the script as they are."""
    assert "'" not in "|".join(WORTH)


def test_memory_alone_asks_no_driver() -> None:
    """A driver that does not answer must not hold up who asks for memory."""
    assert "nvidia-smi" not in sample.memory().argv[2]
    assert "nvidia-smi" in sample.follow(5).argv[2]
