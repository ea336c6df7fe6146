"""The command that continues a search, as `tune` prints it."""

import shlex
from dataclasses import replace
from pathlib import Path

from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli.tune import TuneOptions, resume_command
from sparkwright.domain.tuning import Trial, Tried, Tuned, TuneGoal

OPTIONS = TuneOptions(
    "./twin.yaml", "", "", ClusterOptions(ssh_config="s.conf"), False, "latency", 60.0, ("batched-tokens",), (), 2, 3,
    "", False, Path("t.yaml"), None, "no GPU here",
)  # fmt: skip


def test_a_search_that_was_forced_continues_with_its_reason() -> None:
    """Guards the pasted command from a refusal that the first one had overruled."""
    trials = (Trial((0,), 0, Tried.MEASURED, (1.0,), "", seconds=43.0),)
    tuned = Tuned("t-1", TuneGoal.LATENCY, "a", (), (), trials, 4, None, needs=127.0)
    words = shlex.split(resume_command(tuned, OPTIONS))
    assert words[words.index("--force") + 1] == "no GPU here"
    assert words[words.index("--resume") + 1] == "t-1" and words[words.index("--time") + 1] == "3m"
    assert "--cluster" not in words and words[words.index("--ssh-config") + 1] == "s.conf"


def test_a_search_without_a_trial_continues_with_the_time_it_was_given() -> None:
    """Guards the command after Ctrl-C in the first trial: nothing shows yet how long the others take."""
    tuned = Tuned("t-1", TuneGoal.LATENCY, "a", (), (), (), 4, None)
    words = shlex.split(resume_command(tuned, replace(OPTIONS, seconds=600.0)))
    assert words[words.index("--time") + 1] == "10m"
