"""The passages of a log that are no messages: a program's help, source code, columns, names of tests that passed,
exceptions that Python ignores, and what belongs to a record that reports nothing bad.

A word of failure in them names a thing. They are known by their form alone, whatever program wrote them.
"""

from collections.abc import Callable, Iterator, Sequence

from sparkwright.causes.candidates import has_bad_word, is_exception, is_line, line_pattern, split_prefix
from sparkwright.causes.evidence import is_quiet

_CODE = 4  # lines of code in a row
_ROWS = 3  # rows in a row that have the same columns
_NOWHERE = 1 << 20  # a column that no line reaches
_HEAD = 60  # characters in which a record's time or level stands
_FRAMES = 64  # lines of a traceback
_GAP = "  "  # between two columns, at least once in a row
_DEEP = 12  # blanks: a lone line that begins so far to the right continues one above it
Line = tuple[int, str]


def passages(lines: Sequence[Line]) -> frozenset[int]:
    """The numbers of the lines that are parts of such passages. lines: as (number, text) in order."""
    read: tuple[Callable[[Sequence[Line]], Iterator[int]], ...] = (
        _of_help,
        _of_code,
        _of_columns,
        _of_table,
        _below_quiet,
        _of_ignored,
    )
    passed = (number for number, text in lines if is_line("passed", text))
    return frozenset((*passed, *(number for form in read for number in form(lines))))


def table_rows(lines: Sequence[Line]) -> frozenset[int]:
    """The numbers of the lines that are rows of tables and columns: what they state may still be a cause."""
    return frozenset((*_of_columns(lines), *_of_table(lines)))


def indentation(text: str) -> int:
    """The number of blanks with which it begins."""
    return len(text) - len(text.lstrip())


def is_record(text: str) -> bool:
    """True if a line reports an event of a program that keeps a log: it has a time or a level of a log's form."""
    return line_pattern("record").search(text[:_HEAD]) is not None


def _of_help(lines: Sequence[Line]) -> Iterator[int]:
    """An option, and what is indented below it."""
    depth = -1
    for number, text in lines:
        if not text.strip():
            continue
        if line_pattern("option").match(text):
            depth = indentation(text)
        elif indentation(text) <= depth + 1 or depth < 0:
            depth = -1
            continue
        yield number


def _of_code(lines: Sequence[Line]) -> Iterator[int]:
    """Several lines in a row with the syntax of a programming language."""
    run: list[int] = []
    clear = 0  # of them more than a name with a value
    for number, text in (*lines, (0, ".")):
        if not text.strip():
            continue
        is_code = line_pattern("code").search(text) is not None
        if number and not is_record(text) and (is_code or line_pattern("assigns").match(text)):
            run.append(number)
            clear += is_code
            continue
        if _CODE <= len(run) <= _CODE * clear:
            yield from run
        run, clear = [], 0


def _of_columns(lines: Sequence[Line]) -> Iterator[int]:
    """Rows with the same columns. A row that says how something ended is a message all the same."""
    run: list[Line] = []
    form, start, rows = "", _NOWHERE, 0
    for number, text in (*lines, (0, "")):
        own, at = ("", _NOWHERE) if is_record(text) else _columns(text)
        if run and own != form and number and indentation(text) >= start - 1:  # what a row means goes on below it
            run.append((number, text))
            continue
        if run and own != form:
            yield from _states_nothing(run) if rows >= _ROWS else ()
            run, rows = [], 0
        form, start = own, at
        if own:
            run.append((number, text))
            rows += 1


def _states_nothing(run: Sequence[Line]) -> Iterator[int]:
    return (number for number, text in run if not is_line("ends", text))


def _columns(text: str) -> tuple[str, int]:
    """(The columns of a row by a name, '' for a line that is no row; where the last one begins)."""
    if text.count("|") >= 2 and text.lstrip()[:1] in "|+":
        return f"| {text.count('|')}", _NOWHERE
    if text.count("\t") >= 2:
        return f"t {text.count(chr(9))}", _NOWHERE
    found = line_pattern("columns").match(text)
    if not found:
        return "", _NOWHERE
    return f"{'' if found[0].endswith(':') else indentation(text)} {found.end()}", found.end()


def _of_table(lines: Sequence[Line]) -> Iterator[int]:
    """The rows below names of columns in capitals, as long as they have as many columns. A row that says how something
    ended is a message all the same."""
    least = 0
    for number, text in lines:
        if line_pattern("header").match(text):
            least = len(text.split())
        elif least and len(text.split()) >= least and _GAP in text.strip():
            if not is_line("ends", text):
                yield number
        else:
            least = 0


def _below_quiet(lines: Sequence[Line]) -> Iterator[int]:
    """Lines that are indented below a record of information or a warning, or so far that they continue a line that is
    not there; exceptions and stated ends are messages."""
    head: str | None = None
    for number, text in lines:
        if not text[:1].isspace():
            head = text
        elif _is_part(text) and (is_quiet(head) if head is not None else indentation(text) >= _DEEP):
            yield number


def _of_ignored(lines: Sequence[Line]) -> Iterator[int]:
    """An exception that Python reports and ignores (PEP 442, the site module), with its traceback."""
    left = 0
    for number, text in lines:
        body = split_prefix(text)[1]
        if line_pattern("ignored").search(body):
            left = _FRAMES
            yield number
        elif left:
            is_frame = not body.strip() or body[:1].isspace() or line_pattern("frame").search(body) is not None
            left = left - 1 if is_frame else 0
            if is_frame or is_exception(body):
                yield number


def _is_part(text: str) -> bool:
    if not has_bad_word(text) or is_line("ends", text):
        return False
    prefix, body = split_prefix(text)
    return not (prefix.strip() or is_exception(body.lstrip()) or is_line("said", body.lstrip()))
