"""A cache folder cannot be written.

Detects: refused writes below Hugging Face, Triton, inductor, vLLM and FlashInfer caches and model folders.
Why: a container that ran as root created the folder on the host, and the next one (or huggingface-cli outside) runs
  as another uid; or a container with --user has no home.
Evidence: errno 13 with the path, or the hub's own words.
Remedy: give the folder to the uid that writes, or point the cache elsewhere.
References: gb10.md A5 (HF cache owner); https://github.com/huggingface/huggingface_hub;
  https://github.com/huggingface/transformers/blob/main/src/transformers/utils/hub.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LIMG002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "cache folder not writable for the container's user"
CAUSE = "cache-dir-permission-denied"
SIGNS = (
    line(
        r"permission denied:? \(?['\"][^'\"]{0,200}(huggingface|hf[-_]?cache|cache|/hub|models?--|models?/|triton"
        r"|inductor|vllm|flashinfer|tilelang|\.locks)",
        CERTAIN,
    ),
    line(
        r"(cannot create directory|mkdir|open|touch|cp|unlinkat)\W.{0,160}(huggingface|cache|\.triton|\.ollama"
        r"|models?--|/models/).{0,120}permission denied",
        LIKELY,
        unless=r"docker\.sock",
    ),
    line(r"permissionerror at .{0,200}when downloading|check cache directory permissions", CERTAIN),
    line(r"problem when trying to write in your cache folder", CERTAIN),
    line(r"could not cache non-existence of file.{0,80}permission denied", CERTAIN),
    line(r"permission denied \(os error 13\)", LIKELY),
    line(r"failed to (acquire|open|create) .{0,120}(\.cache|huggingface).{0,120}\block\b", POSSIBLE),
    line(r"errno 30\] read-only file system.{0,80}(cache|huggingface|hub|models)", LIKELY),
    line(r"PermissionError: \[Errno 13\] Permission denied: '/(root|home|workspace|data|models?|mnt)/", LIKELY),
    near(
        r"(root[- ]owned|owned by root|chown|uid \d+|created (by|as) root)",
        r"huggingface|hf[-_ ]cache|\.cache\b|cache (dir|folder|director)",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = (
    "ls -ldn ~/.cache/huggingface; find ~/.cache/huggingface -not -user $USER -print -quit",
    (
        "sudo chown -R $(id -u):$(id -g) ~/.cache/huggingface   # or the uid that the container runs as (podman: "
        "mount with :U)"
    ),
)
EXPLAINS = ()
