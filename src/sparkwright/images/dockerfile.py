"""Build -> Dockerfile and the files with it.

One stage: an engine compiles kernels while it runs, so that the compilers stay anyway, and a second stage would leave
gigabytes without a name behind. Neither `RUN --mount` nor `ADD --checksum`: Debian's docker.io has no BuildKit.
"""

import io
import tarfile
from collections.abc import Iterator, Mapping
from shlex import quote

from sparkwright.domain.recipe import PTXAS, Build, PythonPackages, Recipe, Source

FOLDER = "/opt/sparkwright/build"
CONSTRAINTS = "constraints.txt"
FREEZE = f"{FOLDER}/freeze.txt"

_PACKAGES = """\
RUN apt-get update \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {names} \\
 && rm -rf /var/lib/apt/lists/*
"""
# --depth 1 of a full hash: the server must have exactly this commit, and a moved branch changes nothing.
_SOURCE = """\
#!/bin/sh
# {title}
set -eux
mkdir -p /usr/src/{name} && cd /usr/src/{name}
git init -q .
git fetch -q --depth 1 {repository} {commit}
git checkout -q --detach FETCH_HEAD
[ "$(git rev-parse HEAD)" = {commit} ]
git submodule update -q --init --recursive --depth 1
cd {folder}
{prepare}python3 -m pip wheel --no-deps --no-build-isolation --wheel-dir /usr/src/wheels .
python3 -m pip install{constraint} /usr/src/wheels/*.whl
rm -rf /usr/src/{name} /usr/src/wheels
"""
# Triton carries a ptxas of its own that does not know sm_121a, or has none where it looks (report 002; field guide B5).
_PTXAS = f"""\
#!/bin/sh
# Triton's ptxas is the one of the base image: its own does not know GB10 (sm_121a).
set -eu
at=$(python3 -c 'from importlib.util import find_spec
print(*getattr(find_spec("triton"), "submodule_search_locations", ()))')
[ -n "$at" ] || exit 0
[ -x {PTXAS} ] || {{ echo "no {PTXAS} in the base image: take a -devel image of CUDA" >&2; exit 1; }}
mkdir -p "$at/backends/nvidia/bin"
ln -sf {PTXAS} "$at/backends/nvidia/bin/ptxas"
{PTXAS} --help | grep -q "sm_{{arch}}" || {{ echo "{PTXAS} cannot compile for sm_{{arch}}" >&2; exit 1; }}
"""


def context(recipe: Recipe, build: Build) -> Mapping[str, str]:
    """File name -> text of all that `docker build` is given; the Dockerfile first."""
    files = {"Dockerfile": "".join(_dockerfile(recipe, build)), **_python_files(build)}
    files |= {_script(source): _source_text(source, bool(build.python)) for source in build.sources}
    if build.cuda_arch:
        files["ptxas.sh"] = _PTXAS.replace("{arch}", _digits(build.cuda_arch))
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
    for name in (_script(source) for source in build.sources):
        yield _run(name)
    if build.cuda_arch:
        yield _run("ptxas.sh")
    if build.steps:
        yield _run("steps.sh")
    if build.python or build.sources:
        yield f"RUN python3 -m pip freeze --all > {FREEZE}\n"
    # The rank's program is given by whoever starts it; a base's entrypoint would stand before it.
    yield "ENTRYPOINT []\n"


def environment(build: Build) -> dict[str, str]:
    """Of the build and of the image: an engine compiles for the same target later."""
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
    names = [word.split()[0] for group in build.python for word in group.packages]
    pins = "".join(f"{_without_extras(name)}\n" for name in names)
    return {CONSTRAINTS: pins, **files} if files else {}


def _without_extras(word: str) -> str:
    """pip takes no extras in a constraint."""
    name, _, version = word.partition("==")
    return f"{name.partition('[')[0]}=={version}"


def hashed(group: PythonPackages) -> bool:
    return any("--hash=" in word for word in group.packages)


def _install(number: int, group: PythonPackages) -> str:
    # With one hash pip wants one of every dependency: a group with hashes names all that it installs.
    way = "--no-deps --require-hashes" if hashed(group) else f"--constraint {FOLDER}/{CONSTRAINTS}"
    index = f" --index-url {quote(group.index)}" if group.index else ""
    return f"RUN python3 -m pip install {way}{index} --requirement {FOLDER}/python-{number}.txt\n"


def _script(source: Source) -> str:
    return f"source-{source.name}.sh"


def _source_text(source: Source, constrained: bool) -> str:
    # setuptools-scm asks git for tags, which a fetch of one commit does not bring.
    version = [f"export SETUPTOOLS_SCM_PRETEND_VERSION={quote(source.version)}"] if source.version else []
    request = f", the head of pull request {source.pull_request}" if source.pull_request else ""
    return _SOURCE.format(
        title=f"{source.name} at one commit{request}: fetched by its full hash, and looked at before it is built.",
        name=source.name,
        repository=quote(source.repository),
        commit=source.commit,
        folder=quote(source.folder),
        prepare="".join(f"{line}\n" for line in (*version, *source.prepare)),
        constraint=f" --constraint {FOLDER}/{CONSTRAINTS}" if constrained else "",
    )


def _run(script: str) -> str:
    return f"COPY {script} {FOLDER}/\nRUN sh {FOLDER}/{script}\n"


def _value(text: str) -> str:
    """A value as ENV takes it, with nothing in it replaced."""
    for char in ("\\", '"', "$"):
        text = text.replace(char, f"\\{char}")
    return f'"{text}"'


def archive(files: Mapping[str, str]) -> bytes:
    """The same bytes for the same files: no times, no owners."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, text in files.items():
            entry, content = tarfile.TarInfo(name), text.encode()
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
