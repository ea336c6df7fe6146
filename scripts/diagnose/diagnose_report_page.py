"""docs/reference/diagnose-accuracy.md, and the same in a few lines for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from diagnose_fresh import load as fresh_cases
from diagnose_fresh import score_case as fresh_score
from diagnose_fresh_page import HEAD as FRESH_HEAD
from diagnose_fresh_page import score_row as fresh_row
from diagnose_healthy import how_made
from diagnose_healthy import section as healthy_section
from diagnose_report_cases import Named
from diagnose_report_honest import changed, explained_lines, left_one_out, serving
from diagnose_unknown import first_scores

from sparkwright.causes.load import families as known_families
from sparkwright.causes.whole_log.rules import WHOLE_LOG
from sparkwright.domain.diagnosis import CONFIDENT

TARGETS = (0.95, 0.98, 0.01)
HALVES = ("unseen", "develop")
RECORDED = """Rules may be written from `develop`, never from `unseen` (diagnose-fresh.md has the first score of
both). *Family first*: of the cause named first, or of the line that explains where no sign of a cause was found. *No
cause exists*: the catalogue has none; what is named then is a resemblance, possible at most, below the line that
explains.
"""
UNKNOWN = """{number} failures of programs that no cause was written for (compilers, package managers, databases, web
servers, tools of the system, Java, Node, Rust, Python's libraries, journald and Docker JSON; tests/data/logs-unknown),
each with the line that explains and its mechanism written down before `diagnose` was asked. A right cause with another
name than the mechanism counts as wrong; where no mechanism fits, right is to name none.

| logs | number | explaining line shown | mechanism right | confident and wrong | resembles a cause |
|---|---|---|---|---|---|
| **third set, asked once, the first score** | {third} |
| second set, its first score | 25 | 20 | 8 | 0 | 10 |
| first set, its first score | 27 | 18 | 11 | - | - |

The first two sets were improved on after that (today 27 and 25 lines shown, 27 and 15 mechanisms), the third was not:
only it shows what to expect. Its missed lines: {missed}. Of the two confident ones one is the right cause by another
name (the Docker daemon does not run, labelled `file-not-found`), the other takes the failed hunk of a patch for one of
an image's build. A resemblance is shown below the line that explains, and only the best one: in the half to
develop from, the first was right in 24 of 34 logs, the others in none of 7; for programs that nobody knows it is of
little use.
"""
LEFT_OUT = """*Without the signatures that match no other case*: neither they, nor their letters, nor the examples that
only they match or that share over half of their words with the case are used. A cause's title, why and fix are: they
were written with the case in view where it is its only report, so that this figure still flatters the similarity.
"""
WHAT_IT_MISSES = """Targets: unseen half, family first 90 % and explaining line 95 %; without own signatures,
first 70 %; changed logs, first 90 % each; confident and wrong at most 1 %.
What is missed, and why: family first (many lines carry no family of
their own: phase, place in the source and program name it for some; with that the half to develop from gained 12
points, the unseen half 5); the unseen half's explaining line (friendly messages below the exception that they wrap,
banners without a word of failure); first without own signatures (causes of one report that look like a neighbour's:
the same memory error has five, and a weak resemblance is not named, since logs of no known cause resemble some, too);
the last error line alone (where it names only what followed).
"""
FAMILY = {cause.key: family for family, causes in known_families().items() for cause in causes}
NOTE = "<!-- Made by `make diagnose-report` from public logs that are not part of this project; do not edit. -->"
HEAD = (
    "| cases | number | named first | in the first three | family first | confident and wrong | nothing named |\n"
    "|---|---|---|---|---|---|---|"
)


def summary(alone: Sequence[Named], inside: Sequence[Named]) -> str:
    return "\n".join(
        f"{title}: {len(answers)} cases, first {share_text(answers, is_first)}, three "
        f"{share_text(answers, in_first_three)}, "
        f"confident and wrong {share_text(answers, is_wrong)}"
        for title, answers in (("alone", alone), ("behind a healthy start", inside))
    )


def report_page(alone: Sequence[Named], inside: Sequence[Named]) -> str:
    return "\n".join(
        [
            "# How often `diagnose` names the true cause\n",
            NOTE,
            "",
            *healthy_section(),
            page_intro(len(alone)),
            *honest(alone),
            "\n## In sample: the logs that the signatures were written from\n",
            verdict(alone, inside),
            "\n### Each log alone\n",
            tables(alone),
            "\n### Each log behind 1,200 lines of a healthy log of the same kind\n",
            tables(inside),
            "\n### By family, alone\n",
            HEAD,
            *(answer_row(name, [a for a in alone if a.case.family == name]) for name in families(alone)),
            "\n### What is not named first\n",
            "| case | kind | true cause | named |\n|---|---|---|---|",
            *misses(alone, inside),
            *how_made(),
            "",
        ]
    )


def page_intro(number: int) -> str:
    rules = sum(map(len, known_families().values())) + len(WHOLE_LOG)
    return f"""{number} public reports of failures with the cause that their threads established. Rules were
written with these logs in view: how they do on others, only others can show (`make diagnose-report DATA=...`).
{rules} causes have rules. Confident: {CONFIDENT} and more. A log of kind `prose` is somebody's
sentence about a failure, not a program's output. Healthy logs around: own recordings of vLLM and llama.cpp, the
simulator's for SGLang and TensorRT-LLM, and a kernel's and a Docker daemon's."""


