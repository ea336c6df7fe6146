"""Build -> Dockerfile and the files with it.

One stage: an engine compiles kernels while it runs, so that the compilers stay anyway, and a second stage would leave
gigabytes without a name behind. Neither `RUN --mount` nor `ADD --checksum`: Debian's docker.io has no BuildKit.
"""

import hashlib
import io
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from shlex import quote

from sparkwright.domain.facts import Disk, Docker, Identity, NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.image import MACHINES, PREFIX, built_name
from sparkwright.domain.recipe import PTXAS, Build, BuildSource, PythonPackages, Recipe, Runtime
from sparkwright.domain.units import GIB, gib
from sparkwright.remote.host import filled, script_texts

FOLDER = "/opt/sparkwright/build"
CONSTRAINTS = "constraints.txt"
FREEZE = f"{FOLDER}/freeze.txt"

_PACKAGES = """\
RUN apt-get update \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {names} \\
 && rm -rf /var/lib/apt/lists/*
"""
# Its source is fetched with --depth 1 of a full hash: the server must have exactly this commit, and a moved branch
# changes nothing. Triton has a ptxas of its own that does not know sm_121a, or none where it looks.
_SCRIPT = script_texts(__name__)
_PTXAS_TITLE = "Triton's ptxas is the one of the base image: its own does not know GB10 (sm_121a)."


def context(recipe: Recipe, build: Build) -> Mapping[str, str]:
    """File name -> text of all that `docker build` is given; the Dockerfile first."""
    files = {"Dockerfile": "".join(_dockerfile(recipe, build)), **_python_files(build)}
    files |= {_script(source): _source_text(source, bool(build.python)) for source in build.sources}
    if build.cuda_arch:
        files["ptxas.sh"] = _program("ptxas", _PTXAS_TITLE, PTXAS=PTXAS, ARCH=_digits(build.cuda_arch))
    if build.steps:
        files["steps.sh"] = "\n".join(("#!/bin/sh", "set -eux", *build.steps, ""))
    return files


def _dockerfile(recipe: Recipe, build: Build) -> Iterator[str]:
    yield f"# Image for the recipe {recipe.name}, made by `sparkwright build`.\n"
    yield f"# Not pinned: {' '.join(build.unpinned.split())}\n" if build.unpinned else ""
    yield f"FROM {build.base}\n"
    yield "".join(f"ENV {name}={_value(value)}\n" for name, value in environment(build).items())
    if build.packages:
        yield _PACKAGES.format(names=" ".join(build.packages))
    if _python_files(build):
        yield f"COPY {' '.join(_python_files(build))} {FOLDER}/\n"
    yield "".join(_install(number, group) for number, group in enumerate(build.python))
    scripts = [_script(source) for source in build.sources]
    scripts += (["ptxas.sh"] if build.cuda_arch else []) + (["steps.sh"] if build.steps else [])
    yield "".join(f"COPY {name} {FOLDER}/\nRUN sh {FOLDER}/{name}\n" for name in scripts)
    if build.python or build.sources:
        yield f"RUN python3 -m pip freeze --all > {FREEZE}\n"
    # The rank's program is given by whoever starts it; a base's entrypoint would stand before it.
    yield "ENTRYPOINT []\n"


