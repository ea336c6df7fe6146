"""Options that an owner had read: what a foreign parser may answer, and which data is then used."""

import json
from typing import Any

import pytest

from sparkwright.engines.flag_data import SHIPPED, FlagLibrary, flag_data, read_data
from sparkwright.engines.flags import check_flags, check_variables
from sparkwright.engines.own_data import MOST_BYTES, OptionsOrigin, from_answer, from_help, from_text, to_text
from unit.for_each import for_each

ORIGIN = OptionsOrigin("vllm", "parser", "venv /opt/v on spark-1", 1_790_000_000.0)
OPTIONS: dict[str, Any] = {
    "model": {"kind": "value", "type": "str"},
    "brand-new": {"kind": "value", "type": "str", "choices": ["one", "two"]},
    "old": {"kind": "flag", "deprecated": "Use --brand-new.", "replaced-by": "--brand-new"},
}


def answer(**changed: Any) -> str:
    return json.dumps({"version": "0.34.0", "build": "a" * 64, "env": ["VLLM_NEW"], "options": OPTIONS} | changed)


def library(*texts: str) -> FlagLibrary:
    return FlagLibrary(tuple(from_text(to_text(from_answer(text, ORIGIN))) for text in texts))


def codes_with_severity(words: list[str], among: FlagLibrary, version: str = "0.34.0") -> list[tuple[str, str]]:
    found = check_flags("vllm", version, ["vllm", "serve", "m", *words], library=among)
    return [(one.code, one.severity.value) for one in found]


def test_flags_are_checked_exactly_once_the_version_was_read() -> None:
    """Guards the step from a guess to knowledge: the neighbour's data warns, the engine's own refuses."""
    words = ["--brand-new", "three", "--nonsense"]
    assert codes_with_severity(words, SHIPPED) == [("ENG005", "warn"), ("ENG001", "warn"), ("ENG001", "warn")]
    assert codes_with_severity(words, library(answer())) == [("ENG002", "override"), ("ENG001", "override")]
    assert codes_with_severity(["--brand-new", "one"], library(answer())) == []
    late = check_variables("vllm", "0.34.0", ["VLLM_NEW", "VLLM_NONE"], library=library(answer()))
    assert [one.subject for one in late] == ["env.VLLM_NONE"]


def test_the_other_versions_speak_of_what_was_read() -> None:
    """The history of an option includes the owner's versions, and the nearest one may be one of them."""
    among = library(answer())
    (found,) = check_flags("vllm", "0.33.0", ["vllm", "serve", "m", "--brand-new", "one"], library=among)
    assert "vllm has it from 0.34.0 on" in found.evidence
    chosen, said = flag_data("vllm", "0.34.1", among)
    assert chosen is not None and chosen.version == "0.34.0" and said[0].severity.value == "info"
    assert among.versions("vllm")[-2:] == ("0.33.0", "0.34.0") and SHIPPED.versions("vllm")[-1] == "0.33.0"


def test_a_local_part_that_the_recipe_leaves_out_is_the_same_version() -> None:
    """`0.34.0+cpu` in a venv is what a recipe calls 0.34.0; a build with a part that was not read is not exact."""
    among = library(answer(version="0.34.0+cpu"))
    assert flag_data("vllm", "0.34.0", among)[1] == () == flag_data("vllm", "0.34.0+cpu", among)[1]
    assert [one.code for one in flag_data("vllm", "0.33.0+cu130.gabc", among)[1]] == ["ENG005"]


def test_two_builds_of_one_version_do_not_mix() -> None:
    """A nightly keeps its version's text for days: the build that is on the node counts, else the last one read."""
    one = answer(build="1" * 64, options={"first": {"kind": "flag"}})
    among = library(one, answer(build="2" * 64))
    assert "first" not in among.read("vllm", "0.34.0").options
    assert "first" in among.for_builds(["1" * 64]).read("vllm", "0.34.0").options
    assert among.has_build("vllm-ray", "0.34.0", "2" * 64) and not among.has_build("vllm", "0.34.0", "3" * 64)


@for_each(
    "changed",
    [
        {"options": {}},
        {"options": []},
        {"options": {"a b": {"kind": "flag"}}},
        {"options": {"a": {"kind": "rm -rf"}}},
        {"options": {"a": {"kind": "flag", "more": 1}}},
        {"options": {"a": {"kind": "flag", "deprecated": "red \x1b[31m"}}},
        {"options": {"a": {"kind": "flag", "deprecated": "\u202egnp.exe"}}},
        {"options": {"a": {"kind": "flag", "aliases": ["--x; reboot"]}}},
        {"options": {"a": {"kind": "value", "choices": ["x" * 201]}}},
        {"options": {"a": {"kind": "value", "choices": [["x"]]}}},
        {"options": {"a": {"kind": "value", "choices": list(range(2001))}}},
        {"options": {"a": {"kind": "json", "keys": {"../x": None}}}},
        {"options": {f"a{n}": {"kind": "flag"} for n in range(5001)}},
        {"version": "../../etc"},
        {"version": None},
        {"build": "sha256:short"},
        {"env": ["VLLM_A\n"]},
        {"env": "VLLM_A"},
    ],
)
def test_an_answer_of_another_shape_is_refused(changed: dict[str, Any]) -> None:
    """A foreign program's answer names the place of its mistake; nothing of it is kept."""
    with pytest.raises(ValueError, match=r"options|version|build|env"):
        from_answer(answer(**changed), ORIGIN)


def test_an_answer_that_is_no_answer_is_refused() -> None:
    """No JSON, another kind of JSON, nested without end, or without end."""
    for text in ("", "Traceback", "[1]", "[" * 200_000, "x" * (MOST_BYTES + 1)):
        with pytest.raises(ValueError, match=r".+"):
            from_answer(text, ORIGIN)
    for text in ("", "usage: nothing", "-" * 1000, "x" * (MOST_BYTES + 1)):
        with pytest.raises(ValueError, match=r".+"):
            from_help(text, ORIGIN, {"version": "b1", "build": ""})


def test_what_is_kept_is_what_ships_in_shape() -> None:
    """A row of the shipped data survives being kept: types, limits, keys and spellings."""
    rows = {
        "x": {"kind": "value", "type": "float", "range": {"ge": 0, "lt": 1}, "default": 0.5, "aliases": ["-x", "--y"]},
        "z": {"kind": "json", "keys": {"method": ["a", None], "n": None}},
        "on": {"kind": "bool", "negatives": ["--disable-on"], "folded": False},
        "-O": {"kind": "value", "type": "human-int", "deprecated": True},
    }
    data = from_text(to_text(from_answer(answer(options=rows), ORIGIN)))
    assert data.options["x"].limits == {"ge": 0, "lt": 1} and data.names["--y"] == "x"
    assert data.options["z"].keys == {"method": ["a", None], "n": None}
    assert data.options["on"].negations == ("--disable-on",) and data.names["-O"] == "-O"
    assert read_data("vllm", "0.33.0").source == {}
