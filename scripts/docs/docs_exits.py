"""docs/reference/exit-codes.md: the codes of the tree of errors, and what each command says of its own."""

import re
from collections.abc import Iterable, Iterator

import click

from sparkwright.cli.main import STOPPED
from sparkwright.domain.errors import SparkwrightError

MEANINGS = {
    0: "good",
    1: "findings, a refused plan, or a failed command on a node",
    2: "usage error, or a file that cannot be used: a recipe, a cluster file, the run store, the output",
    3: "a node cannot be reached",
    4: "busy: somebody else holds the lease",
    5: "not ready: the engine did not answer in time, a rank ended, or a phase is stuck",
    70: "a bug of ours",
    STOPPED: "stopped with Ctrl-C",
}
HEAD = """# Exit codes

{made}
{codes}
With `--json` a failure is a document with `exit_code`, too: [JSON documents](json.md). In a script:

```sh
sparkwright status deepseek-v4-flash >/dev/null && echo serves || echo "exit code $?"
```

## Commands that say more

| command | exit status |
|---|---|
"""


def exit_table() -> str:
    """Raises KeyError for a code of the tree of errors that has no meaning here."""
    assert codes_of(SparkwrightError) <= set(MEANINGS), "an error has an exit code without a meaning"
    rows = [f"| {code} | {text} |" for code, text in sorted(MEANINGS.items())]
    return "\n".join(["| code | means |", "|---|---|", *rows, ""])


def codes_of(error: type[SparkwrightError]) -> set[int]:
    return {error.exit_code}.union(*(codes_of(one) for one in error.__subclasses__()))


def exits_page(made: str, verbs: Iterable[tuple[str, click.Command]]) -> str:
    rows = [f"| `{path}` | {text} |" for path, text in own_codes(verbs)]
    return "\n".join([HEAD.format(made=made, codes=exit_table()).rstrip("\n"), *rows, ""])


def own_codes(verbs: Iterable[tuple[str, click.Command]]) -> Iterator[tuple[str, str]]:
    """The paragraph `Exit status: ...` in the help of each command."""
    for path, verb in verbs:
        for paragraph in re.split(r"\n\s*\n", verb.help or ""):
            text = " ".join(paragraph.split())
            if found := re.match(r"Exit status:? (.*)", text):
                yield path, found[1].replace("|", "/")
