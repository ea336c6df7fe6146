"""A file that was read once and checked is not read as YAML again."""

from pathlib import Path

from sparkwright.adapters.files import Places, open_cluster, open_recipe


def test_what_is_kept_of_a_file_is_never_older_than_the_file(tmp_path: Path) -> None:
    """An edit counts at once, and what is damaged or no longer ours is read again."""
    places, file = Places(tmp_path, tmp_path), tmp_path / "cluster.yaml"
    file.write_text("nodes: [spark-1]\n")
    assert open_cluster("", "", places).names == open_cluster("", "", places).names == ("spark-1",)
    file.write_text("nodes: [spark-9]\n")
    assert open_cluster("", "", places).names == ("spark-9",)
    for content in (b"", b"\xff", b"{}", b"x\n" * 9):
        for kept in (tmp_path / ".cache/sparkwright/parsed").iterdir():
            head = kept.read_bytes().partition(b"\n")[0]
            kept.write_bytes(head + b"\n" + content)
        assert open_cluster("", "", places).names == ("spark-9",)


def test_a_recipe_comes_back_as_it_was_checked(tmp_path: Path) -> None:
    """Each profile is kept apart, and nothing of a recipe is lost on the way."""
    places = Places(tmp_path, tmp_path)
    fresh = {name: open_recipe(name, places) for name in ("deepseek-v4-flash@1m", "deepseek-v4-flash@256k", "twin")}
    assert {name: open_recipe(name, places) for name in fresh} == fresh
    assert len({one.hash for one in fresh.values()}) == len(fresh)
    kept = list((tmp_path / ".cache/sparkwright/parsed").iterdir())
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
