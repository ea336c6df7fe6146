"""Registries of recipes with the real git: over files, over http with a password, and hostile ones."""

import base64
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from functional.command import UserShell
from sparkwright.adapters import git as git_adapter
from sparkwright.adapters.recipe_sources import RecipeSources
from sparkwright.domain.errors import UsageError

RECIPE = """
recipe_version: "2"
model: Qwen/Qwen3.6-27B-FP8
runtime: vllm
container: vllm/vllm-openai:v0.26.0
defaults: {port: 8000, max_model_len: 32768}
command: |
  vllm serve {model} --host 0.0.0.0 --port {port} --max-model-len {max_model_len}
"""
INDEX = "registries:\n  - name: official\n    recipes: official\n"
_GIT = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b.invalid", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b.invalid", "GIT_CONFIG_GLOBAL": "/dev/null",
}  # fmt: skip


class Repository:
    """A real repository; `url` is its bare copy over file://."""

    def __init__(self, folder: Path) -> None:
        self.work, self.bare = folder / "work", folder / "registry.git"
        self.work.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        subprocess.run(("git", "init", "-q", "--bare", "-b", "main", self.bare), check=True)
        self.git("remote", "add", "origin", str(self.bare))
        self.write(".sparkrun/registry.yaml", INDEX)

    @property
    def url(self) -> str:
        return f"file://{self.bare}"

    def git(self, *words: str) -> None:
        subprocess.run(("git", *words), cwd=self.work, check=True, env={**os.environ, **_GIT}, capture_output=True)

    def write(self, path: str, text: str) -> None:
        place = self.work / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def push(self, *words: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change", *words)
        self.git("push", "-q", "-f", "origin", "main")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path)
    made.write("official/deep/qwen.yaml", RECIPE)
    made.push()
    return made


class RecipesResult(NamedTuple):
    code: int
    out: str
    err: str


def run(shell: UserShell, *words: str) -> RecipesResult:
    return RecipesResult(*shell.run("recipes", *words))


def document(shell: UserShell, *words: str, code: int = 0) -> dict[str, Any]:
    done = run(shell, "source", *words, "--json")
    assert done.code == code, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def refused(shell: UserShell, *words: str) -> str:
    """The message; and nothing of the source was kept."""
    done = run(shell, "source", "add", *words)
    assert done.code == 2, done
    assert document(shell, "list")["sources"] == []
    kept = shell.folder / ".local/state/sparkwright/sources"
    assert not kept.is_dir() or list(kept.iterdir()) == []
    return done.err


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    (tmp_path / "home").mkdir()
    return UserShell(tmp_path / "home")


def test_a_registry_of_sparkrun_is_used_as_it_is(user_shell: UserShell, repository: Repository) -> None:
    """Added, listed, shown and validated by SOURCE/RECIPE; offline once it is here."""
    made = document(user_shell, "add", repository.url, "--name", "spark")
    assert [(one["name"], one["errors"]) for one in made["recipes"]] == [("qwen", [])]
    repository.bare.rename(repository.bare.with_name("moved"))
    assert [one["name"] for one in document(user_shell, "list")["sources"]] == ["spark"]
    shown = json.loads(run(user_shell, "show", "spark/qwen", "--json").out)
    assert (shown["model"]["id"], shown["serving"]["context"]) == ("Qwen/Qwen3.6-27B-FP8", 32768)
    assert any(note.startswith("import: ") and "0.0.0.0" in note for note in shown["notes"])
    assert json.loads(run(user_shell, "show", "@spark/qwen", "--json").out)["hash"] == shown["hash"]
    assert run(user_shell, "validate", "spark/qwen").code == 0
    assert json.loads(run(user_shell, "show", "spark/official/deep/qwen.yaml", "--json").out)["hash"] == shown["hash"]
    missing = run(user_shell, "show", "spark/none")
    assert (missing.code, "does not exist in spark" in missing.err) == (2, True)


