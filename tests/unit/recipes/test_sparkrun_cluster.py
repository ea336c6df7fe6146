"""sparkrun's cluster files, and which of several is taken."""

from pathlib import Path

import pytest

from sparkwright.adapters.sparkrun_files import sparkrun_cluster
from sparkwright.domain.errors import RecipeError
from sparkwright.recipes.importers.sparkrun_cluster import SparkrunCluster, read_sparkrun_cluster

FILE = "name: lab\nhosts:\n- 192.168.11.13\n- spark-2.local\n- me@spark-3\nuser: ai\ntransfer_mode: auto\n"


def test_hosts_and_user_become_destinations() -> None:
    """The hosts come in sparkrun's order, whose first is the head; a user of its own stays."""
    found = read_sparkrun_cluster(FILE, "lab.yaml")
    assert found == SparkrunCluster("lab", ("ai@192.168.11.13", "ai@spark-2.local", "me@spark-3"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- a\n", "lab.yaml:1: expected a mapping"),
        ("name: lab\nhosts: [\n", "lab.yaml:3"),
        ("hosts: [a]\n", "`name`: found nothing"),
        ("name: ../x\nhosts: [a]\n", "lab.yaml:1: `name`"),
        ("name: lab\nhosts: []\n", "lab.yaml:2: `hosts`"),
        ("name: lab\nhosts:\n- a\n- -oProxyCommand=id\n", "lab.yaml:4: found '-oProxyCommand=id'"),
        ("name: lab\nhosts:\n- $(id)@a\n", "lab.yaml:3"),
        ("name: lab\nhosts: [a b]\n", "lab.yaml:2"),
        ("name: lab\nhosts: [a]\nuser: -l root\n", "lab.yaml:3: `user`"),
        (f"name: lab\nhosts: [{', '.join(['a'] * 65)}]\n", "a list of 1 to 64 hosts"),
    ],
)
def test_what_is_no_cluster_is_refused_with_its_line(text: str, why: str) -> None:
    """A host becomes an argument of ssh."""
    with pytest.raises(RecipeError) as error:
        read_sparkrun_cluster(text, "lab.yaml")
    assert why in error.value.message


def written(home: Path, *names: str, default: str = "") -> Path:
    folder = home / ".config/sparkrun/clusters"
    folder.mkdir(parents=True)
    for name in names:
        (folder / f"{name}.yaml").write_text(FILE.replace("lab", name))
    (folder / "lab.manifest.yaml").write_text("steps: []\n")
    if default:
        (folder / ".default").write_text(default)
    return home


def test_the_named_one_is_taken_then_the_default_then_the_only_one(tmp_path: Path) -> None:
    """sparkrun's list of its own changes is no cluster."""
    home = written(tmp_path, "lab", "office", default="office")
    assert sparkrun_cluster(home, "lab").name == "lab"
    assert sparkrun_cluster(home, "").name == "office"
    assert sparkrun_cluster(written(tmp_path / "b", "lab"), "").name == "lab"


@pytest.mark.parametrize(
    ("names", "wanted", "why"),
    [
        ((), "", "has no cluster here"),
        (("lab", "office"), "", "2 clusters and no default: lab, office"),
        (("lab",), "../../etc/passwd", "has no cluster '../../etc/passwd'"),
    ],
)
def test_without_one_to_take_the_message_names_what_there_is(
    tmp_path: Path, names: tuple[str, ...], wanted: str, why: str
) -> None:
    """Nothing outside of sparkrun's folder is read, either."""
    with pytest.raises(RecipeError) as error:
        sparkrun_cluster(written(tmp_path, *names), wanted)
    assert why in error.value.message
