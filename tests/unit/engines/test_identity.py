"""The engine that is there against the one that the recipe names."""

from dataclasses import replace

import pytest

from sparkwright.domain.facts import EngineFound, Identity, NodeFacts, Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import EngineChoice, Model, Recipe, Runtime
from sparkwright.engines.identity import as_installed, check_identity, difference, question
from unit.for_each import for_each

RECIPE = Recipe("r", "R", Model("org/name"), EngineChoice("vllm", "0.21.1", image="acme/vllm:1"))
HERE = {"spark-1": NodeFacts("spark-1", 0.0, identity=Identity("spark-1", "m", "aarch64", "b", "u", "/home/u"))}
PROGRAM = "/usr/local/bin/vllm"


def codes_with_severity(seen: EngineFound | Unknown, **engine: object) -> list[tuple[str, Severity]]:
    return [(f.code, f.severity) for f in findings(seen, **engine)]


def findings(seen: EngineFound | Unknown, **engine: object) -> list[Finding]:
    recipe = replace(RECIPE, engine=replace(RECIPE.engine, **engine))  # type: ignore[arg-type]
    return [*check_identity(recipe, {"spark-1": seen}, HERE, {})]


@for_each(
    "wanted, there, severity",
    [
        ("0.21.1", "0.21.1", None),
        ("0.21.1", "0.21.1+cu130", None),
        ("0.23.1rc1.dev407+g28fef2c70", "0.23.1rc1.dev407+g28fef2c70.cu130", None),
        ("0.21", "0.21.0", None),
        ("v0.21.0", "0.21.0", None),
        ("b10269", "10269", None),
        ("0.21.1", "0.21.1.dev3+g1a2b3c4", Severity.WARN),
        ("0.21.1", "0.21.0", Severity.WARN),
        ("1.3.0rc13", "1.3.0rc14", Severity.WARN),
        ("0.23.1rc1+g1111111", "0.23.1rc1+g2222222", Severity.WARN),
        ("b10269", "11549", Severity.WARN),
        ("0.21.1", "0.22.1", Severity.OVERRIDE),
        ("0.21.1", "1.21.1", Severity.OVERRIDE),
        ("0.21.1", "main", Severity.OVERRIDE),
    ],
)
def test_how_much_two_versions_differ(wanted: str, there: str, severity: Severity | None) -> None:
    """A patch level seldom changes a flag, a minor release always does; how it was packed changes nothing."""
    assert difference(wanted, there) is severity


def test_the_engine_of_the_recipe_is_no_finding() -> None:
    """Silence is what a good image gets."""
    assert codes_with_severity(EngineFound("arm64", {"vllm": "0.21.1"}, PROGRAM)) == []


def test_an_image_without_the_engine_is_blocked() -> None:
    """Neither the package nor its program is there: no --force makes it start."""
    assert codes_with_severity(EngineFound("arm64")) == [("ENG018", Severity.BLOCK)]
    assert codes_with_severity(EngineFound("arm64", {"vllm": "0.21.1"}, PROGRAM), name="vllm-ray") == [
        ("ENG018", Severity.BLOCK)
    ]


def test_a_program_of_the_recipes_own_gets_the_benefit_of_the_doubt() -> None:
    """It may contain its engine in a way that cannot be seen from outside."""
    assert codes_with_severity(EngineFound("arm64"), entrypoint=("/opt/start",)) == [("ENG018", Severity.WARN)]


@pytest.mark.parametrize("seen", [EngineFound("arm64", {}, PROGRAM), EngineFound("arm64", {"vllm": "?"}), Unknown("x")])
def test_a_version_that_cannot_be_read_is_not_guessed(seen: EngineFound | Unknown) -> None:
    """It is reported, and forbids nothing."""
    assert codes_with_severity(seen) == [("ENG018", Severity.INFO)]


def test_another_processor_comes_before_everything_else() -> None:
    """The image's content could not be read there, so its lack is no finding of its own."""
    assert codes_with_severity(EngineFound("amd64")) == [("ENG020", Severity.BLOCK)]
    assert [*check_identity(RECIPE, {"spark-1": EngineFound("amd64", {"vllm": "0.21.1"})}, {}, {})] == []


def test_a_finding_names_what_is_there_and_what_is_wanted() -> None:
    """The finding names the node, so that one wrong image of two is seen."""
    (finding,) = findings(EngineFound("arm64", {"vllm": "0.22.0"}, PROGRAM))
    assert finding.subject == "spark-1" and "acme/vllm:1" in finding.title
    assert "expected 0.21.1, found vllm 0.22.0" in finding.evidence and "0.22.0" in finding.remedy