def honest(alone: Sequence[Named]) -> list[str]:
    """The figures that show most about logs which nobody has seen, first."""
    cases = [one.case for one in alone]
    less, other, well = left_one_out(cases), changed(cases), serving()
    right, number = explained_lines(cases)
    false = [f"| {name} | {', '.join(found)} |" for name, found in well.items() if found]
    return [
        "\n## What to expect of other logs\n",
        WHAT_IT_MISSES,
        "\n### Logs of programs that the tool does not know\n",
        unknown(),
        "\n### Recorded failures of real programs, today's rules\n",
        RECORDED,
        FRESH_HEAD,
        *(fresh_row(half, [fresh_score(one) for one in fresh_cases() if one.half == half]) for half in HALVES),
        "\n### The public reports\n",
        LEFT_OUT,
        "",
        HEAD,
        answer_row("without the signatures that match no other case", less),
        *(answer_row(title, answers) for title, answers in other.items()),
        f"\nThe line that explains, found without any cause by its form alone: {right / number:.1%} of {number} logs "
        "of programs (right: a line that the true cause rests on).",
        "\n## The same by length and kind, without the signatures that match no other case\n",
        HEAD,
        *(answer_row(title, part) for title, part in by_length(less)),
        *(answer_row(kind, [a for a in less if a.case.kind == kind]) for kind in sorted({a.case.kind for a in less})),
        f"\n## Recordings of engines that serve: {len(false)} of {len(well)} name a cause\n",
        "| recording | named |\n|---|---|",
        *false,
    ]


def unknown() -> str:
    """The first score of the third set, which never changes."""
    first = first_scores()
    sums = [sum(bool(one[key]) for one in first) for key in ("line", "mechanism")]
    wrong = sum(one["confidence"] >= CONFIDENT and not one["mechanism"] for one in first)
    cells = (len(first), *sums, wrong, sum(bool(one["resembles"]) for one in first))
    missed = ", ".join(one["log"] for one in first if not one["line"])
    return UNKNOWN.format(number=52 + len(first), third=" | ".join(map(str, cells)), missed=missed)


def by_length(answers: Sequence[Named]) -> list[tuple[str, list[Named]]]:
    bounds = ((0, 100), (100, 300), (300, 1 << 30))
    titles = ("under 100 characters", "100 to 299 characters", "300 characters and more")
    return [
        (title, [a for a in answers if low <= len(a.case.log) < high])
        for title, (low, high) in zip(titles, bounds, strict=True)
    ]


def verdict(alone: Sequence[Named], inside: Sequence[Named]) -> str:
    place, places, most = TARGETS
    wanted = f"Targets: first {place:.0%}, first three {places:.0%}, confident and wrong at most {most:.0%}"
    return f"\n{wanted}. Alone: {targets_met(alone)}. Behind a healthy start: {targets_met(inside)}."


def targets_met(answers: Sequence[Named]) -> str:
    """`all three met`, or which were missed."""
    checks = {
        "first place": answer_share(answers, is_first) >= TARGETS[0],
        "first three": answer_share(answers, in_first_three) >= TARGETS[1],
        "confident and wrong": answer_share(answers, is_wrong) <= TARGETS[2],
    }
    missed = [name for name, good in checks.items() if not good]
    return f"**missed: {', '.join(missed)}**" if missed else "all three met"


def tables(answers: Sequence[Named]) -> str:
    kinds = sorted({answer.case.kind for answer in answers})
    programs = [a for a in answers if a.case.kind != "prose"]
    rows = [answer_row("all", answers), answer_row("all but prose", programs)]
    return "\n".join([HEAD, *rows, *(answer_row(kind, [a for a in answers if a.case.kind == kind]) for kind in kinds)])


def answer_row(title: str, answers: Sequence[Named]) -> str:
    cells = [share_text(answers, test) for test in (is_first, in_first_three, family, is_wrong, silent)]
    return f"| {title} | {len(answers)} | {' | '.join(cells)} |"


def families(answers: Sequence[Named]) -> list[str]:
    return sorted({answer.case.family for answer in answers})


def misses(alone: Sequence[Named], inside: Sequence[Named]) -> list[str]:
    return [describe_miss(a, b) for a, b in zip(alone, inside, strict=True) if not (is_first(a) and is_first(b))]


def describe_miss(alone: Named, inside: Named) -> str:
    told = ", ".join(f"{key} {sure:.2f}" for key, sure, _ in alone.ranked[:3]) or "no known cause"
    where = " (only behind a healthy start)" if is_first(alone) and not is_first(inside) else ""
    return f"| {alone.case.id} | {alone.case.kind} | {alone.case.key} | {told}{where} |"


def share_text(answers: Sequence[Named], test: Callable[[Named], bool]) -> str:
    return f"{answer_share(answers, test):.1%}" if answers else "-"


def answer_share(answers: Sequence[Named], test: Callable[[Named], bool]) -> float:
    return sum(map(test, answers)) / len(answers) if answers else 0.0


def is_first(answer: Named) -> bool:
    return answer.place == 1


def in_first_three(answer: Named) -> bool:
    return answer.place is not None and answer.place <= 3


def family(answer: Named) -> bool:
    named = FAMILY.get(answer.ranked[0][0]) if answer.ranked else ""
    return (answer.family or named) == answer.case.family


def is_wrong(answer: Named) -> bool:
    return answer.confident_and_wrong


def silent(answer: Named) -> bool:
    return not answer.ranked
