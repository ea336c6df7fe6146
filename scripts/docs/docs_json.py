"""docs/reference/json.md: what every command prints with --json, from cli/documents.toml."""

import textwrap
import tomllib
from collections.abc import Sequence
from importlib.resources import files

HEAD = """# JSON documents

{made}
Every command takes `--json` and prints one document to stdout (`logs`, `top`, `status --watch` and `diagnose --watch`:
one a line). Within one `schema` keys are only added, never renamed or removed.

| key | in every document |
|---|---|
| `schema` | version of the keys: an integer |
| `document` | the command that printed it, such as `runs list` |
| `simulated` | `true` where all of it comes from the simulator; lists of both kinds have the mark in their rows |

A failure prints `schema`, `exit_code` and `errors` (`kind`, `message`, `hint`), and more for some kinds: `node`,
`findings` and `remedies`, or `causes` and `tail`.

The types are in a JSON schema, [documents.schema.json](documents.schema.json). It covers
{schemas}.

```
sparkwright status --json > status.json
uvx check-jsonschema --schemafile documents.schema.json status.json
```
"""


def documents() -> dict[str, dict[str, str]]:
    return tomllib.loads((files("sparkwright.cli") / "documents.toml").read_text(encoding="utf-8"))


def json_page(made: str, with_schema: Sequence[str]) -> str:
    """Rows of the page. with_schema: the commands whose documents the JSON schema describes."""
    named = [f"`{name}`" for name in with_schema]
    covered = textwrap.fill(f"{', '.join(named[:-1])} and {named[-1]}", 120)
    parts = [HEAD.format(made=made, schemas=covered)]
    for name, keys in documents().items():
        shown = {"further keys" if key == "*" else f"`{key}`": text.replace("|", "/") for key, text in keys.items()}
        rows = [f"| {key} | {text} |" for key, text in shown.items()]
        parts.append("\n".join([f"## `{name}`\n", "| key | holds |\n|---|---|", *rows, ""]))
    return "\n".join(parts)
