"""The image build patches a source tree that has moved on.

Detects: git apply, patch or cherry-pick that fails in an image build; refs and versions that no longer exist
  upstream.
Why: the build file pins a patch or a ref while the tree it is meant for follows another; only one of them moved.
Evidence: The patch tool's own line.
Remedy: Update the build repository, or build with the ref for which the patch was made.
References: https://github.com/eugr/spark-vllm-docker
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LVER006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the image build patches a source tree that has moved on"
CAUSE = "image-build-upstream-drift"
SIGNS = (
    near(
        r"Checking patch |Applying PR|git apply|patch-diff\.githubusercontent|git am\b",
        r"error: \S+: No such file or directory|patch does not apply|error: patch failed"
        r"|error: while searching for:|already exists in working directory|corrupt patch at",
        sure=CERTAIN,
        within=30,
    ),
    line(r"error: patch failed: (?P<file>\S+?):\d+", LIKELY),
    line(r"error: (?P<file>\S+): patch does not apply", LIKELY),
    line(r"\d out of \d{1,9} hunks? FAILED", CERTAIN),
    line(r"failed to solve: process .{0,300}(?:git apply|patch -p\d|cherry-pick).{0,600}did not complete", LIKELY),
    line(r"Hunk #\d+ FAILED at|Reversed \(or previously applied\) patch detected", LIKELY),
    line(
        r"error: could not apply [0-9a-f]{7,}|CONFLICT \(\S+\): Merge conflict in"
        r"|error: Failed to merge in the changes",
        LIKELY,
    ),
    line(
        r"pathspec '\S+' did not match any file\(s\) known to git|fatal: couldn't find remote ref"
        r"|Remote branch \S+ not found in upstream",
        LIKELY,
    ),
    near(
        r"\[(?:[\w-]+ +)?\d+/\d+\] RUN|failed to solve: process",
        r"No solution found when resolving|Could not find a version that satisfies"
        r"|No matching distribution found|has no wheels with a matching|HTTP error 404|404 Not Found",
        sure=LIKELY,
        within=40,
    ),
    line(
        r"(?:dockerfile|image build|build script|docker build).{0,120}(?:patch|pull request|\bpr\b)"
        r".{0,80}(?:no longer applies|does(?:n't| not) apply|fails? to apply|already merged)",
        LIKELY,
    ),
    line(r"(?:patch|\bdiff\b|\bpr\b) .{0,60}(?:no longer applies|fails? to apply|does(?:n't| not) apply)", LIKELY),
    near(
        r"No solution found when resolving|ResolutionImpossible|could not find a version that satisfies"
        r"|patch (?:failed|does not apply)|couldn.t find remote ref|pathspec .{0,80}did not match",
        r"did not complete successfully|failed to solve|Dockerfile|RUN |docker build|buildx",
        sure=LIKELY,
        within=12,
    ),
)
FIX = (
    "git -C <build repo> pull   # the patch may be gone already",
    "build with the ref that the patch was made for, or without the pin: <build script> --vllm-ref <ref>",
    "git apply --check <patch>   # in the checked-out tree: which files it misses",
)
EXPLAINS = ()
