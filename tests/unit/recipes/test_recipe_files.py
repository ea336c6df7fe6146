# ruff: noqa: E501 (whole messages, one a line)
"""Finding files: shipped, the user's, paths; and every way in which a file cannot be read."""

from dataclasses import replace

import pytest

from sparkwright.adapters.files import (
    Places,
    find_recipe,
    open_cluster,
    open_recipe,
    recipe_names,
    reference,
    split_profile,
)
from sparkwright.domain.errors import RecipeError

MINE = "title: mine\nmodel: {id: a/b}\nengine: {name: vllm, version: 0.21.0, runtime: process}\nprofiles: {p: {serving: {context: 4096}}}\n"


@pytest.fixture
def places(tmp_path):
    here = Places(tmp_path / "work", tmp_path / "home")
    here.cwd.mkdir()
    here.recipes.mkdir(parents=True)
    return here


def failure(action, *arguments):
    with pytest.raises(RecipeError) as caught:
        action(*arguments)
    return f"{caught.value.message} | {caught.value.hint}"


def test_by_name(places):
    """Shipped recipes are there without any file; the user's own join them."""
    (places.recipes / "mine.yaml").write_text(MINE)
    (places.recipes / "readme.txt").write_text("no recipe")
    names = recipe_names(places)
    assert list(names) == sorted(names) and {"deepseek-v4-flash", "mine", "simulator"} <= set(names)
    assert "readme" not in names
    assert open_recipe("mine", places).name == "mine"
    assert find_recipe("mine", places).source == "~/.config/sparkwright/recipes/mine.yaml"
    assert find_recipe("twin", places).origin == "shipped"


def test_a_former_name_finds_the_recipe_under_that_name(places):
    """A deployment `twin` is found again by `up twin`; lists show the name of today only."""
    former, today = open_recipe("twin@docker", places), open_recipe("simulator@docker", places)
    assert (former.name, today.name, former.deployment) == ("twin", "simulator", "twin")
    assert replace(former, name="simulator", hash=today.hash) == today  # the hash is the one it had
    assert open_recipe("twin-deepseek", places).model.id == "deepseek-ai/DeepSeek-V4-Flash"
    assert not {"twin", "twin-deepseek"} & set(recipe_names(places))


def test_the_users_own_comes_first(places):
    """A recipe of a shipped name in the user's folder is meant."""
    (places.recipes / "twin.yml").write_text(MINE)
    assert open_recipe("twin", places).title == "mine"


def test_by_path(places):
    """./NAME.yaml, absolute, ~/..., and a bare NAME.yaml."""
    (places.cwd / "r.yaml").write_text(MINE)
    (places.home / "h.yml").write_text(MINE)
    for path in ("./r.yaml", "r.yaml", str(places.cwd / "r.yaml")):
        assert open_recipe(path, places).name == "r"
    assert open_recipe("~/h.yml", places).source == "~/h.yml"


def test_a_hint_finds_the_recipe_again(places):
    """The command that a failed `up ./r.yaml` proposes for `plan` opens the same file and profile."""
    (places.cwd / "r.yaml").write_text(MINE)
    (places.recipes / "mine.yaml").write_text(MINE)
    for asked in ("./r.yaml", "./r.yaml@p", "mine", "mine@p", "twin"):
        found = open_recipe(asked, places)
        assert open_recipe(found.asked, places) == found, found.asked


def test_profiles_by_name(places):
    """RECIPE@PROFILE and --profile report the same."""
    (places.cwd / "r.yaml").write_text(MINE)
    (places.cwd / "odd@name.yaml").write_text(MINE + "name: odd\n")
    assert open_recipe("deepseek-v4-flash@1m", places).profile == "1m"
    assert open_recipe("twin", places, "docker").profile == "docker"
    assert open_recipe("./r.yaml@p", places).serving.context == 4096
    assert open_recipe("odd@name.yaml", places).profile == ""
    assert split_profile("./odd@name.yaml@p", places) == ("./odd@name.yaml", "p")
    assert failure(open_recipe, "twin@docker", places, "one-node").startswith(
        "twin@docker: two profiles are asked for: docker and one-node"
    )