def test_mods_of_a_registry_come_with_the_recipe(user_shell: UserShell, repository: Repository) -> None:
    """Files of a mod and an include are at hand offline; an import takes them into a file to approve."""
    repository.write(".sparkrun/registry.yaml", INDEX.rstrip() + "\n    mods: official-mods\n")
    repository.write("official/deep/modded.yaml", "include: qwen.yaml\nmods: [mods/fix-x]\n")
    repository.write("official-mods/fix-x/run.sh", "pip install example\n")
    repository.write("official-mods/fix-x/data.bin", "\r\n")
    repository.push()
    made = {one["name"]: one for one in document(user_shell, "add", repository.url, "--name", "spark")["recipes"]}
    assert made["modded"]["errors"] == []
    assert any("mods.fix-x" in one and "installs packages" in one for one in made["modded"]["powers"])
    shown = json.loads(run(user_shell, "show", "spark/modded", "--json").out)
    (mod,) = shown["mods"]
    assert mod["files"] == {"run.sh": "pip install example\n", "data.bin": "base64:DQo="}
    done = run(user_shell, "import", "spark/modded", "--out", "mine.yaml")
    assert done.code == 0, done.err
    assert "pip install example" in (user_shell.folder / "mine.yaml").read_text()
    repository.write("official-mods/fix-x/run.sh", "pip install other\n")
    repository.push()
    (change,) = document(user_shell, "update", "spark", "--yes")["updates"][0]["changes"]
    assert change["name"] == "modded" and any("mods.fix-x" in line for line in change["lines"])
    again = json.loads(run(user_shell, "show", "spark/modded", "--json").out)
    assert again["mods"][0]["files"]["run.sh"] == "pip install other\n" and again["hash"] != shown["hash"]


ENGINE = """name = "acmeserve"
command = ["acmeserve", "{model}", "--port", "{port}", "--host", "{host}"]
"""
USES = "title: t\nmodel: {path: /m/a.bin, served_name: a}\nengine: {name: acmeserve, runtime: process}\n"


@pytest.mark.full
def test_an_engine_file_of_a_registry_comes_with_its_recipes(user_shell: UserShell, repository: Repository) -> None:
    """Guards `engines/NAME.toml` at a registry's root: shown when it is added or changes, and used offline."""
    repository.write("official/deep/own.yaml", USES)
    repository.write("official/deep/lost.yaml", USES.replace("acmeserve", "nobody"))
    repository.write("engines/acmeserve.toml", ENGINE)
    repository.push()
    made = {one["name"]: one for one in document(user_shell, "add", repository.url, "--name", "acme")["recipes"]}
    assert made["own"]["errors"] == [] and "'nobody'" in made["lost"]["errors"][0]
    assert any("engines/acmeserve.toml" in one and "starts acmeserve {model}" in one for one in made["own"]["powers"])
    assert run(user_shell, "validate", "acme/own").code == 0
    shown = json.loads(run(user_shell, "show", "acme/own", "--json").out)
    assert shown["engine"]["definition"]["source"] == "acme/engines/acmeserve.toml"
    code, out, _ = user_shell.run("engines", "list", "--json")
    listed = {one["engine"]: one["from"] for one in json.loads(out)["described"]}
    assert code == 0 and listed["acmeserve"].startswith("acme/engines/acmeserve.toml; ")
    repository.write("engines/acmeserve.toml", ENGINE.replace('"--host"', '"--address"'))
    repository.push()
    (change,) = document(user_shell, "update", "acme", "--yes")["updates"][0]["changes"]
    assert change["name"] == "own" and "--address" in change["lines"][0]
    repository.write("engines/acmeserve.toml", ENGINE.replace("{port}", "80"))
    repository.push()
    (change,) = document(user_shell, "update", "acme", "--yes")["updates"][0]["changes"]
    assert change["kind"] == "broken" and "acmeserve.toml:2: `command` has no {port}" in change["lines"][0]


