"""docs/reference/completion.md: what Tab completes, from the commands' own parameters and the functions behind them."""

from collections.abc import Iterable

import click

HEAD = """# Completion with Tab

{made}
Add the line of your shell first: [shell](../guides/shell.md). Tab then also completes commands, options, and options
with fixed values. It asks no node.

| Tab completes | in |
|---|---|
"""


def completion_page(made: str, verbs: Iterable[tuple[str, click.Command]]) -> str:
    """One row for each function that completes, in the order of the commands that use it first."""
    used: dict[str, list[str]] = {}
    for path, verb in verbs:
        for one in verb.params:
            if complete := getattr(one, "_custom_shell_complete", None):
                text = " ".join((complete.__doc__ or "").split()).removeprefix("Complete ").rstrip(".")
                assert text, f"{complete.__name__} has no docstring"
                command = path.removeprefix("sparkwright ")
                option = f" {one.opts[0]}" if isinstance(one, click.Option) else ""
                used.setdefault(text, []).append(f"`{command}{option}`")
    rows = [f"| {text} | {', '.join(dict.fromkeys(where))} |" for text, where in used.items()]
    return "\n".join([HEAD.format(made=made).rstrip("\n"), *rows, ""])