def test_unknown_names(places):
    """The nearest name, the file that lies here, and where all names are."""
    (places.cwd / "other.yaml").write_text(MINE)
    known = "`sparkwright recipes list` shows all; or give a path, ./NAME.yaml"
    assert (
        failure(open_recipe, "deepseek-v4", places)
        == f"recipe 'deepseek-v4' does not exist; did you mean deepseek-v4-flash? | {known}"
    )
    assert (
        failure(open_recipe, "other", places)
        == f"recipe 'other' does not exist; ./other.yaml is here: write it with ./ | {known}"
    )
    assert failure(open_recipe, "zzz", places) == f"recipe 'zzz' does not exist | {known}"


def test_files_that_cannot_be_read(places):
    """Missing, a folder, no text, too large, no name at all: one sentence each."""
    (places.cwd / "folder.yaml").mkdir()
    (places.cwd / "bin.yaml").write_bytes(b"a: 1\nb: \xff\n")
    (places.cwd / "big.yaml").write_bytes(b"#" * 4_000_001)
    assert failure(open_recipe, "./no.yaml", places) == "recipe ./no.yaml: there is no such file | check the path"
    assert (
        failure(open_recipe, "folder.yaml", places)
        == "recipe folder.yaml: cannot be read: Is a directory | check the path and its rights"
    )
    assert failure(open_recipe, "bin.yaml", places) == "recipe bin.yaml: line 2 is not UTF-8 text | save it as UTF-8"
    assert failure(open_recipe, "big.yaml", places).startswith("recipe big.yaml: larger than 4000000 bytes")
    assert "cannot be read: embedded null byte" in failure(open_recipe, "./a\0b.yaml", places)


def test_a_file_that_opens_but_cannot_be_read(places):
    """A broken disk, or rights that only the read finds out: one sentence with the system's own reason."""
    (places.cwd / "r.yaml").symlink_to("/proc/self/mem")
    assert "cannot be read: Input/output error" in failure(open_recipe, "r.yaml", places)


def test_byte_order_mark(places):
    """Windows editors write one."""
    (places.cwd / "r.yaml").write_bytes(b"\xef\xbb\xbf" + MINE.encode())
    assert open_recipe("r.yaml", places).title == "mine"


def test_cluster_order(places):
    """--cluster, the variable, ./cluster.yaml, the user's: the first wins."""
    for name, path in {
        "user": places.clusters[1],
        "here": places.clusters[0],
        "env": places.cwd / "e.yaml",
        "given": places.cwd / "g.yaml",
    }.items():
        path.write_text(f"nodes: [{name}]\n")
    assert open_cluster("g.yaml", "e.yaml", places).head == "given"
    assert open_cluster("", "e.yaml", places).head == "env"
    assert open_cluster("", "", places).source == "./cluster.yaml"
    places.clusters[0].unlink()
    assert open_cluster("", "", places).source == "~/.config/sparkwright/cluster.yaml"


def test_no_cluster(places):
    """The message has the searched places, and how little is needed."""
    assert failure(open_cluster, "", "", places) == (
        "no cluster file: looked for --cluster, $SPARKWRIGHT_CLUSTER, ./cluster.yaml, ~/.config/sparkwright/cluster.yaml"
        " | `sparkwright init HOST HOST` writes one; by hand, `nodes: [spark-1, spark-2]` is enough; "
        "`sparkwright plan RECIPE --nodes 2` needs none"
    )
    assert failure(open_cluster, "x.yaml", "", places).startswith(
        "cluster file x.yaml (from --cluster): there is no such file"
    )
    assert failure(open_cluster, "", "x.yaml", places).startswith(
        "cluster file x.yaml (from $SPARKWRIGHT_CLUSTER): there is"
    )


def test_errors_name_the_file_as_given(places):
    """FILE:LINE can be clicked and copied."""
    (places.cwd / "c.yaml").write_text("nodes: [a]\nhed: a\n")
    assert failure(open_cluster, "./c.yaml", "", places).startswith(
        "./c.yaml:2: unknown key `hed`; did you mean `head`?"
    )


def test_references():
    """Both manuals can be printed."""
    assert reference().startswith("# The recipe reference") and reference("cluster").startswith("# The cluster file")
