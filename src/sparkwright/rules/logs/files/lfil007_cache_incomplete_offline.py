"""Offline, and the cache does not know the model.

Detects: lookups in the local cache that fail while the network is switched off or unreachable.
Why: HF_HUB_OFFLINE=1 resolves `main` by refs/main. A download with --revision does not write it, a copy may leave
  it out, an editor may add a newline to it; or files are missing in the snapshot.
Evidence: LocalEntryNotFoundError or the words about the disk cache.
Remedy: write the reference, or download once more online.
References: gb10.md E42, A5 (HF refs);
  https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/_snapshot_download.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LFIL007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Hub cache incomplete in offline mode"
CAUSE = "hf-cache-incomplete-offline"
SIGNS = (
    line(r"cannot find an appropriate cached snapshot|find the appropriate cached snapshot", CERTAIN),
    line(r"outgoing traffic has been disabled", CERTAIN),
    line(
        r"LocalEntryNotFoundError|IncompleteSnapshotError",
        LIKELY,
        unless=r"raise LocalEntry|error happened while trying to locate",
    ),
    line(r"cached snapshot for .{0,200}is incomplete", CERTAIN),
    line(r"OfflineModeIsEnabled|offline mode is enabled", LIKELY),
    line(
        r"cannot find the requested files in the (local|disk) cache",
        LIKELY,
        unless=r"error happened while trying to locate",
    ),
    line(r"couldn't find (them|it) in the cached files", LIKELY, unless=r"couldn't connect to"),
    near(r"refs/main", r"missing|newline|no such|absent|not (written|there|exist)|offline", sure=LIKELY, within=2),
    near(
        r"HF_HUB_OFFLINE|TRANSFORMERS_OFFLINE",
        r"not (cached|in the cache|found)|cannot (find|resolve)|fails? to (find|resolve|load)|incomplete",
        sure=LIKELY,
        within=3,
    ),
    line(
        r"(?:fails?|failed|unable|refus\w+|cannot) (?:to )?(?:resolve|find|load|start).{0,40}\boffline\b"
        r"|\boffline\b.{0,60}(?:fails? to resolve|cannot resolve|not in the cache|snapshot (?:is )?missing)",
        LIKELY,
    ),
)
FIX = (
    (
        "cd ~/.cache/huggingface/hub/models--ORG--NAME && ls snapshots && printf '%s' SNAPSHOT > refs/main   # no "
        "newline"
    ),
    "or online once: HF_HUB_OFFLINE=0 hf download {model}",
)
EXPLAINS = (
    "model-path-or-repo-not-found",
    "hf-hub-unreachable",
)
