"""The data files and the choice among them."""

import pytest
from engine_data import DATA, joined

from sparkwright.domain.finding import Severity
from sparkwright.engines.flag_data import flag_data, nearest, raw_data, read_data, versions, versions_in
from sparkwright.engines.tables import emitted
from sparkwright.engines.version import version_key
from unit.for_each import for_each

VLLM = ("0.19.0", "0.20.2", "0.21.0", "0.24.0", "0.26.0", "0.27.1", "0.30.0", "0.33.0")
SGLANG = ("0.5.10", "0.5.12", "0.5.16", "0.5.17", "0.5.20", "0.5.23")


def test_there_is_data_for_the_versions_that_people_run() -> None:
    """Oldest first, numbers compared as numbers: 0.5.10 comes before 0.5.12, and not after 0.5.9's letters."""
    assert versions("vllm") == versions("vllm-ray") == versions("simulator") == VLLM
    assert versions("sglang") == SGLANG
    assert versions("trtllm") == ("1.3.0rc",)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama-cpp"])
def test_data_reports_where_it_comes_from(engine: str) -> None:
    """Every file read from a wheel names it and its hash, and is whole."""
    for version in versions(engine):
        data, said = flag_data(engine, version)
        assert data is not None
        assert not said
        assert version in data.wheel
        assert len(data.sha256) == 64
        assert len(data.options) > 200
        assert len(data.env) > 100


def test_what_no_wheel_gave_claims_none() -> None:
    """TensorRT-LLM's wheel is not on PyPI: its file has no hash, and no release counts as exactly it."""
    data = read_data("trtllm", "1.3.0rc")
    assert (data.wheel, data.sha256, data.env) == ("", "", frozenset())
    assert {f"--{name}" for name in emitted("trtllm")} <= {*data.names}
    assert flag_data("trtllm", "1.3.0rc13")[1][0].code == "ENG005"


@for_each(
    "engine, version, option, kind, kept",
    [
        ("vllm", "0.19.0", "gpu-memory-utilization", "float", {"range"}),
        ("vllm", "0.33.0", "tool-call-parser", "str", {"known"}),
        ("vllm", "0.30.0", "headless", "str", set()),
        ("sglang", "0.5.10", "tensor-parallel-size", "int", {"aliases"}),
        ("sglang", "0.5.23", "tp-size", "int", {"aliases"}),
        ("sglang", "0.5.16", "cuda-graph-backend-prefill", "str", {"choices"}),
        ("sglang", "0.5.23", "sampling-backend", "str", {"choices"}),
    ],
)
def test_facts_looked_up_in_the_sources(engine: str, version: str, option: str, kind: str, kept: set[str]) -> None:
    """Spot checks of what each way of registering options (three in vLLM, three in SGLang) gave."""
    found = read_data(engine, version).options[option]
    has = {"range": found.limits, "known": found.known, "aliases": found.aliases, "choices": found.choices}
    assert found.type == kind
    assert all(has[name] for name in kept)


def test_values_that_sglang_takes_differ_by_version() -> None:
    """nvfp4 as KV cache came with 0.5.16; 0.5.12 refuses it."""
    assert "nvfp4" not in read_data("sglang", "0.5.12").options["kv-cache-dtype"].choices
    assert "nvfp4" in read_data("sglang", "0.5.16").options["kv-cache-dtype"].choices


@for_each(
    "engine, version, near",
    [
        ("vllm", "0.21.1", "0.21.0"),
        ("vllm", "0.22.0", "0.21.0"),
        ("vllm", "0.28.0", "0.27.1"),
        ("vllm", "0.18.0", "0.19.0"),
        ("vllm", "0.99.0", "0.33.0"),
        ("vllm", "1.0.0", "0.33.0"),
        ("vllm", "nightly", "0.33.0"),
        ("vllm", "0.23.1rc1.dev0+g72261a7af", "0.24.0"),
        ("sglang", "0.5.14", "0.5.12"),
        ("sglang", "0.5.19", "0.5.20"),
        ("llama-cpp", "b10269", "2026.10.11549"),
        ("trtllm", "1.3.0rc13", "1.3.0rc"),
    ],
)
def test_a_version_without_data_takes_the_nearest_and_reports_it(engine: str, version: str, near: str) -> None:
    """Never a silent guess: the note names the version that was asked for and the one that was used."""
    data, (note,) = flag_data(engine, version)
    assert data is not None
    assert data.version == near
    assert (note.code, note.title) == ("ENG005", f"flags are checked against {engine} {near}")
    assert version in note.evidence