def test_an_update_shows_what_changes_and_takes_effect_when_asked_to(
    user_shell: UserShell, repository: Repository
) -> None:
    """Nobody is there to be asked without --yes: the copy stays at its commit."""
    document(user_shell, "add", repository.url, "--name", "spark")
    assert document(user_shell, "update")["updates"][0]["changes"] == []
    repository.write("official/deep/qwen.yaml", RECIPE.replace("32768", "65536"))
    repository.write("official/bad.yaml", "model: x\ndefaults: [\n")
    repository.push()
    asked = run(user_shell, "source", "update")
    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert "defaults.max_model_len: 32768 -> 65536" in asked.out
    assert json.loads(run(user_shell, "show", "spark/qwen", "--json").out)["serving"]["context"] == 32768
    told = document(user_shell, "update", "spark", "--yes")["updates"][0]
    assert [(one["name"], one["kind"]) for one in told["changes"]] == [("bad", "new"), ("qwen", "changed")]
    assert json.loads(run(user_shell, "show", "spark/qwen", "--json").out)["serving"]["context"] == 65536
    assert document(user_shell, "remove", "spark")["removed"]["name"] == "spark"
    assert document(user_shell, "list")["sources"] == []


@pytest.mark.full
def test_a_rewritten_history_is_not_taken_over(user_shell: UserShell, repository: Repository) -> None:
    """The pinned commit is gone from it: its owner should say why before anybody follows."""
    document(user_shell, "add", repository.url, "--name", "spark")
    repository.write("official/deep/qwen.yaml", RECIPE.replace("32768", "4096"))
    repository.push("--amend")
    done = run(user_shell, "source", "update", "spark", "--yes")
    assert (done.code, "changed its history" in done.err) == (2, True)
    assert json.loads(run(user_shell, "show", "spark/qwen", "--json").out)["serving"]["context"] == 32768
    assert document(user_shell, "update", "spark", "--yes", "--rewritten")["updates"][0]["taken"]


def test_a_registry_that_vanished_leaves_its_copy(user_shell: UserShell, repository: Repository) -> None:
    """The message names it, and the recipes go on to work."""
    document(user_shell, "add", repository.url, "--name", "spark")
    repository.bare.rename(repository.bare.with_name("moved"))
    done = run(user_shell, "source", "update")
    assert (done.code, repository.url in done.err, "works offline" in done.err) == (2, True, True)
    assert run(user_shell, "show", "spark/qwen").code == 0


def test_a_folder_is_a_registry_too(user_shell: UserShell, tmp_path: Path) -> None:
    """Copied as it was: a change takes effect by an update."""
    folder = tmp_path / "mine"
    (folder / "recipes").mkdir(parents=True)
    (folder / "sparkwright-registry.yaml").write_text("registry: 1\nname: acme\ntitle: Ours\n")
    recipe = folder / "recipes/qwen.yaml"
    recipe.write_text(RECIPE)
    assert document(user_shell, "add", str(folder))["source"]["name"] == "acme"
    recipe.write_text(RECIPE.replace("32768", "1024"))
    assert json.loads(run(user_shell, "show", "acme/qwen", "--json").out)["serving"]["context"] == 32768
    document(user_shell, "update", "--yes")
    assert json.loads(run(user_shell, "show", "acme/qwen", "--json").out)["serving"]["context"] == 1024


def test_nothing_of_a_registry_runs(user_shell: UserShell, repository: Repository, tmp_path: Path) -> None:
    """Hooks, filters and scripts that would leave a file behind; they leave none."""
    trap = tmp_path / "trapped"
    hook = repository.bare / "hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)
    repository.write(".gitattributes", "* filter=trap\n")
    repository.write("official/run.sh", f"touch {trap}\n")
    repository.push()
    document(user_shell, "add", repository.url, "--name", "spark")
    assert not trap.exists()
    assert list((tmp_path / "home").rglob("run.sh")) == []


def test_a_submodule_that_names_a_program_is_refused(
    user_shell: UserShell, repository: Repository, tmp_path: Path
) -> None:
    """git's own check of what it fetches is on."""
    trap = tmp_path / "trapped"
    repository.write(".gitmodules", f'[submodule "x"]\n\tpath = x\n\turl = -u./{trap}\n\tupdate = !touch {trap}\n')
    repository.push()
    assert "gitmodules" in refused(user_shell, repository.url)
    assert not trap.exists()


