"""Workloads as people write them: what they mean, and what is reported of mistakes."""

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.workload import (
    Agent,
    Api,
    Arrival,
    Length,
    LevelPlan,
    Pace,
    RateSearch,
    Replay,
    Single,
    Slo,
    Text,
    Workload,
)
from sparkwright.recipes.workload_file import load_workload, short_tokens
from unit.for_each import for_each

ALL = """\
name: mine
title: Every key
version: 3
api: completions
seed: 5
repeats: 2
thinking: unset
ignore_eos: false
temperature: 0.7
deadline: 10min
slo: {ttft: 1.5s, tpot: 50ms, end_to_end: 1min, share: 0.95}
search: {low: 0.5, high: 8, precision: 0.05}
levels:
  - single:
      prompt: {from: 10, to: 100, median: 30}
      output: 20
      depth: [0, 4096]
      text: code
    concurrency: [1, 2]
    per_user: 3
  - name: loop
    agent: {turns: 3, system: 100, tools: 50, first: 20, each_turn: 30, output: 10, cached: 0.8, think: 2s, noise: 1,
            cold_twin: true}
    warmup: 0
    seconds: 1min
  - replay: {path: a.jsonl, limit: 5, output: 7, timed: true}
  - name: rising
    single: {prompt: 5, output: 6, depth: 7, warm: true}
    arrival: ramp
    rate: 1
    to_rate: 4
    requests: 9
"""
BASE = "title: T\nlevels:\n  - single: {prompt: 5, output: 6}\n"


def test_every_key_means_what_it_states() -> None:
    """Lists of depth and concurrency become a level each; an agent's cold simulator is a level next to it."""
    made = load_workload(ALL, "mine.yaml")
    code = Single(Length(10, 100, 30), Length(20, 20), 0, False, Text.CODE)
    deep = Single(Length(10, 100, 30), Length(20, 20), 4096, False, Text.CODE)
    loop = Agent(3, 100, 50, 20, 30, 10, 0.8, 2.0, 1)
    cold = Agent(3, 100, 50, 20, 30, 10, 0.8, 2.0, 1, True)
    assert made == Workload(
        name="mine",
        title="Every key",
        levels=(
            LevelPlan("pp10-100 tg20 code d0 c1", code, Pace(concurrency=1), 3),
            LevelPlan("pp10-100 tg20 code d0 c2", code, Pace(concurrency=2), 6),
            LevelPlan("pp10-100 tg20 code d4K c1", deep, Pace(concurrency=1), 3),
            LevelPlan("pp10-100 tg20 code d4K c2", deep, Pace(concurrency=2), 6),
            LevelPlan("loop", loop, Pace(), 1, 0, 60.0),
            LevelPlan("loop cold", cold, Pace(), 1, 0, 60.0),
            LevelPlan("replay", Replay("a.jsonl", 5, Length(7, 7), True), Pace(Arrival.RECORDED, 0), 1),
            LevelPlan(
                "rising", Single(Length(5, 5), Length(6, 6), 7, True), Pace(Arrival.RAMP, 0, 1.0, 0, 4.0), requests=9
            ),
        ),
        version=3,
        api=Api.COMPLETIONS,
        seed=5,
        repeats=2,
        thinking=None,
        ignore_eos=False,
        temperature=0.7,
        slo=Slo(1.5, 0.05, 60.0, 0.95),
        search=RateSearch(0.5, 8.0, 0.05),
        deadline=600.0,
    )


def test_little_is_enough() -> None:
    """A title and a level; the name is the file's, a rate alone means users who come by chance."""
    made = load_workload(BASE + "  - single: {prompt: 8, output: 6}\n    rate: 2\n", "folder/night.yaml")
    assert made.name == "night"
    assert [level.pace for level in made.levels] == [Pace(), Pace(Arrival.POISSON, 0, 2.0)]
    assert [level.name for level in made.levels] == ["pp5 tg6", "pp8 tg6 2/s"]


@for_each("tokens, text", [(0, "0"), (4096, "4K"), (240000, "240K"), (384000, "384K"), (1000000, "1M"), (777, "777")])
def test_depths_are_called_as_people_call_them(tokens: int, text: str) -> None:
    """Both ways of counting thousands are used for contexts."""
    assert short_tokens(tokens) == text


