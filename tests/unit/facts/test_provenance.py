"""The start command of a rank, as containers and processes report it."""

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.probed import LaunchCommand
from sparkwright.facts.ranks import masked, parse_container, parse_process


def completed_with(text: str) -> Completed:
    return Completed(0, text, "")


def test_a_container() -> None:
    """Entry point and words in a row, the image by its digest where it has one."""
    text = '["vllm"]\n["serve","m","--port","8000"]\n"sha256:aa"\n["repo/image@sha256:bb"]\n'
    assert parse_container(completed_with(text)) == LaunchCommand(
        ("vllm", "serve", "m", "--port", "8000"), "repo/image@sha256:bb"
    )
    assert parse_container(completed_with('null\n["serve"]\n"sha256:aa"\n[]\n')) == LaunchCommand(
        ("serve",), "sha256:aa"
    )


def test_a_process() -> None:
    """The leader's words without itself and the environment that it is given."""
    text = "sh\n-c\nTEXT OF THE LEADER\nrank\n/state/rank0\nTEXT OF THE PRINTER\nenv\nA=1\nB=x y\nvllm\nserve\nm\n"
    assert parse_process(completed_with(text)) == LaunchCommand(("vllm", "serve", "m"))


def test_what_cannot_be_read_is_unknown() -> None:
    """Then provenance is missing, and such a run does not count."""
    assert isinstance(parse_container(completed_with("Error: No such object")), Unknown)
    assert isinstance(parse_process(completed_with("")), Unknown)


def test_secrets_are_not_kept() -> None:
    """Anyone who writes a key into the flags must not find it in a report."""
    words = ("serve", "--api-key", "k1", "--hf-token=k2", "--max-model-len", "8", "--api-key", "k3")
    assert masked(words) == ("serve", "--api-key", "***", "--hf-token=***", "--max-model-len", "8", "--api-key", "***")
