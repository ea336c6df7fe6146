"""All commands together: their options, examples, durations, older names, and the JSON documents they print."""

import io
import json
import re
import select
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from sparkwright.adapters import log_files
from sparkwright.adapters.extras import install_command
from sparkwright.adapters.files import Places, open_recipe, recipe_names, split_profile
from sparkwright.cli import main as cli
from sparkwright.cli.kinds import Duration
from sparkwright.cli.main import run
from sparkwright.cli.options import enveloped
from sparkwright.domain.errors import UsageError
from sparkwright.wiring import places
from unit.for_each import for_each

AT = Places(Path("/nowhere"), Path("/nowhere"))
DOCUMENTS = tomllib.loads((Path(cli.__file__).parent / "documents.toml").read_text())


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        one = group.get_command(context, name)
        assert one
        inner = click.Context(one, parent=context, info_name=name)
        if isinstance(one, click.Group):
            yield from commands(one, inner)
        else:
            yield inner.command_path, one, inner


ALL = tuple(commands(cli.main, click.Context(cli.main, info_name="sparkwright", **cli.main.context_settings)))


@pytest.fixture
def empty_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "SPARKWRIGHT_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_every_command_has_json() -> None:
    """Guards README's promise."""
    assert [path for path, one, _ in ALL if not any("--json" in option.opts for option in one.params)] == []


def test_every_document_is_described() -> None:
    """Guards docs/reference/json.md: a table for each command, none for another."""
    assert sorted(DOCUMENTS) == sorted(path.removeprefix("sparkwright ") for path, _, _ in ALL)


def test_metavars_name_the_thing() -> None:
    """No type of the library's stands in a help page: MINUTES, N or FILE do."""
    types = {"INTEGER", "FLOAT", "INTEGER RANGE", "FLOAT RANGE", "TEXT", "PATH", "FILENAME", "UUID"}
    options = ((path, option, context) for path, one, context in ALL for option in one.params)
    shown = [(path, one.name, one.make_metavar(at)) for path, one, at in options if not getattr(one, "hidden", False)]
    assert [row for row in shown if row[2] in types and row[1] != "note"] == []


def test_help_sentences_are_imperative() -> None:
    """`Check`, not `Checks` or `Everything`."""
    first = {path: (one.help or "").split()[0] for path, one, _ in ALL}
    assert {path: word for path, word in first.items() if word.endswith("s") or word in ("Everything", "All")} == {}
    short = {path: one.get_short_help_str().split()[0] for path, one, _ in ALL}
    assert {path: word for path, word in short.items() if word.endswith("s") or word in ("Everything", "All")} == {}


def test_an_option_has_one_meaning() -> None:
    """An option's name in one command is never used in another for another thing: one metavar, a flag nowhere else."""
    shown: dict[str, set[str]] = {}
    flags: set[str] = set()
    for _, one, context in ALL:
        for option in one.params:
            if isinstance(option, click.Option) and not option.hidden:
                flags |= {*option.opts} if option.is_flag else set()
                for name in () if option.is_flag else option.opts:
                    shown.setdefault(name, set()).add(option.make_metavar(context))
    several = {name: words for name, words in shown.items() if len(words) > 1}
    assert several == {
        "--format": {"FORMAT", "[html|md|json|pdf]"},  # what each can write
        "--out": {"FILE", "NAME.yaml"},
        "--resume": {"RUN", "SEARCH"},  # what was interrupted
        "--workload": {"NAME", "NAME|FILE"},  # a list knows no files
    }
    assert flags & set(shown) == set()


def test_one_thing_is_one_option() -> None:
    """The same name for the function means the same: `--name` is a deployment everywhere, `--time` a DURATION."""
    named: dict[str, set[str]] = {}
    for path, one, _ in ALL:
        for option in one.params:
            if isinstance(option, click.Option) and not option.hidden:
                named.setdefault(option.opts[0], set()).add(path.removeprefix("sparkwright "))
    assert named["--name"] == {"plan", "up", "switch", "tune"}
    assert named["--set"] == {"recipes import"} and named["--for"] == {"tune"} and named["--only"] == {"check"}