def test_how_far_away_decides_how_loudly_it_is_reported() -> None:
    """A patch of the same series is a note, another series a warning."""
    assert flag_data("vllm", "0.21.1")[1][0].severity is Severity.INFO
    assert flag_data("vllm", "0.28.0")[1][0].severity is Severity.WARN
    assert "1 series older" in flag_data("vllm", "0.28.0")[1][0].evidence


@pytest.mark.parametrize("version", ["v0.21.0", "0.21.0+cu130"])
def test_another_spelling_of_a_version_is_that_version(version: str) -> None:
    """A tag's `v` and the CUDA that a wheel was built for change no option; a fork's own suffix may."""
    assert flag_data("vllm", version)[1] == ()
    assert flag_data("vllm", "0.21.0+spark")[1][0].code == "ENG005"


def test_versions_compare_as_their_projects_mean_them() -> None:
    """Candidates come before the release, llama.cpp counts builds, and ties go to the older side."""
    order = ["1.2.0", "1.3.0.dev1", "1.3.0rc2", "1.3.0rc13", "1.3.0", "1.3.0.post1"]
    assert sorted(order, key=lambda v: version_key("trtllm", v)) == order
    assert version_key("llama-cpp", "b11549") == version_key("llama-cpp", "2026.10.11549")
    assert nearest("sglang", "0.5.18", ("0.5.16", "0.5.20")) == "0.5.16"


def test_an_engine_without_data_stops() -> None:
    """Better not checked and reported than passed over."""
    data, (finding,) = flag_data("exllama", "1.0")
    assert data is None
    assert (finding.code, finding.severity.stops) == ("ENG006", True)


def test_a_file_that_is_no_flag_data_is_refused() -> None:
    """Half a file is an error at loading, not a list of flags without findings."""
    with pytest.raises(KeyError):
        versions_in('{"engine": "vllm"}')


def test_a_row_holds_from_since_to_until() -> None:
    """An option that came, changed and went is in exactly the versions that have it; variables likewise."""
    text = """{"engine": "e", "versions": [{"version": "1"}, {"version": "2"}, {"version": "3"}], "options": [
      {"name": "a", "kind": "flag"}, {"name": "b", "until": "1", "kind": "flag"},
      {"name": "b", "since": "2", "until": "2", "kind": "value"}, {"name": "c", "since": "3", "kind": "flag"}],
      "env": [{"since": "2", "names": ["X"]}], "env-deprecated": [{"until": "2", "names": {"Y": "use X"}}]}"""
    one, two, three = versions_in(text).values()
    assert [{name: row["kind"] for name, row in made["options"].items()} for made in (one, two, three)] == [
        {"a": "flag", "b": "flag"}, {"a": "flag", "b": "value"}, {"a": "flag", "c": "flag"},
    ]  # fmt: skip
    assert [made["env"] for made in (one, two, three)] == [[], ["X"], ["X"]]
    assert [made.get("env-deprecated") for made in (one, two, three)] == [{"Y": "use X"}, {"Y": "use X"}, None]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "llama-cpp"])
def test_a_file_is_what_its_versions_make(engine: str) -> None:
    """The tool joins what it reads of each version: nothing in a file was written by hand, and no row is kept twice."""
    path = DATA / f"{engine}.json"
    assert joined({version: dict(raw_data(engine, version)) for version in versions(engine)}) == path.read_text()