def test_another_release_on_all_nodes_goes_on_with_the_difference() -> None:
    """`pip install -U` does not stop the service: what is there is planned and checked, and the change is told."""
    recipe = replace(RECIPE, engine=replace(RECIPE.engine, version="0.26.0"))
    seen = {node: EngineFound("arm64", {"vllm": "0.33.0"}, PROGRAM) for node in ("spark-1", "spark-2")}
    assert as_installed(recipe, seen).engine.version == "0.33.0"
    warned, _ = check_identity(recipe, seen, {}, {})
    assert (warned.code, warned.severity) == ("ENG019", Severity.WARN)
    assert "planned for 0.33.0" in warned.evidence and "options are new, gone: calculate-kv-scales" in warned.evidence
    unread = {"spark-1": EngineFound("arm64", {"vllm": "0.34.0"}, PROGRAM)}
    (warned,) = check_identity(recipe, unread, {}, {})
    assert warned.severity is Severity.WARN and "options of 0.34.0 were not read here" in warned.evidence


def test_an_image_whose_tag_and_contents_differ_goes_on_with_its_contents() -> None:
    """The tag says 0.33.0, the image holds 0.32.0: what runs is planned for, and each node says so once."""
    recipe = replace(RECIPE, engine=replace(RECIPE.engine, version="0.33.0", image="acme/vllm:v0.33.0"))
    seen = {node: EngineFound("arm64", {"vllm": "0.32.0"}, PROGRAM) for node in ("spark-1", "spark-2")}
    assert as_installed(recipe, seen).engine.version == "0.32.0"
    assert [(one.code, one.severity) for one in check_identity(recipe, seen, HERE, {})] == [
        ("ENG019", Severity.WARN)
    ] * 2


def test_nodes_that_differ_are_stopped() -> None:
    """Ranks of two releases do not work together; what is planned stays what the recipe names."""
    seen = {"spark-1": EngineFound("arm64", {"vllm": "0.21.1"}), "spark-2": EngineFound("arm64", {"vllm": "0.33.0"})}
    assert as_installed(RECIPE, seen) == RECIPE
    (stopped,) = check_identity(RECIPE, seen, {}, {})
    assert (stopped.subject, stopped.severity) == ("spark-2", Severity.OVERRIDE)


def test_a_missing_version_is_read_from_the_node() -> None:
    """Nothing differs from a recipe without `version:`; a build of llama.cpp is written as its releases are."""
    recipe = replace(RECIPE, engine=replace(RECIPE.engine, version=""))
    seen = {"spark-1": EngineFound("arm64", {"vllm": "0.34.0"}, PROGRAM)}
    assert as_installed(recipe, seen).engine.version == "0.34.0"
    assert [*check_identity(recipe, seen, {}, {})] == []
    assert as_installed(recipe, {"spark-1": Unknown("x")}) == recipe
    native = replace(recipe, engine=EngineChoice("llama-cpp", "", Runtime.PROCESS))
    assert as_installed(native, {"spark-1": EngineFound("", {"llama-server": "11549"})}).engine.version == "b11549"


@for_each(
    "engine, wanted",
    [
        ({"name": "vllm"}, ("", "vllm", "vllm")),
        ({"name": "vllm-ray"}, ("", "vllm", "vllm", "ray")),
        ({"name": "sglang"}, ("", "sglang", "sglang")),
        ({"name": "trtllm"}, ("", "trtllm-serve", "tensorrt_llm")),
        ({"name": "llama-cpp"}, ("", "/app/llama-server")),
        ({"name": "llama-cpp", "runtime": Runtime.PROCESS}, ("", "llama-server")),
        (
            {"name": "llama-cpp", "runtime": Runtime.PROCESS, "entrypoint": ("/opt/llama-server",)},
            ("", "/opt/llama-server"),
        ),
        (
            {"name": "llama-cpp", "runtime": Runtime.PROCESS, "venv": "/v"},
            ("/v/bin/python", "/v/bin/python", "xllamacpp"),
        ),
        ({"runtime": Runtime.PROCESS, "venv": "/opt/v/"}, ("/opt/v/bin/python", "vllm", "vllm")),
        ({"entrypoint": ("/opt/start", "x")}, ("", "/opt/start", "vllm")),
    ],
)
def test_what_is_asked_of_which_engine(engine: dict[str, object], wanted: tuple[str, ...]) -> None:
    """The package that carries the version, and all that the engine cannot do without."""
    asked = question(replace(RECIPE, engine=replace(RECIPE.engine, **engine)), "python3")  # type: ignore[arg-type]
    assert asked and asked.arguments == wanted


