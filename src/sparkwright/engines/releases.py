"""The version in the name of an image: its engine's version, the day of a nightly, and if it is a release."""

import re
from collections.abc import Iterator

from sparkwright.domain.engine import EngineDefinition
from sparkwright.engines.definitions import base_definition, read_definition, shipped_definitions
from sparkwright.engines.flag_data import versions
from sparkwright.engines.tables import DATA_OF, SEPARATE
from sparkwright.engines.version import version_key

_NUMBERS = re.compile(
    r"(?<![\w.])(?P<of>[a-z]+[-_]?)?v?(?P<version>\d+\.\d+\.\d+(?:(?:rc|a|b|\.post|\.dev)\d+)?)(?![\d.])"
)
_BUILD = re.compile(r"(?<![a-z0-9])(b\d{4,6})(?!\d)")
_DAY = re.compile(r"(?<!\d)(20\d\d)-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d{3})")
# `v0.30.0-aarch64-cu130-ubuntu2404`: for another machine, of the same sources.
_RELEASE = re.compile(
    r"(?:server-\w+-)?(?:v?\d+\.\d+\.\d+(?:\.?post\d+|rc\d+)?|b\d+)(?:-(?:aarch64|arm64|x86_64|amd64|cu\d+|ubuntu\d+|runtime))*"
)
# Other programs that carry their version into a tag.
_NOT_THE_ENGINE = ("cu", "cuda", "torch", "py", "python", "ubuntu", "nccl", "flashinfer", "transformers", "ray")


def split_image(image: str) -> tuple[str, str]:
    """Repository and tag of `host:port/name:tag@digest`."""
    bare = image.partition("@")[0]
    head, slash, last = bare.rpartition("/")
    name, _, tag = last.partition(":")
    return head + slash + name, tag


def tag_version(engine: str, image: str) -> str:
    """The version that the tag names, if it can be one of this engine; ''."""
    tag = split_image(image)[1]
    if engine == "llama-cpp":
        found = _BUILD.search(tag)
        return found[1] if found else ""
    named = [match for match in _NUMBERS.finditer(tag) if (match["of"] or "").rstrip("-_") not in _NOT_THE_ENGINE]
    good = [match["version"] for match in named if is_plausible(engine, match["version"])]
    return good[0] if good else ""


def is_plausible(engine: str, version: str) -> bool:
    """True if a number can be a version of the engine on a GB10: new enough, of a known major version."""
    of, definition = DATA_OF.get(engine, engine), base_definition(engine)
    if definition is None or not definition.release.first:
        return False
    known = versions(of) if of in SEPARATE else definition.versions
    key, first = version_key(of, version), version_key(of, definition.release.first)
    newest = version_key(of, known[-1]) if known else ()
    return bool(key) and key >= first and (len(key) == 1 or not newest or key[0] <= newest[0])


def is_release(engine: str, image: str) -> bool:
    """True if the image is the engine's own and holds a release as published."""
    repository, tag = split_image(image)
    definition = base_definition(engine)
    own = definition is not None and repository.removeprefix("docker.io/") in definition.release.images
    return own and bool(_RELEASE.fullmatch(tag))


def served_by(image: str) -> str:
    """The engine that an image starts by itself; '' where a command has to."""
    repository = split_image(image)[0].removeprefix("docker.io/")
    return next((name for name, one in _shipped() if repository in one.images), "")


def named_in(image: str) -> str:
    """The engine whose name stands in that of an image, as in `own/vllm-spark:1`; '' for none or several."""
    bare = "-" + re.sub(r"[^a-z0-9]+", "-", split_image(image)[0].lower()) + "-"
    found = [name for name, one in _shipped() if any(f"-{word}-" in bare for word in one.release.words)]
    return found[0] if len(found) == 1 else ""


def _shipped() -> Iterator[tuple[str, EngineDefinition]]:
    yield from ((name, read_definition(name)) for name in SEPARATE)
    yield from shipped_definitions().items()


def tag_day(image: str) -> str:
    """`2026-08-10` of a tag such as nightly-20260810 or 2026081102; ''."""
    found = _DAY.search(split_image(image)[1])
    return "-".join(found.groups()) if found else ""


def newest_on(engine: str, day: str) -> str:
    """The newest release that was out on a day, of those whose day is known; '' before the first of them."""
    definition = base_definition(engine)
    seen = definition.release.seen if definition else {}
    out = [version for version, since in seen.items() if since <= day]
    return out[-1] if out else ""
