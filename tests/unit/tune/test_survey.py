"""The recipe file that a search writes."""

from sparkwright.tune.survey import TuneSource

TEXT = """\
# For the team; ask me before you change it.
name: mine
serving:
  context: 32768  # what the agents need
profiles:
  night:
    serving: {port: 8001}
"""


def test_the_file_stays_the_user_s() -> None:
    """The best settings stand on top of the tuned profile, as one more; comments and order stay."""
    made = TuneSource(TEXT, "mine.yaml", "night", "night-tuned").written({"serving.context": 8192})
    assert made == TEXT + "  night-tuned:\n    serving:\n      port: 8001\n      context: 8192\n"
