"""From what an image is built: every part is named so that the same recipe gives the same image next year."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PTXAS = "/usr/local/cuda/bin/ptxas"


@dataclass(frozen=True, slots=True)
class PythonPackages:
    """Wheels of one index, `name==version` each, with ` --hash=sha256:...` where it is known. index: '' is PyPI."""

    packages: tuple[str, ...]
    index: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A public repository at one commit, built into a wheel.

    commit: 40 hex digits. pull_request: where it comes from, for the reader; the hash alone decides what is built.
    version: what the package calls itself; a fetch of one commit has no tags to tell it. folder: where its
    pyproject.toml is. prepare: commands in that folder before the wheel is built.
    """

    name: str
    repository: str
    commit: str
    pull_request: int = 0
    version: str = ""
    folder: str = "."
    prepare: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Build:
    """base: image, by digest unless `unpinned` says why not. platform: linux/arm64 is GB10.

    cuda_arch: TORCH_CUDA_ARCH_LIST and its like; '' for an image without CUDA code. jobs: parallel compilers, 0: the
    builders' own choice. packages: of the distribution. steps: shell commands at the end, in the image.
    """

    base: str
    unpinned: str = ""
    platform: str = "linux/arm64"
    cuda_arch: str = "12.1a"
    jobs: int = 0
    packages: tuple[str, ...] = ()
    python: tuple[PythonPackages, ...] = ()
    sources: tuple[Source, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
