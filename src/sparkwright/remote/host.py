"""Scripts for nodes: what is asked of any node with plain POSIX tools."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files

from sparkwright.domain.command import Command, shell_command


def script_texts(module: str, **values: str) -> Callable[..., str]:
    """Reads the `.sh` file next to a module: `script_texts(__name__)("show", "stop")` joins sections of it and of
    host.sh.

    `#: NAME` begins a section; the comment lines right below it are not sent. values: of each `@NAME@` in the text.
    """

    def joined(*names: str) -> str:
        found = {**_sections(__name__), **_sections(module)}
        text = "".join(found[name] for name in names)
        return re.sub(f"@({'|'.join(values)})@", lambda match: values[match[1]], text) if values else text

    return joined


def filled(template: str, **values: str) -> str:
    """The template with each @NAME@ replaced in one go: what a value holds is never a name again."""
    return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], template)


@cache
def _sections(module: str) -> Mapping[str, str]:
    package, _, stem = module.rpartition(".")
    text = (files(package) / f"{stem}.sh").read_text(encoding="utf-8")
    _, *parts = re.split(r"^#: (\w+)\n(?:#.*\n)*", text, flags=re.MULTILINE)
    return {name: f"\n{body.rstrip()}\n" for name, body in zip(parts[::2], parts[1::2], strict=True)}


PRELUDE = script_texts(__name__)("prelude")


def assigned(**values: str) -> str:
    """Lines that set variables of a script: for texts that would be arguments, and so be shown by `ps` for as long."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


def exported(env: Iterable[tuple[str, str]]) -> str:
    """Lines that a shell reads to export variables."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in env)


def script(text: str, *args: str, timeout: float = 30.0, changes: str = "", stdin: bytes | None = None) -> Command:
    """A sh script with `x` (expands ~) and `$R` (system root) at hand; arguments arrive as $1, $2 ..."""
    return shell_command(PRELUDE + text, *args, timeout=timeout, changes=changes, stdin=stdin)
