"""sparkrun's cluster files (`~/.config/sparkrun/clusters/NAME.yaml`): name, hosts, user."""

import re
from collections.abc import Mapping

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.values import dataclass
from sparkwright.recipes.values import plain_value, shown_value
from sparkwright.recipes.yaml_lines import Document, read_yaml

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:-]{0,250}[A-Za-z0-9])?", re.ASCII)
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", re.ASCII)
_MOST = 64


@dataclass(frozen=True, slots=True)
class SparkrunCluster:
    """destinations: as ssh takes them, the first is sparkrun's head."""

    name: str
    destinations: tuple[str, ...]


def read_sparkrun_cluster(text: str, source: str) -> SparkrunCluster:
    """source: the file's name as messages show it. Raises RecipeError with file and line."""
    document = read_yaml(text, source)
    tree = plain_value(document.value)
    if not isinstance(tree, dict):
        raise RecipeError(f"{source}:1: expected a mapping with `name` and `hosts`")
    name, hosts, user = tree.get("name"), tree.get("hosts"), tree.get("user")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _odd(document, source, "name", name, "a cluster's name")
    if not isinstance(hosts, list) or not 0 < len(hosts) <= _MOST:
        raise _odd(document, source, "hosts", hosts, f"a list of 1 to {_MOST} hosts")
    if user is not None and not (isinstance(user, str) and _USER.fullmatch(user)):
        raise _odd(document, source, "user", user, "a user's name")
    for number, host in enumerate(hosts):
        if not isinstance(host, str) or not _HOST.fullmatch(host.rpartition("@")[2]) or not _of_user(host):
            line = document.line(("hosts", number))
            raise RecipeError(f"{source}:{line}: found {shown_value(host)}, expected a host name or an address")
    return SparkrunCluster(name, tuple(host if "@" in host or not user else f"{user}@{host}" for host in hosts))


def _of_user(host: str) -> bool:
    user, at, _ = host.rpartition("@")
    return not at or bool(_USER.fullmatch(user))


def _odd(document: Document, source: str, key: str, value: object, wanted: str) -> RecipeError:
    return RecipeError(f"{source}:{document.line((key,))}: `{key}`: found {shown_value(value)}, expected {wanted}")


def chosen(names: Mapping[str, str], default: str, wanted: str) -> str:
    """The cluster to take. names: of its files; default: sparkrun's own choice, '' without. Raises RecipeError."""
    if not names:
        raise RecipeError("sparkrun has no cluster here", "sparkwright init HOST HOST prepares nodes without it")
    if wanted:
        if wanted not in names:
            raise RecipeError(f"sparkrun has no cluster {wanted!r}; it has: {', '.join(sorted(names))}")
        return wanted
    if default in names:
        return default
    if len(names) > 1:
        first = min(names)
        why = f"sparkrun has {len(names)} clusters and no default: {', '.join(sorted(names))}"
        raise RecipeError(why, f"sparkwright init --from-sparkrun {first}")
    return next(iter(names))
