"""The loader of causes: what a file may hold, and that a mistake is named with file and line."""

from pathlib import Path

import pytest

from sparkwright.causes.cause import book_of
from sparkwright.causes.diagnose import line_causes
from sparkwright.causes.load import pattern_needs, read
from sparkwright.causes.whole_log.rules import WHOLE_LOG
from sparkwright.domain.finding import Severity
from sparkwright.logscan.book import digest, needs_of
from sparkwright.logscan.sign import ANYWHERE, Sign

GOOD = r"""# A family.
family = 'test-family'

[[cause]]
code = 'LTST001'
key = 'socket-permission'
title = 'no permission on the socket'
severity = 'block'
why = '''
the user is not in the group,
or the session predates the change.'''
see = ['https://example.org/socket']
fix = ['sudo usermod -aG docker $USER', 'echo {node} {{}}']
consequences = ['engine-died']
certain = [
  'permission denied while connecting',
  '''docker\.sock: connect: permission denied
     |error while fetching the version''',
]
'0.7' = [
  { near = ['docker socket', 'denied'], within = 1 },
  { anywhere = ['docker socket', 'refused'] },
  { line = 'daemon refused', times = 3, unless = 'retrying', rank = 'head', engine = ['vllm', 'sglang'] },
]
fires = ['permission denied while connecting']
silent = ['cannot connect']

[[cause]]
code = 'LTST002'
key = 'engine-died'
title = 'the engine died'
severity = 'info'
status = 'preview'
why = 'x'
hint = ['engine died']
fires = ['engine died']
silent = ['engine lives']
"""


def load(tmp_path: Path, text: str) -> str:
    """The error, '' for none."""
    (tmp_path / "test.toml").write_text(text)
    try:
        read(tmp_path, patterns=True)
    except ValueError as error:
        return str(error)
    return ""


def test_a_file_becomes_causes(tmp_path: Path) -> None:
    """Guards every form that a signature may have, and that line breaks in patterns and in `why` do not count."""
    assert load(tmp_path, GOOD) == ""
    first, second = read(tmp_path)["test-family"]
    assert first.why == "the user is not in the group, or the session predates the change."
    assert first.signatures == (
        Sign(("permission denied while connecting",), 0.95),
        Sign((r"docker\.sock: connect: permission denied|error while fetching the version",), 0.95),
        Sign(("docker socket", "denied"), 0.7, 1),
        Sign(("docker socket", "refused"), 0.7, ANYWHERE),
        Sign(("daemon refused",), 0.7, 0, 3, "retrying", (("rank", ("head",)), ("engine", ("vllm", "sglang")))),
    )
    assert (second.severity, second.status, second.fix) == (Severity.INFO, "preview", ())


@pytest.mark.parametrize(
    ("good", "bad", "error"),
    [
        ("rank = 'head'", "rank = 'tail'", "test.toml:23: rank cannot be 'tail'"),
        ("'sglang'", "'sglan'", "test.toml:23: engine cannot be 'sglan'"),
        ("engine = [", "phase = ['load', ", "test.toml:23: phase cannot be 'vllm'"),
        ("see = ", "sea = ", "test.toml:12: unknown key 'sea'; did you mean 'see'?"),
        ("certain = ", "sure = ", "test.toml:15: unknown key 'sure'"),
        ("silent = ['cannot connect']\n", "", "test.toml:4: no silent"),
        ("fires = ['engine died']\n", "fires = []\n", "test.toml:28: no fires"),
        ("hint = ['engine died']\n", "", "test.toml:28: no signature"),
        ("fix = ['sudo", "fixed = ['sudo", "test.toml:13: unknown key 'fixed'; did you mean 'fix'?"),
        ("fix = ['sudo usermod -aG docker $USER', 'echo {node} {{}}']\n", "", "test.toml:4: no fix"),
        ("echo {node} {{}}", "echo {node} {}", "test.toml:13: fix cannot be 'echo {node} {}'"),
        ("'engine-died']", "'engine-dies']", "test.toml:14: unknown cause 'engine-dies'; did you mean 'engine-died'?"),
        ("severity = 'info'", "severity = 'bad'", "test.toml:32: severity cannot be 'bad'"),
        ("code = 'LTST002'", "code = 'LTST001'", "test.toml:29: LTST001 is another cause's code"),
        ("title = 'the engine died'", "title = 'The end.'", "test.toml:31: title cannot be 'The end.'"),
        ("https://example.org", "field guide, page", "test.toml:12: see cannot be 'field guide, page/socket'"),
        ("hint = ['engine died']", "hint = ['engine (died']", "test.toml:35: bad pattern 'engine (died': missing )"),
        ("hint = ['engine died']", r"hint = ['\d+']", r"test.toml:35: no word that every match of '\\d+' has"),
        ("within = 1", "width = 1", "test.toml:21: unknown key in 0.7: 'width'; did you mean 'within'?"),
        ("within = 1", "within = '1'", "test.toml:21: within cannot be '1'"),
        ("near = ['docker socket', 'denied']", "near = ['denied']", "test.toml:21: near needs two patterns or more"),
        (
            "line = 'daemon refused', ",
            "",
            "test.toml:20: 0.7: expected a pattern, or a table with line, near, anywhere",
        ),
        ("times = 3", "time = 3", "test.toml:23: unknown key in 0.7: 'time'; did you mean 'times'?"),
        ("certain = [", "hint = 'x'\ncertain = [", "test.toml:15: hint must be a list"),
        ("see = ['https://example.org/socket']", "see = 'https://example.org'", "test.toml:12: see must be a list"),
        ("family = 'test-family'\n", "", "test.toml:1: expected family and [[cause]], found cause"),
        ("why = 'x'", "why = 'x", "test.toml:34: "),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, good: str, bad: str, error: str) -> None:
    """Guards anyone who adds a cause: what is wrong, where, and what was probably meant."""
    assert good in GOOD
    assert load(tmp_path, GOOD.replace(good, bad, 1)).startswith(error)


def test_a_code_of_another_file_is_refused(tmp_path: Path) -> None:
    """Guards that codes are unique over all families, not only within one."""
    (tmp_path / "a.toml").write_text(GOOD)
    assert load(tmp_path, GOOD) == "test.toml:5: LTST001 is another cause's code"


@pytest.mark.full
def test_what_is_kept_of_patterns_is_what_they_need() -> None:
    """Guards the index of all causes, which is built from needs.json: `make docs` writes it."""
    kept, plain = pattern_needs(), book_of(line_causes().values(), WHOLE_LOG)
    for pattern in plain.patterns:
        if (row := kept.get(digest(pattern.text))) is not None:
            assert (row[0], tuple(row[1])) == needs_of(pattern.text), pattern.text
    quick = book_of(line_causes().values(), WHOLE_LOG, needs=kept)
    assert [(one.code, one.parts, one.rarest) for one in quick.signs] == [
        (one.code, one.parts, one.rarest) for one in plain.signs
    ]
    assert quick.needles == plain.needles
    missing = sum(digest(pattern.text) not in kept for pattern in plain.patterns)
    assert missing < 0.05 * len(plain.patterns), "make docs"
