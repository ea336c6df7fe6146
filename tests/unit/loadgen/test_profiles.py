"""The workloads that ship."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.domain.workload import Agent, Length, LevelPlan, Replay, Single
from sparkwright.loadgen import profiles
from sparkwright.recipes.workload_file import load_workload
from unit.for_each import for_each

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "reference" / "workloads.md"
ISSUED = {"quick", "agentic", "agentic-quick", "seed-003", "seed-004", "sweep", "goodput", "open", "long-context"}


@for_each("name", profiles.profile_names())
def test_each_is_good_and_reports_what_it_is(name: str) -> None:
    """It can be loaded, is called by its file's name, and begins with why one would run it."""
    text = profiles.profile_text(name)
    made = load_workload(text, f"{name}.yaml")
    assert made.name == name
    assert made.levels
    assert text.startswith("# ")
    assert all(len(level.name) <= 40 for level in made.levels)
    assert all(profiles.shipped_file(level.shape.path) for level in made.levels if isinstance(level.shape, Replay))


def test_the_promised_ones_are_there() -> None:
    """Names that documents and people use."""
    assert set(profiles.profile_names()) >= ISSUED
    with pytest.raises(KeyError):
        profiles.profile_text("nonsense")


def test_quick_is_quick() -> None:
    """Its levels end by the clock: under two minutes on a server of any speed, with time left for the rest."""
    made = load_workload(profiles.profile_text("quick"), "quick.yaml")
    assert all(level.seconds for level in made.levels)
    assert made.repeats * sum(level.seconds for level in made.levels) <= made.deadline <= 115


def test_agentic_asks_the_question_of_the_tenth_turn() -> None:
    """Ten turns, 80 % of each prompt known, every such level next to its cold simulator of the same lengths."""
    made = load_workload(profiles.profile_text("agentic"), "agentic.yaml")
    by_name = {level.name: level for level in made.levels}
    twins = [level for level in made.levels if level.shape.cold]
    assert len(twins) == 2
    for cold in twins:
        warm = by_name[cold.name.removesuffix(" cold")]
        assert replace(cold.shape, cold=False) == warm.shape
        assert (cold.pace, cold.requests) == (warm.pace, warm.requests)
        assert (warm.shape.turns, warm.shape.cached) == (10, 0.8)
    tenth = made.levels[0].shape.planned_turns()[9]
    assert tenth.known / tenth.prompt == pytest.approx(0.8, abs=0.001)
    assert any(level.shape.noise for level in made.levels)


def test_seed_003_has_the_rows_of_its_tables() -> None:
    """Depths 0 to 980K of one user; 1, 2 and 4 users at 0 and 4K."""
    made = load_workload(profiles.profile_text("seed-003"), "seed-003.yaml")
    rows = {(one.shape.prompt.low, one.shape.depth, one.pace.concurrency) for one in made.levels}
    single = {(1024, depth * 1000, 1) for depth in (0, 240, 384, 512, 720, 980)}
    assert rows == single | {(2048, depth, users) for depth in (0, 4096) for users in (1, 2, 4)}
    assert {one.shape.output for one in made.levels} == {Length(128, 128)}


def test_what_does_not_fit_is_known_before() -> None:
    """Prompt, depth and answer of the longest request against the server's context; not known is no limit."""
    deep = LevelPlan("deep", Single(Length(10, 100), Length(20, 50), depth=1000))
    assert deep.most_tokens == 1150
    assert deep.fits_context(1150)
    assert not deep.fits_context(1149)
    assert deep.fits_context(0)
    loop = Agent(turns=3, system=100, tools=0, first=50, each_turn=30, output=10)
    assert LevelPlan("loop", loop).most_tokens == 150 + 2 * 40 + 10
    assert LevelPlan("replay", Replay("x")).most_tokens == 0


def test_the_document_is_true() -> None:
    """docs/reference/workloads.md names each profile, and every workload that it shows can be used."""
    told = DOCUMENT.read_text()
    assert [name for name in profiles.profile_names() if f"| `{name}` |" not in told] == []
    shown = re.findall(r"```yaml\n(.*?)```", told, re.DOTALL)
    assert len(shown) == 2
    assert [len(load_workload(text, "shown.yaml").levels) for text in shown] == [8, 1]
