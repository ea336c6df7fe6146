"""The answers to questions about an image, as text that may be cut off or odd."""

import json

import pytest

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import EngineFound, Unknown
from sparkwright.facts import engine_image
from sparkwright.facts.engine_image import parse_found

GOOD = "@@ arch\narm64\n@@ found\nvllm 0.21.1.dev3+g1a2b3c4\nray ?\nprogram /usr/local/bin/vllm\n@@ end\n"
SERVER = "@@ arch\namd64\n@@ found\nprogram /app/llama-server\n@@ printed\nversion: 11549 (0f1e2d3)\nwith GCC\n@@ end\n"


def test_versions_and_program() -> None:
    """An unknown version stays `?`: a package without a version is there, its version unknown."""
    versions = {"vllm": "0.21.1.dev3+g1a2b3c4", "ray": "?"}
    assert parse_found(Completed(0, GOOD)) == EngineFound("arm64", versions, "/usr/local/bin/vllm")


def test_a_program_that_reports_its_version() -> None:
    """llama-server's first line, among other lines that its libraries print."""
    assert parse_found(Completed(0, SERVER)) == EngineFound("amd64", {"llama-server": "11549"}, "/app/llama-server")


def test_no_image_is_no_answer() -> None:
    """Staging reports that it lacks; here nothing is known."""
    assert parse_found(Completed(0, "")) is None


@pytest.mark.parametrize(
    "done", [Completed(0, GOOD.replace("@@ end\n", "")), Completed(124, ""), Completed(1, "", "no")]
)
def test_half_an_answer_is_unknown(done: Completed) -> None:
    """A container that was killed half-way has not shown that the engine lacks."""
    assert isinstance(parse_found(done), Unknown)


def test_a_built_image_is_read_with_its_provenance() -> None:
    """Labels of ours without their prefix, the base's digests, and the packages that the build came to."""
    marks = {"sparkwright.build.recipe": "mine", "maintainer": "x"}
    text = f'@@ image\n"sha256:1"\n@@ arch\narm64\n@@ size\n5\n@@ labels\n{json.dumps(marks)}\n'
    found = engine_image.parse(Completed(0, f"{text}@@ base\nsha256:2 base@sha256:3\n@@ packages\na==1\nb==2\n"))
    assert isinstance(found, engine_image.BuiltImage)
    assert (found.labels, found.base, found.packages) == (
        {"recipe": "mine"},
        ("sha256:2", "base@sha256:3"),
        ("a==1", "b==2"),
    )
    assert found.as_record()["provenance"] == {"recipe": "mine"}


@pytest.mark.parametrize(
    "text", ["", "@@ image\nnull\n@@ labels\nnull\n@@ size\nx\n", '@@ image\n"a"\n@@ labels\n[]\n']
)
def test_odd_answers_about_an_image_are_unknown(text: str) -> None:
    """Another program's text is never taken for an image."""
    assert isinstance(engine_image.parse(Completed(1, text)), Unknown)