@pytest.mark.parametrize("where", ["official/x.yaml", "official/folder", ".sparkrun/registry.yaml"])
def test_a_link_out_of_a_registry_is_refused(user_shell: UserShell, repository: Repository, where: str) -> None:
    """It could show any file of this machine as a recipe."""
    place = repository.work / where
    place.unlink(missing_ok=True)
    place.symlink_to("/etc" if where.endswith("folder") else "/etc/passwd")
    repository.push()
    assert "symbolic link" in refused(user_shell, repository.url)
    assert "symbolic link" in refused(user_shell, str(repository.work))


@pytest.mark.full
def test_a_registry_of_ten_thousand_recipes_is_refused(user_shell: UserShell, repository: Repository) -> None:
    """The number is in the refusal, before any of the recipes is read."""
    for number in range(10_000):
        repository.write(f"official/{number}.yaml", "x")
    repository.push()
    assert "10,001 recipe files; at most 2,000" in refused(user_shell, repository.url)


def test_a_repository_that_is_too_large_is_not_kept(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git is stopped by a limit on what it may write."""
    (repository.work / "big.bin").write_bytes(os.urandom(3_000_000))
    repository.push()
    monkeypatch.setattr(git_adapter, "MAX_PACK", 1_000_000)
    with pytest.raises(UsageError, match="is larger than 1 MB"):
        RecipeSources(tmp_path / "sources", tmp_path).add(repository.url, "spark", lambda variants, path: ())
    assert list((tmp_path / "sources").iterdir()) == []


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("ext::sh -c id", "is no source"),
        ("--upload-pack=id", "no option"),
        ("https://user:word@host.invalid/x.git", "has a password in it"),
        ("file:///does/not/exist", "does not appear to be a git repository"),
        ("./none", "no such folder"),
        ("ssh://-oProxyCommand=id/x", "blocked"),
    ],
)
def test_an_address_that_is_none_is_refused(user_shell: UserShell, where: str, why: str) -> None:
    """The address is refused before git sees what it would take for an option or a program."""
    assert why in refused(user_shell, where)


def test_a_name_that_is_taken_or_odd_is_refused(user_shell: UserShell, repository: Repository) -> None:
    """One name, one registry; and it becomes a folder's name."""
    assert "is no name" in refused(user_shell, repository.url, "--name", "../up")
    document(user_shell, "add", repository.url, "--name", "spark")
    done = run(user_shell, "source", "add", repository.url, "--name", "spark")
    assert (done.code, "there is a source spark already" in done.err) == (2, True)


class _Backend(BaseHTTPRequestHandler):
    """`git http-backend` behind a password."""

    root = ""
    word = base64.b64encode(b"me:word").decode()

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes) -> None:
        if self.headers.get("Authorization") != f"Basic {self.word}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="registry"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        environment = {
            **os.environ, "GIT_PROJECT_ROOT": self.root, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "me",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }  # fmt: skip
        done = subprocess.run(("git", "http-backend"), input=body, env=environment, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@contextmanager
def served(root: Path) -> Iterator[str]:
    handler = type("Backend", (_Backend,), {"root": str(root)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/registry.git"
        finally:
            server.shutdown()
            thread.join()


def test_a_private_registry_uses_the_users_own_credentials(
    user_shell: UserShell, repository: Repository, tmp_path: Path
) -> None:
    """A credential helper of the user's git gives the password; without one the message says what is missing."""
    with served(tmp_path) as url:
        assert "could not read Username" in refused(user_shell, url)
        home = user_shell.folder
        (home / ".gitconfig").write_text(
            '[credential]\n\thelper = "!f() { echo username=me; echo password=word; }; f"\n'
        )
        assert document(user_shell, "add", url)["source"]["name"] == "registry"
        assert "word" not in "".join(path.read_text() for path in home.rglob("source.json"))