def examples() -> Iterator[tuple[str, list[str]]]:
    """Each command line of the help pages, with the pipes and redirections of the shell left out."""
    for path, one, _ in ALL:
        for line in (one.help or "").splitlines():
            for part in line.split("|"):
                for command in part.split("&&"):
                    found = command.strip().removeprefix("Example: ")
                    if found.startswith("sparkwright "):
                        words = shlex.split(found.split("   ")[0].split(" <")[0].split(" >")[0])
                        yield path, words[1:]


def test_examples_of_the_help_pages_parse(empty_home: Path) -> None:
    """Every example can be pasted: its options exist, and so do the recipes that it names."""
    count, names = 0, set(recipe_names(AT))
    for file in ("gates.txt", "head.log", "worker.log", "rank-0.log", "KEY", "ca.crt"):
        (empty_home / file).write_text("")
    for path, words in examples():
        context = click.Context(cli.main, info_name="sparkwright", **cli.main.context_settings)
        command: click.Command = cli.main
        rest = words
        while isinstance(command, click.Group):
            inner = command.get_command(context, rest[0])
            assert inner, (path, words)
            command, rest = inner, rest[1:]
            context = click.Context(command, parent=context, info_name=words[0])
        made = command.make_context(words[0], list(rest), parent=context.parent)
        for key in ("recipe", "recipes", "deployment", "replace"):
            given = made.params.get(key) or ()
            for word in (given,) if isinstance(given, str) else given:
                bare, profile = split_profile(word, AT)
                if "/" not in bare and not bare.endswith(".yaml"):
                    assert bare in names, (path, words)
                    open_recipe(bare, AT, profile)
        count += 1
    assert count > 100


def test_durations() -> None:
    """One way to write them; a plain number only where an older option had a unit."""
    assert [Duration(0).convert(text, None, None) for text in ("90s", "5m", "1h30m", "2d", "0.5h")] == [
        90.0,
        300.0,
        5400.0,
        172800.0,
        1800.0,
    ]
    assert Duration(0, 60.0).convert("90", None, None) == 5400.0
    for text in ("90", "", "m", "1h 30", "-5m", "5 m", "1e9h", "9" * 40 + "s", "0s"):
        with pytest.raises(click.BadParameter, match="expected"):
            Duration(0).convert(text, None, None)
    with pytest.raises(click.BadParameter, match="expected more than 0s"):
        Duration(0).convert("0s", None, None)
    with pytest.raises(click.BadParameter, match="expected at most 3600s"):
        Duration(0, most=3600).convert("61m", None, None)
    assert [Duration(0, 1.0, zero=True).convert(text, None, None) for text in ("0", "0s")] == [0.0, 0.0]


def test_every_time_is_given_as_a_duration() -> None:
    """No option takes seconds only, or minutes only: 90s, 5m and 1h30m work wherever a time is asked for."""
    units = re.compile(r"\b(SECONDS|MINUTES|HOURS)\b")
    wrong = [
        (path, option.opts)
        for path, one, context in ALL
        for option in one.params
        if isinstance(option, click.Option) and not option.hidden and units.search(option.make_metavar(context))
    ]
    assert wrong == []


def parameters(*words: str) -> dict[str, Any]:
    context = click.Context(cli.main, info_name="sparkwright", **cli.main.context_settings)
    command = cli.main.get_command(context, words[0])
    rest = list(words[1:])
    if isinstance(command, click.Group):
        command = command.get_command(context, rest.pop(0))
    assert command
    return command.make_context(words[0], rest).params


