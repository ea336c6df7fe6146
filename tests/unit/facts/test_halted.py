"""The report of a sample of a rank's processes."""

import pytest

from sparkwright.domain.command import Completed
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.sample import HaltedProcess
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.sample import halts_fact, parse_stopped


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        (
            "stopped 90 VLLM::Worker_TP\nstopped 12 a b) c\n",
            (HaltedProcess(12, "a b) c"), HaltedProcess(90, "VLLM::Worker_TP")),
        ),
        ("paused 4711\n", (HaltedProcess(4711, paused=True),)),
        ("stopped 7 \x1b[31mred\n", (HaltedProcess(7, "?[31mred"),)),
        ("stopped\nstopped x y\nsomething 12 else\n", ()),
    ],
)
def test_only_what_is_stopped_is_reported(text: str, found: tuple[HaltedProcess, ...]) -> None:
    """Guards names as the kernel has them: any character, and none that a terminal would follow."""
    assert parse_stopped(Completed(0, text)) == found


def test_a_look_that_failed_knows_nothing() -> None:
    """Guards unknown against `all of it runs`."""
    assert isinstance(parse_stopped(Completed(1, "", "no such container")), Unknown)
    fact = halts_fact(Runtime.DOCKER, "it")
    assert isinstance(fact.read(Completed(124, "")), Unknown)
    assert fact.command != halts_fact(Runtime.PROCESS, "it").command
