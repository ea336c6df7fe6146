"""The testbed's images on disk: what an interrupted build and other versions leave."""

import os
import time
from pathlib import Path

import pytest

from testbed.rootfs import DAY, Builder
from testbed.settings import ContainerSettings


def make_builder(folder: Path, monkeypatch: pytest.MonkeyPatch, failing: bool = False) -> Builder:
    """A builder whose steps write one small file, or fail after it."""
    builder = Builder(ContainerSettings(folder, "10.0", folder / "images"), lambda text: None)

    def step(*arguments: Path) -> None:
        arguments[0].mkdir(parents=True, exist_ok=True)
        (arguments[0] / "file").write_text("x")
        if failing:
            raise RuntimeError("killed")

    for name in ("_bootstrap", "_wheels", "_python", "_node_packages", "_extras"):
        monkeypatch.setattr(builder, name, step)
    return builder


def image_names(folder: Path) -> set[str]:
    return {path.name for path in (folder / "images").iterdir()}


def test_an_interrupted_build_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards against half an image: only a whole build gets its name, and the next one begins anew."""
    first = make_builder(tmp_path, monkeypatch, failing=True)
    with pytest.raises(RuntimeError, match="killed"):
        first.build()
    assert image_names(tmp_path) == {f"{first.key}.work"}
    make_builder(tmp_path, monkeypatch).build()
    assert image_names(tmp_path) == {first.key}
    assert {path.name for path in first.node_tar.parent.iterdir()} == {"engine.tar", "node.tar"}


def test_images_of_other_versions_stay_while_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards two checkouts on one machine: each would build again and again; what nobody uses gives its disk back."""
    for name, age in (("used", 60.0), ("unused", DAY + 60.0)):
        (tmp_path / "images" / name).mkdir(parents=True)
        then = time.time() - age
        os.utime(tmp_path / "images" / name, (then, then))
    builder = make_builder(tmp_path, monkeypatch)
    builder.build()
    assert image_names(tmp_path) == {"used", builder.key}


def test_use_keeps_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards an image that is older than a day and used each day."""
    builder = make_builder(tmp_path, monkeypatch)
    builder.build()
    folder = builder.node_tar.parent
    os.utime(folder, (0, 0))
    builder.build()
    assert time.time() - folder.stat().st_mtime < DAY
