"""A hub cache as the hub's client leaves it: blobs, refs, and links from the snapshot."""

import json
from pathlib import Path

CONFIGS = Path(__file__).parents[1] / "data" / "models"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
REVISION = "0123456789abcdef0123456789abcdef01234567"


def hub_entry(hub: Path, model: str, config: str, revision: str = REVISION) -> Path:
    """A complete entry of two small shards; config: whose config.json it has. Returns the entry's folder."""
    root = hub / f"models--{model.replace('/', '--')}"
    snapshot = root / "snapshots" / revision
    for folder in (root / "blobs", root / "refs", snapshot):
        folder.mkdir(parents=True, exist_ok=True)
    (root / "refs/main").write_text(revision)
    index = json.dumps({"metadata": {}, "weight_map": {"a": SHARDS[0], "b": SHARDS[1]}})
    files = dict.fromkeys(SHARDS, "x" * 1000) | {"model.safetensors.index.json": index}
    files["config.json"] = (CONFIGS / f"{config}.config.json").read_text()
    for name, text in files.items():
        (root / "blobs" / f"{revision[:4]}{name}").write_text(text)
        (snapshot / name).symlink_to(f"../../blobs/{revision[:4]}{name}")
    return root