@for_each(
    "old, new",
    [
        (("bench", "x", "--profile", "agentic"), ("bench", "x", "--workload", "agentic")),
        (("soak", "x", "-o", "a.html"), ("soak", "x", "--report", "a.html")),
        (("tune", "twin", "--for", "latency", "--only", "a"), ("tune", "twin", "--for", "latency", "--setting", "a")),
        (("eval", "probes", "x", "--only", "a"), ("eval", "probes", "x", "--probe", "a")),
        (("init", "--name", "lab"), ("init", "--cluster-name", "lab")),
        (("init", "--only", "clock"), ("init", "--step", "clock")),
        (("recipes", "list", "--for", "code"), ("recipes", "list", "--purpose", "code")),
        (("tune", "twin", "--for", "latency", "--set", "a=1"), ("tune", "twin", "--for", "latency", "--try", "a=1")),
        (("recipes", "inventory", "--nodes"), ("recipes", "inventory", "--by-node")),
        (("plan", "twin", "--emit", "shell", "--out", "x"), ("plan", "twin", "--emit", "shell", "--folder", "x")),
    ],
)
def test_older_names_still_work(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    """Scripts go on; the help shows the new name only."""
    assert parameters(*old) == parameters(*new)
    (alias,) = [word for word in old if word not in new]
    context = click.Context(cli.main, info_name="sparkwright", **cli.main.context_settings)
    command = cli.main.get_command(context, old[0])
    if isinstance(command, click.Group):
        command = command.get_command(context, old[1])
    assert command and f"{alias} " not in command.get_help(context).split("Options:")[1].replace("--only CODE", "")


@for_each(
    "words, name, value",
    [
        (("bench", "x", "--seconds", "30"), "seconds", 30.0),
        (("soak", "x", "--hours", "12"), "hours", 43200.0),
        (("soak", "x", "--minutes", "1.5"), "minutes", 90.0),
        (("tune", "twin", "--for", "latency", "--budget", "90"), "budget", 5400.0),
        (("tune", "twin", "--for", "latency", "--time", "90m"), "time", 5400.0),
        (("restart", "twin", "--drain", "90"), "drain", 90.0),
        (("restart", "twin", "--drain", "0"), "drain", 0.0),
        (("top", "--every", "0.5"), "every", 0.5),
        (("wake", "spark-2", "--wait", "2m"), "wait", 120.0),
    ],
)
def test_older_durations_keep_their_units(words: tuple[str, ...], name: str, value: float) -> None:
    """Seconds, hours and minutes as they were."""
    assert parameters(*words)[name] == value


def test_a_soak_lasts_as_long_as_it_is_told(empty_home: Path, capsys: Any) -> None:
    """Minutes, hours and durations reach the workload."""
    for words in (("--time", "1h30m"), ("--hours", "1.5"), ("--minutes", "90")):
        assert run(["soak", "--dry-run", "--json", *words]) == 0
        assert json.loads(capsys.readouterr().out)["workload"]["deadline"] == 5400.0


def test_two_durations_exclude_each_other(empty_home: Path, capsys: Any) -> None:
    """One of them would be ignored."""
    assert run(["soak", "http://127.0.0.1:1", "--hours", "1", "--time", "5m"]) == 2
    assert "--time and --hours exclude each other" in capsys.readouterr().err


@pytest.mark.full
def test_documents_have_a_name_and_a_schema(empty_home: Path, capsys: Any) -> None:
    """Their own keys stay as they are."""
    for words in (
        ("recipes", "list"),
        ("recipes", "show", "twin"),
        ("recipes", "show", "--reference"),
        ("explain", "DRV001"),
        ("runs", "list"),
        ("connect", "--list"),
        ("bench", "--workloads"),
        ("bench", "--profiles"),
        ("recipes", "validate", "twin"),
        ("monitoring",),
        ("eval", "probes", "--dry-run"),
    ):
        assert run([*words, "--json"]) == 0, words
        document = json.loads(capsys.readouterr().out)
        declared = DOCUMENTS[document["document"]]
        assert "*" in declared or set(document) - set(declared) <= {"schema", "document", "simulated"}, words
        verbs = [word for word in words if not word.startswith("-")]
        assert document["schema"] == 1 and document["document"].split() == verbs[: len(document["document"].split())]


def test_a_document_is_marked_where_all_of_it_is_simulated() -> None:
    """A list of both kinds has its marks in its rows."""
    rows = [{"simulated": True}, {"simulated": False}]
    assert enveloped({"runs": rows[:1]})["simulated"] is True
    assert "simulated" not in enveloped({"runs": rows}) and "simulated" not in enveloped({"runs": []})
    assert enveloped({"simulated": False, "runs": rows[:1]})["simulated"] is False


@for_each("content", [b"", b" \n\n", bytes(range(256)) * 12, b"\0" * 4000])
def test_nothing_to_diagnose_is_no_good_news(content: bytes) -> None:
    """An empty pipe, blanks, a binary file and zeros: exit code 2, said in one sentence."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        said = io.StringIO()
        patch.setattr(sys, "stderr", said)
        assert run(["diagnose", "-"]) == 2
    assert "error: nothing to diagnose: standard input is " in said.getvalue()


def test_an_empty_log_among_others_is_named(tmp_path: Path, capsys: Any) -> None:
    """The readable logs are diagnosed; zeros of a power cut do not make a log unreadable."""
    good, empty = tmp_path / "good.log", tmp_path / "empty.log"
    good.write_bytes(b"INFO all good\n" + b"\0" * 4096)
    empty.write_bytes(b"")
    assert run(["diagnose", str(good), str(empty)]) == 0
    assert capsys.readouterr().err == f"{empty} is empty\n"


def test_more_free_memory_than_there_is_is_refused(empty_home: Path, capsys: Any) -> None:
    """`--free 1TiB` of a machine with 121.7 GiB."""
    assert run(["plan", "gpt-oss-120b", "--nodes", "2", "--free", "1024GiB"]) == 2
    said = capsys.readouterr().err
    assert "error: --free 1024.0 GiB: more than the 121.7 GiB of a" in said and "hint:" in said


def test_free_memory_without_a_unit_is_refused(empty_home: Path, capsys: Any) -> None:
    """`--free 112` would be 112 bytes."""
    assert run(["plan", "gpt-oss-120b", "--nodes", "1", "--free", "112"]) == 2
    assert "GiB" in capsys.readouterr().err


def test_other_addresses_and_editors_are_refused_with_a_way(empty_home: Path, capsys: Any) -> None:
    """ftp is not a deployment's name, and VS Code is not codex."""
    refused = "only http and https" if hasattr(select, "epoll") else "measures on Linux only"
    for words, said in (
        (("bench", "ftp://x"), refused),
        (("eval", "probes", "ftp://x"), refused),
        (("connect", "curl", "ftp://x"), "only http and https"),
        *((("connect", "curl", url), said) for url, said in ODD_URLS.items()),
        (("connect", "vscode"), "`sparkwright connect cline` or `sparkwright connect continue`"),
    ):
        assert run(list(words)) == 2
        err = capsys.readouterr().err
        assert said in err and "s3cr3t" not in err


ODD_URLS = {
    "http://": "expected the address of a server",
    "http://[::1": "Invalid IPv6 URL",
    "http://h:99999": "Port out of range",
    "http://h:x/v1": "Port could not be cast",
    "http://h:1/v1#x": "expected the address of a server",
    "http://ann:s3cr3t@h:1/v1": "a user or password in a URL is shown and stored",
    "http://ann:s3cr3t@[::1": "Invalid IPv6 URL",
}


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="bench measures on Linux only")
def test_an_address_that_is_none_is_no_server_that_does_not_answer(empty_home: Path, capsys: Any) -> None:
    """Guards exit code 5 and "is it started?" for a typing error, and a password on the screen and in a stored run."""
    for words in (("bench",), ("eval", "probes"), ("soak",)):
        for url, said in ODD_URLS.items():
            assert run([*words, url]) == 2, (words, url)
            err = capsys.readouterr().err
            assert said in err and "s3cr3t" not in err, err


