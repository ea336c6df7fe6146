"""Options that several verbs share."""

import click
import pytest
from click.testing import CliRunner

from sparkwright.cli.options import force_option


@click.command("verb")
@click.argument("recipe")
@force_option
def echo_verb(recipe: str, force: str) -> None:
    """Reports what it was given."""
    click.echo(f"{recipe}|{force}")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "x|"),
        (["--force", "I know"], "x|I know"),
        (["--force", "--reason", "I know"], "x|I know"),
        (["--force=I know"], "x|I know"),
    ],
)
def test_a_reason_comes_with_the_force_or_next_to_it(words: list[str], told: str) -> None:
    """Both ways of writing give the verb the same."""
    found = CliRunner().invoke(echo_verb, ["x", *words])
    assert (found.exit_code, found.output) == (0, f"{told}\n")


@pytest.mark.parametrize("words", [["--force"], ["--reason", "I know"], ["--force", "--reason", ""]])
def test_neither_is_used_alone(words: list[str]) -> None:
    """An override is recorded with its reason, and a reason is for something."""
    found = CliRunner().invoke(echo_verb, ["x", *words])
    assert found.exit_code == 2 and ("needs a reason" in found.output or "goes with --force" in found.output)