def environment(build: Build) -> dict[str, str]:
    """The environment of the build and of the image: an engine compiles for the same target later."""
    found = {"PIP_NO_CACHE_DIR": "1", "PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    if build.cuda_arch:
        found |= {"TORCH_CUDA_ARCH_LIST": build.cuda_arch, "FLASHINFER_CUDA_ARCH_LIST": build.cuda_arch}
        found |= {"CUTE_DSL_ARCH": f"sm_{_digits(build.cuda_arch)}", "TRITON_PTXAS_PATH": PTXAS}
    if build.jobs:
        found |= {"MAX_JOBS": str(build.jobs), "CMAKE_BUILD_PARALLEL_LEVEL": str(build.jobs)}
    return found | dict(build.env)


def _digits(arch: str) -> str:
    """`12.1a` -> `121a`; of several the first."""
    return arch.split()[0].replace(".", "")


def _python_files(build: Build) -> dict[str, str]:
    """A requirements file for each group, and one with all versions that what is installed later must keep."""
    files = {f"python-{n}.txt": "".join(f"{word}\n" for word in g.packages) for n, g in enumerate(build.python)}
    pins = [word.split()[0].partition("==") for group in build.python for word in group.packages]
    # pip takes no extras in a constraint.
    text = "".join(f"{name.partition('[')[0]}=={version}\n" for name, _, version in pins)
    return {CONSTRAINTS: text, **files} if files else {}


def hashed(group: PythonPackages) -> bool:
    return any("--hash=" in word for word in group.packages)


def _install(number: int, group: PythonPackages) -> str:
    # With one hash pip wants one of every dependency: a group with hashes names all that it installs.
    way = "--no-deps --require-hashes" if hashed(group) else f"--constraint {FOLDER}/{CONSTRAINTS}"
    index = f" --index-url {quote(group.index)}" if group.index else ""
    return f"RUN python3 -m pip install {way}{index} --requirement {FOLDER}/python-{number}.txt\n"


def _script(source: BuildSource) -> str:
    return f"source-{source.name}.sh"


def _source_text(source: BuildSource, constrained: bool) -> str:
    # setuptools-scm asks git for tags, which a fetch of one commit does not bring.
    version = [f"export SETUPTOOLS_SCM_PRETEND_VERSION={quote(source.version)}"] if source.version else []
    request = f", the head of pull request {source.pull_request}" if source.pull_request else ""
    return _program(
        "source",
        f"{source.name} at one commit{request}: fetched by its full hash, and checked before it is built.",
        NAME=source.name,
        REPOSITORY=quote(source.repository),
        COMMIT=source.commit,
        FOLDER=quote(source.folder),
        PREPARE="".join(f"{line}\n" for line in (*version, *source.prepare)),
        CONSTRAINT=f" --constraint {FOLDER}/{CONSTRAINTS}" if constrained else "",
    )


def _program(name: str, title: str, **values: str) -> str:
    return f"#!/bin/sh\n# {title}" + filled(_SCRIPT(name), **values)


def _value(text: str) -> str:
    """A value as ENV takes it, with nothing in it replaced."""
    return '"' + re.sub(r'[\\"$]', r"\\\g<0>", text) + '"'


def archive(files: Mapping[str, str]) -> bytes:
    """The same bytes for the same files: no times, no owners."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, text in files.items():
            entry, content = tarfile.TarInfo(name), text.encode()
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


NOTE = "built by `sparkwright build` from pinned parts; the tag is the hash of all of them"


def content_hash(recipe: Recipe, build: Build) -> str:
    """64 hex digits over the Dockerfile and the files with it, and the platform that they are built for."""
    digest = hashlib.sha256(build.platform.encode())
    for name, text in context(recipe, build).items():
        digest.update(f"\0{name}\0{text}".encode())
    return digest.hexdigest()


def image_name(recipe: Recipe, build: Build) -> str:
    """`sparkwright/NAME:HASH`."""
    return f"{built_name(recipe)}:{content_hash(recipe, build)[:12]}"


def served(recipe: Recipe) -> Recipe:
    """The recipe with the built image as its image, where it names no other."""
    engine = recipe.engine
    if recipe.build is None or engine.image or engine.runtime is not Runtime.DOCKER:
        return recipe
    note = engine.image_note or NOTE
    return replace(recipe, engine=replace(engine, image=image_name(recipe, recipe.build), image_note=note))


def labels(recipe: Recipe, build: Build, version: str, at: float) -> dict[str, str]:
    """version: of sparkwright; at: seconds since the epoch. They change nothing of the image's content."""
    return {
        f"{PREFIX}recipe": recipe.name,
        f"{PREFIX}recipe-hash": recipe.hash,
        f"{PREFIX}content": content_hash(recipe, build),
        f"{PREFIX}base": build.base,
        f"{PREFIX}sources": " ".join(f"{s.name}={s.repository}@{s.commit}" for s in build.sources),
        f"{PREFIX}unpinned": " ".join(build.unpinned.split()),
        f"{PREFIX}engine": f"{recipe.engine.name} {recipe.engine.version}",
        f"{PREFIX}by": f"sparkwright {version}",
        f"{PREFIX}date": datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
    }


# An estimate: an image of vLLM with its CUDA takes 20 to 30 GB, and its sources with their object files as much again.
_ENGINE, _OTHER = 60 * GIB, 2 * GIB
_SPARE_SHARE = 0.05
_DOCKER_ROOT = "/var/lib/docker"


def room_to_build(build: Build) -> int:
    """Bytes that a build wants free below Docker's root."""
    return _ENGINE if build.sources and build.cuda_arch else _OTHER


def wrong_machine(build: Build, facts: NodeFacts) -> Iterator[Finding]:
    """ENG020 where the node has another processor than the image is for."""
    wanted = MACHINES[build.platform.partition("/")[2]]
    if isinstance(facts.identity, Identity) and facts.identity.arch != wanted:
        yield Finding(
            "ENG020", Severity.BLOCK, facts.node, f"build.platform is {build.platform}, and the node is not",
            f"uname -m: expected {wanted}, found {facts.identity.arch}",
            "a build emulates nothing: what it compiles would not run here, or take days",
            "build on a node of that kind (--node), or write the platform of your nodes into the recipe",
        )  # fmt: skip


def no_room(nodes: Iterable[str], facts: Mapping[str, NodeFacts], size: int) -> Iterator[Finding]:
    """DISK001 for each node whose Docker has less than `size` bytes; silent where it is not known."""
    needed = int(size * (1 + _SPARE_SHARE))
    for node in nodes:
        if (disk := _docker_disk(facts[node])) and disk.available < needed:
            yield Finding(
                "DISK001", Severity.BLOCK, node, f"no room for the image on {disk.mount}",
                f"{gib(needed)} needed, {gib(disk.available)} free on {disk.mount}",
                "an image takes 20 to 30 GB, and its build as much again",
                "make room (`docker image prune`, `docker builder prune`), or move Docker's data-root",
            )  # fmt: skip


def _docker_disk(facts: NodeFacts) -> Disk | None:
    root = facts.docker.root if isinstance(facts.docker, Docker) else ""
    disks = facts.disks if isinstance(facts.disks, tuple) else ()
    # Docker's root may be elsewhere than it usually is: a folder that was not asked about is not known.
    return next((d for d in disks if d.path == root or (d.path == _DOCKER_ROOT and not root)), None)