def test_a_report_has_the_format_of_its_name(empty_home: Path, capsys: Any) -> None:
    """No HTML in x.docx."""
    assert run(["report", "-o", "x.docx"]) == 2
    assert "a report is no .docx file" in capsys.readouterr().err


def test_a_pdf_needs_a_browser(empty_home: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 2 without Chromium, with the thing to do; no file."""
    monkeypatch.setenv("PATH", str(empty_home))
    for words in (["report", "-o", "x.pdf"], ["report", "--format", "pdf"]):
        assert run(words) == 2
        said = capsys.readouterr().err
        assert "a PDF needs Chromium" in said and "hint:  install chromium" in said
    assert not (empty_home / "x.pdf").exists()


def test_extras_are_installed_from_where_this_one_came() -> None:
    """The name is on no index; the command names a folder or a file that exists."""
    command = install_command("evals")
    assert "pip install" in command and "[evals]" in command and " sparkwright[evals]'" not in command
    where = shlex.split(command)[-1].removesuffix("[evals]")
    assert Path(where).is_dir() or "@ " in where


def test_xdg_folders_are_honoured(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is no XDG path and is ignored."""
    assert (
        places().state == empty_home / ".local/state/sparkwright"
        and places().cache == empty_home / ".cache/sparkwright"
    )
    for name, folder in (("XDG_STATE_HOME", "s"), ("XDG_CONFIG_HOME", "c"), ("XDG_CACHE_HOME", "k")):
        monkeypatch.setenv(name, f"{empty_home}/{folder}")
    assert (places().state, places().cache) == (empty_home / "s/sparkwright", empty_home / "k/sparkwright")
    assert places().recipes == empty_home / "c/sparkwright/recipes"
    (empty_home / "c/sparkwright").mkdir(parents=True)
    (empty_home / "c/sparkwright/cluster.yaml").write_text("name: lab\nnodes: [spark-1]\n")
    assert run(["runs", "list"]) == 0 and (empty_home / "s/sparkwright/runs.sqlite").is_file()
    assert not (empty_home / ".local").exists() and not (empty_home / ".config").exists()
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert places().state == empty_home / ".local/state/sparkwright"


@for_each(
    "words, said",
    [
        ("up twin --replace", "error: --replace needs a value"),
        ("plan twin --json=3", "error: --json takes no value"),
        ("recipes list --nodes 100", "error: --nodes: found '100', expected a whole number from 1 to 64"),
        ("runs export last --format xml", "error: --format: 'xml' is not one of 'json', "),
        ("plan gpt-oss-120b --nodes 1 --replicas 2", "error: too few for 2 replicas of 1 node: 1 node"),
        ("recipes source add ./nowhere", "error: ./nowhere: there is no such folder"),
    ],
)
def test_wrong_words_are_named_with_a_hint(empty_home: Path, capsys: Any, words: str, said: str) -> None:
    """Guards one tone for all: no sentence of the library's, no empty choice, one is no plural."""
    assert run(words.split()) == 2
    assert capsys.readouterr().err.startswith(said)


def test_a_hint_names_options_that_exist(empty_home: Path, capsys: Any) -> None:
    """Guards `bench --workload nosuch`, whose hint named the option's older name."""
    assert run(["bench", "http://127.0.0.1:1", "--workload", "nosuch"]) in (2,)
    said = capsys.readouterr().err
    assert "no workload 'nosuch'" in said or "measures on Linux only" in said
    assert "--profile" not in said


@pytest.mark.parametrize("what", ["closed", "many", "deep"])
def test_a_folder_that_is_no_folder_of_logs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Guards `diagnose /`: a traceback on the first file that may not be looked at, and no end."""
    monkeypatch.setattr(log_files, "_MOST_FILES", 2)
    monkeypatch.setattr(log_files, "_MOST_FOLDERS", 3)
    if what == "closed":
        (tmp_path / "good.log").write_text("x")
        monkeypatch.setattr(Path, "is_file", lambda self: Path.exists(self) if self.name == "good.log" else closed())
        (tmp_path / "cwd").write_text("x")
        assert log_files.log_files(tmp_path) == (tmp_path / "good.log",)
        return
    for number in range(5):
        (tmp_path / f"{number}").mkdir() if what == "deep" else (tmp_path / f"{number}.log").write_text("x")
    with pytest.raises(UsageError, match="more than 2 files" if what == "many" else "more than 3 folders"):
        log_files.log_files(tmp_path)


def closed() -> bool:
    raise PermissionError(13, "Permission denied")
