"""The image or a program in it is for another processor.

Detects: programs that the kernel cannot execute, manifests without an arm64 entry, Docker's warning about
  platforms.
Why: the Spark's CPU is arm64 (sbsa). Many images exist for linux/amd64 only; Docker warns, starts them, and every
  program in them fails.
Evidence: the kernel's `exec format error`, or Docker's words about platform and manifest.
Remedy: an image with a linux/arm64 variant, or a build on the node.
References: https://docs.docker.com/build/building/multi-platform/;
  https://github.com/NVIDIA/dgx-spark-playbooks/issues
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LIMG001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "image is for another processor architecture"
CAUSE = "image-wrong-architecture"
SIGNS = (
    line(r"exec format error", CERTAIN),
    line(r"requested image's platform \(linux/.{0,60}does not match the detected host platform", CERTAIN),
    line(r"image platform \(linux/.{0,40}does not match the (expected|host) platform", CERTAIN),
    line(r"no matching manifest for linux/|no match for platform in manifest", CERTAIN),
    line(
        r"wanted linux/arm64.{0,40}actual: linux/amd64|does not match the specified platform"
        r"|does not provide the specified platform",
        CERTAIN,
    ),
    line(r"qemu-x86_64.{0,60}could not open|qemu: uncaught target signal|rosetta error: failed to open elf", LIKELY),
    near(
        r"linux/amd64|\bamd64\b|x86[-_]64",
        r"\bonly\b.{0,30}(image|build|tag|manifest|variant)|(image|build|tag|wheel)s?.{0,30} only"
        r"|no (linux/)?(arm64|aarch64)",
        r"image|docker|manifest",
        sure=LIKELY,
        within=1,
    ),
    line(
        r"(no|without an?|lacks an?|missing) (linux/)?(arm64|aarch64|sbsa) (image|variant|build|manifest|entry)", LIKELY
    ),
    line(r"not a supported wheel on this platform", POSSIBLE),
)
FIX = (
    "docker manifest inspect {image} | grep architecture   # is arm64 there?",
    "uname -m; docker image inspect -f '{{{{.Architecture}}}}' {image}",
    "take a tag with linux/arm64 or build it on the node (docker build --platform linux/arm64)",
)
EXPLAINS = ()