@for_each(
    "text, told",
    [
        ("levels: [", "f.yaml:1:"),
        ("- a\n", "f.yaml:1: found a list of 1; a workload is a mapping"),
        ("title: T\n", "f.yaml:1: `levels` is missing"),
        ("title: T\nlevels: []\n", "f.yaml:2: `levels`: found an empty list"),
        (BASE + "repeat: 3\n", "f.yaml:4: unknown key `repeat`; did you mean `repeats`?"),
        (BASE + "repeats: many\n", "f.yaml:4: `repeats`: found 'many'; expected one whole number"),
        (BASE + "repeats: 0\n", "f.yaml:4: `repeats`: found 0; allowed 1..100"),
        (BASE + "deadline: soon\n", "f.yaml:4: `deadline`: found 'soon'; a duration is a number"),
        (BASE + "slo: {ttft: fast}\n", "f.yaml:4: `slo.ttft`: found 'fast'"),
        (BASE + "api: chatt\n", "f.yaml:4: `api`: found 'chatt'; allowed: chat or completions"),
        (BASE + "search: {low: 1, high: 2}\n", "f.yaml:4: `search` finds the highest rate that meets `slo:`"),
        (
            BASE + "slo: {ttft: 1s}\nsearch: {low: 3, high: 2}\n",
            "f.yaml:5: `search`: found low 3, high 2; low is the smaller",
        ),
        ("title: T\nlevels:\n  - requests: 3\n", "f.yaml:3: found none; a level has exactly one of"),
        (BASE + "    replay: {path: x}\n", "f.yaml:3: found `single` and `replay`; a level has exactly one of"),
        (BASE + "    arrival: poisson\n", "f.yaml:4: `arrival: poisson` needs `rate:`"),
        (BASE + "    arrival: closed\n    rate: 2\n", "f.yaml:5: `rate` has no meaning with `arrival: closed`"),
        (BASE + "    arrival: bursts\n    rate: 2\n", "f.yaml:4: `burst:` and `arrival: bursts` belong together"),
        (BASE + "    rate: 2\n    to_rate: 4\n", "f.yaml:5: `to_rate:` and `arrival: ramp` belong together"),
        (BASE + "  - single: {prompt: 5, output: 6}\n", "f.yaml:4: two levels are called 'pp5 tg6'"),
        (
            "title: T\nlevels:\n  - single:\n      prompt: {from: 9, to: 5}\n      output: 6\n",
            "f.yaml:4: `single.prompt`: found from 9 to 5; `from` is the smaller one",
        ),
        (
            "title: T\nlevels:\n  - single:\n      prompt: {from: 1, to: 5, median: 7}\n      output: 6\n",
            "f.yaml:4: `single.prompt.median`: found 7; it lies between",
        ),
        ("title: T\nlevels:\n  - single:\n      prompt: 4\n", "f.yaml:3: `levels[0].single.output` is missing"),
        (
            "title: T\nlevels:\n  - single:\n      prompt: 0\n      output: 6\n",
            "f.yaml:4: `levels[0].single.prompt.from`: found 0; allowed 1..",
        ),
        (
            "title: T\nlevels:\n  - single:\n      prompt: 4\n      output: 6\n      warm: true\n",
            "f.yaml:6: `warm: true` needs a `depth` above 0",
        ),
        (
            "title: T\nlevels:\n  - agent: {turns: 4, cached: 0.2}\n",
            "f.yaml:3: `levels[0].agent.cached`: found 0.2; allowed 0.5..0.99: it sets the size of new text",
        ),
        ("title: T\nlevels:\n  - agent: {turn: 4}\n", "f.yaml:3: unknown key `levels[0].agent.turn`; did you mean"),
        (
            "title: T\nlevels:\n  - replay: {path: x, timed: true}\n    rate: 2\n",
            "f.yaml:3: `timed: true` takes the times of the file",
        ),
        ("title: T\nlevels:\n  - replay: {path: ''}\n", "f.yaml:3: `levels[0].replay.path`: found ''; expected the"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, told: str) -> None:
    """File, line, key, what is there and what may: nobody has to guess."""
    with pytest.raises(RecipeError) as caught:
        load_workload(text, "f.yaml")
    assert told in caught.value.message
    assert "docs/reference/workloads.md" in caught.value.hint or "no YAML" in caught.value.message


def test_all_mistakes_are_reported_at_once() -> None:
    """The mistakes come in the order of their lines."""
    with pytest.raises(RecipeError) as caught:
        load_workload("title: 3\nrepeats: 0\nlevels:\n  - single: {prompt: -1, output: x}\n", "f.yaml")
    lines = caught.value.message.splitlines()
    assert [line.split(":")[1] for line in lines] == ["2", "4", "4", "4"]


def test_a_soak_of_ones_own_has_a_floor() -> None:
    """An omitted key is as in the shipped one: memory is not used up because a line is missing."""
    level = "levels:\n  - single: {prompt: 8, output: 8}\n"
    made = load_workload(f"title: T\nsoak: {{probe_every: 5min}}\n{level}", "f.yaml").soak
    assert made and (made.probe_every, made.leave_every, made.floor) == (300.0, 30.0, 2 * 1024**3)