LLAMA = {"name": "llama-cpp", "version": "2026.10.11549", "runtime": Runtime.PROCESS, "image": ""}


def test_a_venv_whose_engine_cannot_be_imported_is_blocked() -> None:
    """pip installs a wheel that the node cannot load; the system library that lacks is named."""
    versions = {"xllamacpp": "2026.10.11549"}
    said = "exit 1: ImportError: libgomp.so.1: cannot open shared object file: No such file or directory"
    (finding,) = findings(EngineFound("", versions, "/v/bin/python", said), **LLAMA, venv="/v")
    assert (finding.code, finding.severity) == ("ENG035", Severity.BLOCK)
    assert finding.title == "xllamacpp 2026.10.11549 in /v cannot be imported"
    assert "libgomp.so.1" in finding.remedy and said in finding.evidence
    crashed = EngineFound("", versions, "/v/bin/python", "exit 132: ")
    assert "--force-reinstall" in findings(crashed, **LLAMA, venv="/v")[0].remedy
    assert codes_with_severity(EngineFound("", versions, "/v/bin/python"), **LLAMA, venv="/v") == []
    assert codes_with_severity(EngineFound("", {}, "/v/bin/python"), **LLAMA, venv="/v") == [("ENG018", Severity.BLOCK)]


def test_a_native_build_of_llama_cpp_is_a_program_and_no_package() -> None:
    """The missing thing is `llama-server`: the user has no Python package of it and needs none."""
    (finding,) = findings(EngineFound(""), **LLAMA)
    assert (finding.code, finding.severity) == ("ENG018", Severity.BLOCK)
    assert finding.title == "llama-server is not in the node's PATH"
    assert "Python" not in finding.evidence and "`engine.entrypoint`" in finding.remedy
    (finding,) = findings(EngineFound(""), **LLAMA, entrypoint=("/opt/llama/llama-server",))
    assert finding.title == "llama-server is not in /opt/llama" and "engine.entrypoint" in finding.remedy


@pytest.mark.parametrize(("build", "told"), [("11549", []), ("10269", [("ENG019", Severity.WARN)])])
def test_the_wheels_version_ends_with_the_build_that_the_server_reports(build: str, told: list[object]) -> None:
    """2026.10.11549 is build 11549; another build may differ in a flag, and is no other release."""
    assert codes_with_severity(EngineFound("", {"llama-server": build}, "/usr/bin/llama-server"), **LLAMA) == told


TWIN = {"name": "simulator", "version": "0.21.0", "runtime": Runtime.PROCESS, "image": ""}


def test_the_simulator_is_sparkwright_on_the_node() -> None:
    """A laptop's interpreter is seldom there; the version in the recipe is the one that it plays."""
    for more, python in (({}, "/laptop/bin/python"), ({"venv": "/opt/v"}, "/opt/v/bin/python")):
        asked = question(replace(RECIPE, engine=replace(RECIPE.engine, **TWIN, **more)), "/laptop/bin/python")  # type: ignore[arg-type]
        assert asked and asked.arguments == (python, python, "sparkwright")
    assert codes_with_severity(EngineFound("", {"sparkwright": "?"}, "/opt/v/bin/python"), **TWIN) == []
    for seen in (EngineFound(""), EngineFound("", {}, "/usr/bin/python3"), EngineFound("", {"sparkwright": "1.0"})):
        (finding,) = findings(seen, **TWIN)
        assert (finding.code, finding.severity, finding.evidence) == (
            "ENG018",
            Severity.BLOCK,
            "python3 there has no package sparkwright",
        )
        assert "engine: {venv: " in finding.remedy and "docs/guides/simulator.md" in finding.remedy


@pytest.mark.parametrize("more", [{"runtime": Runtime.DOCKER}, {"entrypoint": ("sparkwright-twin",)}])
def test_a_simulator_of_another_make_is_asked_nothing(more: dict[str, object]) -> None:
    """An image of it is made on the spot, and a program of its own may be anything."""
    assert question(replace(RECIPE, engine=replace(RECIPE.engine, **{**TWIN, **more})), "python3") is None  # type: ignore[arg-type]
