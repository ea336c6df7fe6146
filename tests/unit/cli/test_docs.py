"""The reference pages are what the program prints."""

import contextlib
import importlib.util
import re
import shlex
from functools import cache
from pathlib import Path
from types import ModuleType

import click
import pytest

from sparkwright.cli import main as cli
from unit.for_each import for_each

ROOT = Path(__file__).parents[3]
NAMES = ("cli", "recipe-reference", "cluster-reference", "recipes", "engines")
SAMPLED = tuple(f"guides/{name}.md" for name in ("checking", "planner", "troubleshooting"))
PAGES = (
    *(f"reference/{name}.md" for name in NAMES),
    "reference/json.md",
    "reference/documents.schema.json",
    "reference/environment.md",
    "reference/completion.md",
    "reference/exit-codes.md",
    "architecture.svg",
    *SAMPLED,
)


@cache
def reference_pages() -> dict[str, str]:
    return dict(script().own_pages())


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_script", ROOT / "scripts" / "docs" / "docs.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.full
@for_each("name", PAGES)
def test_a_generated_page_is_fresh(name: str) -> None:
    """Help or reference changed: `make docs` writes the page."""
    assert tuple(reference_pages()) == PAGES
    assert reference_pages()[name] == (ROOT / "docs" / name).read_text(), "make docs"


def test_every_verb_is_in_the_page() -> None:
    """The verbs of a group are there, too, each with its options."""
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    for verb in ("up", "down", "logs", "recipes", "recipes validate", "demo"):
        assert f"\n## sparkwright {verb}\n" in page
    assert page.count("--help") > 10
    assert str(Path.home()) not in page


def written_pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def page_links(page: Path) -> list[tuple[str, str]]:
    """(path, anchor) of the links to this project's own files."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    found = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text)
    return [(path, anchor) for path, anchor in found if not re.match(r"[a-z]+:", path)]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes from headings."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_link_leads_to_a_file_and_its_heading() -> None:
    """Guards pages that were moved, renamed or given other headings."""
    broken = []
    for page in written_pages():
        for path, anchor in page_links(page):
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(ROOT)}: {path}#{anchor}")
    assert broken == []


def test_the_index_lists_every_page() -> None:
    """Guards against a page that nobody finds."""
    listed = {(ROOT / "docs" / path).resolve() for path, _ in page_links(ROOT / "docs" / "README.md")}
    there = [*(ROOT / "docs" / "guides").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")]
    assert [path.name for path in there if path not in listed] == []


def test_the_site_has_every_page_in_its_navigation() -> None:
    """Guards against a page that only search finds, and against links from the root's files to nowhere."""
    import docs_site

    listed = set(re.findall(r'"([\w/.-]+\.md)"', (ROOT / "zensical.toml").read_text()))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")]
    assert sorted(path.name for path in ROOT.glob("*.md") if path.name not in docs_site.MOVED) == []
    assert sorted({docs_site.place_of(page) for page in pages} - listed) == []


def test_guides_are_short() -> None:
    """A guide is one task; what was measured and every detail go into a reference page."""
    lengths = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "docs" / "guides").glob("*.md")}
    assert len(lengths) > 25
    assert {name: lines for name, lines in lengths.items() if lines > 120} == {}


def test_durations_stand_in_one_place() -> None:
    """Only docs/guides/testing.md says how long `make test` takes; a run writes it there."""
    for name in ("README.md", "Makefile", "CONTRIBUTING.md"):
        lines = [line for line in (ROOT / name).read_text().splitlines() if re.search(r"\bmake test\b|^test", line)]
        assert not [line for line in lines if re.search(r"\d+ (min|s\b|seconds)", line)], name
    assert "- `make test`: " in (ROOT / "docs" / "guides" / "testing.md").read_text()


def shown_commands() -> list[tuple[str, list[str]]]:
    """(page, words) of each `sparkwright ...` line in a code block. Comments and output go."""
    found = []
    for page in written_pages():
        if page.name in ("CHANGELOG.md", "cli.md") or "adr" in page.parts:
            continue
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), flags=re.M | re.S):
            for line in block.replace("\\\n", " ").splitlines():
                for part in re.split(r"; |&& |\| ", line.removeprefix("$ ")):
                    if re.match(r"(\.venv/bin/)?sparkwright [a-z-]", part.strip()) and "..." not in part:
                        with contextlib.suppress(ValueError):
                            words = shlex.split(part, comments=True)
                            found.append((page.relative_to(ROOT).as_posix(), words[1:]))
    return found


def complaint(words: list[str]) -> str:
    """The complaint of click about the words, up to values: files and names in pages are examples."""
    command: click.Command = cli.main
    context = click.Context(command, info_name="sparkwright", **command.context_settings)  # type: ignore[arg-type]
    try:
        while isinstance(command, click.Group):
            name, found, words = command.resolve_command(context, words)
            assert name and found
            command, context = found, click.Context(found, parent=context, info_name=name)
        command.make_parser(context).parse_args(args=list(words))
    except click.UsageError as error:
        return error.format_message()
    return ""


def test_commands_in_pages_exist_with_their_options() -> None:
    """Guards pages against options and verbs that were renamed or never existed."""
    commands = shown_commands()
    assert len(commands) > 100
    assert [f"{page}: {' '.join(words)}: {why}" for page, words in commands if (why := complaint(words))] == []


def test_every_variable_and_folder_of_the_code_has_words() -> None:
    """Guards variables and folders that only their author knows, and words about what is gone."""
    script()
    made = importlib.import_module("docs_environment")
    assert "SPARKWRIGHT_CLUSTER" in made.variables() and "state/keys" in made.machine_paths()
    assert "~/.local/state/sparkwright/evidence" in made.environment_page("")
    with pytest.raises(AssertionError, match=r"without words .*XDG_NEW_HOME"):
        made.compare_names("variables", {"XDG_NEW_HOME"}, set())
    with pytest.raises(AssertionError, match=r"no longer in the code .*GONE"):
        made.compare_names("variables", set(), {"GONE"})
