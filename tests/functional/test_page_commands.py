"""Commands of README and guides that need no node and no server: each runs as it stands there."""

import re
from pathlib import Path

from functional.command import UserShell
from sparkwright.adapters.files import Places, recipe_names
from unit.cli.test_docs import shown_commands

ALONE = ("plan", "recipes list", "recipes show", "explain", "connect --list")
# A file of the reader's, an address, or a name to be replaced.
EXAMPLE = re.compile(r"^[.~/<]|://|\.ya?ml$|\.json$|^[A-Z][A-Z0-9-]+$|^my-|^arena$|/qwen")
CODE = re.compile(r"[A-Z]+\d{3}")


def runs_alone(words: list[str]) -> bool:
    if not " ".join(words).startswith(ALONE) or any(
        EXAMPLE.search(word) and not CODE.fullmatch(word) for word in words
    ):
        return False
    named = [word.partition("@")[0] for word in words[1:] if re.fullmatch(r"[a-z0-9.@-]+", word)]
    known = recipe_names(Places(Path("/nowhere"), Path("/nowhere")))
    return words[0] != "plan" or ("--nodes" in words and any(name in known for name in named))


def test_commands_of_pages_that_need_no_node_run(tmp_path: Path) -> None:
    """Guards a reader who pastes them: no usage error, no traceback, and something on the screen."""
    shell = UserShell(tmp_path)
    shown = [words[: words.index(">")] if ">" in words else words for _, words in shown_commands()]
    chosen = [words for words in shown if runs_alone(words)]
    assert len(chosen) > 6 and {words[0] for words in chosen} >= {"plan", "recipes", "explain"}
    wrong = []
    for words in chosen:
        code, out, err = shell.run(*words)
        if code not in (0, 1) or "Traceback" in err or not (out or err):
            wrong.append((" ".join(words), code, err[-300:]))
    assert wrong == []
