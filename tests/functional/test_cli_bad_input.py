"""Bad input that no node is needed for: one clear message, the right exit code, never a traceback."""

from pathlib import Path

import pytest

from sparkwright.cli.main import run

RECIPE = "title: mine\nmodel: {id: a/b}\nengine: {name: vllm, version: 0.21.0, runtime: process}\n"
CLUSTER = "nodes: [{name: spark-1, ssh: 'ssh://nobody@127.0.0.1:1'}]\n"
FILES: dict[str, str | bytes] = {
    "cluster.yaml": CLUSTER,
    "good.yaml": RECIPE,
    "empty.yaml": "",
    "binary.yaml": bytes(range(128, 256)),
    "nul.yaml": "title: a\0b\n",
    "list.yaml": "- 1\n- 2\n",
    "broken.yaml": "title: [unfinished\n",
    "twice.yaml": RECIPE + "title: again\n",
    "typo.yaml": RECIPE + "servng: {port: 8000}\n",
    "port.yaml": RECIPE + "serving: {port: 80}\n",
    "version.yaml": RECIPE.replace("0.21.0", "the newest"),
    "engine.yaml": RECIPE.replace("vllm", "vlm"),
    "My Recipe.yaml": RECIPE,
    "head.yaml": "nodes: [spark-1]\nhead: spark-9\n",
    "same.yaml": "nodes: [spark-1, spark-1]\n",
    "none.yaml": "nodes: []\n",
    "key.yaml": "nodes: [spark-1]\nhaed: spark-1\n",
    "dash.yaml": "nodes: [{name: spark-1, ssh: '-oProxyCommand=touch x'}]\n",
    "secret.yaml": "nodes: [{name: spark-1, env: {HF_TOKEN: hf_secret}}]\n",
}
CASES: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "recipe that does not exist": (["plan", "deepseek-v4-flush"], ("'deepseek-v4-flush'", "did you mean deepseek")),
    "recipe path that does not exist": (["up", "./absent.yaml"], ("./absent.yaml", "no such file", "check the path")),
    "recipe that is here but named without path": (["plan", "good"], ("'good'", "./good.yaml is here")),
    "recipe that is a folder": (["plan", "./folder.yaml"], ("./folder.yaml", "Is a directory")),
    "empty recipe": (["plan", "./empty.yaml"], ("./empty.yaml:1", "found nothing", "mapping")),
    "binary recipe": (["plan", "./binary.yaml"], ("./binary.yaml", "not UTF-8")),
    "recipe with NUL": (["plan", "./nul.yaml"], ("./nul.yaml:1", "U+0000")),
    "recipe that is a list": (["plan", "./list.yaml"], ("./list.yaml:1", "mapping")),
    "recipe that is no YAML": (["plan", "./broken.yaml"], ("./broken.yaml:2", "no YAML")),
    "recipe with a key twice": (["plan", "./twice.yaml"], ("./twice.yaml:4", "title")),
    "unknown key": (["plan", "./typo.yaml"], ("./typo.yaml:4", "`servng`", "did you mean `serving`")),
    "value out of range": (["plan", "./port.yaml"], ("./port.yaml:4", "found 80", "1024..65535")),
    "version that is none": (["plan", "./version.yaml"], ("./version.yaml:3", "found 'the newest'")),
    "engine that is none": (["plan", "./engine.yaml"], ("./engine.yaml:3", "found 'vlm'", "vllm")),
    "file name that is no name": (["plan", "./My Recipe.yaml"], ("My Recipe", "small letters")),
    "profile that does not exist": (["plan", "twin@fast"], ("profile 'fast' does not exist", "one-node, docker")),
    "profile of a recipe without any": (["up", "./good.yaml", "--profile", "x"], ("profile 'x' does not exist",)),
    "two profiles": (["plan", "twin@docker", "--profile", "one-node"], ("two profiles", "name one")),
    "cluster that does not exist": (["status", "--cluster", "absent.yaml"], ("absent.yaml", "--cluster", "no such")),
    "cluster that is a folder": (["check", "--cluster", "folder.yaml"], ("folder.yaml", "Is a directory")),
    "empty cluster": (["plan", "twin", "--cluster", "empty.yaml"], ("empty.yaml:1", "found nothing", "nodes")),
    "binary cluster": (["plan", "twin", "--cluster", "binary.yaml"], ("binary.yaml", "not UTF-8")),
    "cluster that is no YAML": (["plan", "twin", "--cluster", "broken.yaml"], ("broken.yaml:2", "no YAML")),
    "unknown head": (["plan", "twin", "--cluster", "head.yaml"], ("head.yaml:2", "'spark-9'", "spark-1")),
    "node twice": (["plan", "twin", "--cluster", "same.yaml"], ("same.yaml:1", "nodes[1].name", "'spark-1'")),
    "no node": (["plan", "twin", "--cluster", "none.yaml"], ("none.yaml:1", "nodes")),
    "unknown cluster key": (["plan", "twin", "--cluster", "key.yaml"], ("key.yaml:2", "`haed`", "`head`")),
    "destination that is an option": (["plan", "twin", "--cluster", "dash.yaml"], ("dash.yaml:1", "ssh")),
    "secret in the cluster file": (["plan", "twin", "--cluster", "secret.yaml"], ("secret.yaml:1", "HF_TOKEN")),
    "more nodes than there are": (["plan", "twin"], ("wants 2 nodes", "has 1 (spark-1)", "for fewer nodes")),
    "no recipe": (["up"], ("missing argument", "up --help")),
    "unknown verb": (["stauts"], ("no command 'stauts'", "did you mean `status`")),
    "unknown option": (["up", "twin", "--dryrun"], ("--dryrun", "--dry-run")),
    "rank that is no number": (["logs", "x", "--rank", "a"], ("--rank", "'a'")),
    "negative tail": (["logs", "x", "--tail", "-3"], ("--tail", "-3")),
    "force without reason": (["up", "twin", "--force"], ("--force needs a reason", "--force REASON")),
    "reason without force": (["up", "twin", "--reason", "x"], ("--reason goes with --force",)),
    "deployment that is a path": (["down", "../../.."], ("'../../..'", "lower-case letters")),
    "deployment without a name": (["down", ""], ("found ''", "lower-case letters")),
    "name that is a path": (["up", "twin", "--name", "../x"], ("--name", "'../x'", "lower-case letters")),
    "logs of a path": (["logs", "/etc"], ("'/etc'", "lower-case letters")),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder with every bad file; an empty home."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("SPARKWRIGHT_CLUSTER", "SPARKWRIGHT_SSH_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_misuse_is_one_message_and_exit_2(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The mistake is named with the found and the allowed values, on stderr alone."""
    argv, words = CASES[case]
    code = run(argv)
    told = capsys.readouterr()
    assert code == 2, told
    assert told.out == ""
    assert [word for word in words if word not in told.err] == [], told.err
    assert told.err.count("error: ") == 1 and "Traceback" not in told.err
    assert "hf_secret" not in told.err


@pytest.mark.parametrize("verb", ["plan twin@one-node", "up twin@one-node", "status", "down x", "logs x"])
def test_a_host_that_does_not_answer_is_exit_3(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The node is named with ssh's reason; verbs that change something have then changed nothing."""
    code = run(verb.split())
    told = capsys.readouterr()
    assert code == 3, told
    assert "spark-1" in told.err and "refused" in told.err and "Traceback" not in told.err


def test_no_cluster_file_states_how_to_write_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first thing that a new user meets: where it was looked for, and the one line that is enough."""
    (folder / "cluster.yaml").unlink()
    assert run(["plan", "twin"]) == 2
    told = capsys.readouterr().err
    assert "./cluster.yaml" in told and "`nodes: [spark-1, spark-2]` is enough" in told


def test_a_missing_key_names_its_variable(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recipe that wants a key from the environment is refused where it is not set, with a way to make one."""
    (folder / "key-wanted.yaml").write_text(RECIPE + "serving: {api_key_env: SPARKWRIGHT_TEST_KEY}\n")
    assert run(["up", "./key-wanted.yaml"]) == 2
    told = capsys.readouterr().err
    assert "SPARKWRIGHT_TEST_KEY, which is not set here" in told and "export SPARKWRIGHT_TEST_KEY=" in told
