"""Generated texts that are legitimately repetitive, and true loops, each from a seed."""

import base64
import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

WORDS = tuple(Path(__file__).with_name("words.txt").read_text().split())
Text = Callable[[random.Random], str]


def _sentence(dice: random.Random, least: int = 5, most: int = 14) -> str:
    return " ".join(dice.choices(WORDS, k=dice.randint(least, most))).capitalize() + "."


def markdown_table(dice: random.Random) -> str:
    heads = dice.sample(WORDS, dice.randint(3, 7))
    rows = [
        [str(dice.choice(("ok", "ok", "ok", "yes", "-", dice.randint(0, 99)))) for _ in heads]
        for _ in range(dice.randint(40, 400))
    ]
    lines = [heads, ["---"] * len(heads), *([f"node-{n}", *row[1:]] for n, row in enumerate(rows))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def csv_numbers(dice: random.Random) -> str:
    return "\n".join(
        ",".join(str(dice.randint(0, 9)) for _ in range(dice.randint(4, 4))) for _ in range(dice.randint(200, 3000))
    )


def csv_constant_columns(dice: random.Random) -> str:
    return "\n".join(f"{n},spark-{n % 2 + 1},ok,0,0,0,{dice.randint(40, 90)}" for n in range(dice.randint(200, 2000)))


def json_rows(dice: random.Random) -> str:
    rows = [
        {"id": n, "name": f"user{n}", "active": True, "role": "client", "tags": []}
        for n in range(dice.randint(50, 600))
    ]
    return json.dumps(rows, indent=dice.choice((None, 2)))


def json_nulls(dice: random.Random) -> str:
    return json.dumps([dice.choice((None, None, None, 0, False)) for _ in range(dice.randint(200, 3000))])


def python_getters(dice: random.Random) -> str:
    names = [f"{dice.choice(WORDS)}_{n}" for n in range(dice.randint(30, 150))]
    return "\n".join(f"    @property\n    def {name}(self) -> int:\n        return self._{name}\n" for name in names)


def switch_cases(dice: random.Random) -> str:
    return "\n".join(
        f"    case {n}:\n        return {dice.choice(WORDS).upper()}_{n};" for n in range(dice.randint(50, 500))
    )


def sql_inserts(dice: random.Random) -> str:
    return "\n".join(
        f"INSERT INTO users (id, name, role) VALUES ({n}, 'user{n}', 'client');" for n in range(dice.randint(50, 500))
    )


def html_rows(dice: random.Random) -> str:
    return "\n".join(f"<tr><td>{n}</td><td>ok</td><td>0</td></tr>" for n in range(dice.randint(100, 600)))


def poem_with_refrain(dice: random.Random) -> str:
    refrain = "\n".join(_sentence(dice) for _ in range(dice.randint(2, 4)))
    verses = ("\n".join(_sentence(dice) for _ in range(4)) for _ in range(dice.randint(6, 30)))
    return "\n\n".join(f"{verse}\n\n{refrain}" for verse in verses)


def chorus(dice: random.Random) -> str:
    line = f"{dice.choice(WORDS).capitalize()}, {dice.choice(WORDS)}, {dice.choice(WORDS)}!"
    return "\n\n".join("\n".join([line] * dice.randint(4, 12) + [_sentence(dice)]) for _ in range(dice.randint(5, 20)))


def base64_text(dice: random.Random) -> str:
    data = dice.randbytes(dice.randint(200, 6000)) + bytes(dice.randint(0, 6000)) + dice.randbytes(200)
    return base64.encodebytes(data).decode()


def hex_dump(dice: random.Random) -> str:
    zero = " ".join(["00"] * 16)
    rows = (
        zero if dice.random() < 0.8 else " ".join(f"{dice.randrange(256):02x}" for _ in range(16))
        for _ in range(dice.randint(50, 500))
    )
    return "\n".join(f"{n * 16:08x}  {row}" for n, row in enumerate(rows))


def heartbeat_log(dice: random.Random) -> str:
    at, lines = dice.randint(0, 80000), []
    for _ in range(dice.randint(100, 1500)):
        at += dice.choice((1, 1, 1, 5))
        lines.append(
            f"{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02} INFO heartbeat of spark-{dice.randint(1, 2)} ok"
        )
    return "\n".join(lines)


def access_log(dice: random.Random) -> str:
    return "\n".join(
        f'10.0.0.{dice.randint(1, 9)} - - "POST /v1/chat/completions HTTP/1.1" 200 {dice.randint(100, 9000)}'
        for _ in range(dice.randint(100, 1000))
    )


def test_log(dice: random.Random) -> str:
    return "\n".join(
        f"tests/unit/test_{dice.choice(WORDS)}.py::test_{dice.choice(WORDS)}_{n} PASSED [{n // 5:3}%]"
        for n in range(dice.randint(100, 500))
    )


def counting(dice: random.Random) -> str:
    join = dice.choice((" ", "\n", ", "))
    return join.join(map(str, range(1, dice.randint(200, 4000))))


def matrix(dice: random.Random) -> str:
    size = dice.randint(8, 64)
    one = dice.choice((0, 1))
    rows = [[one if a == b else 0 for a in range(size)] for b in range(size)]
    return "[" + ",\n ".join(str(row) for row in rows) + "]"


def multiplication(dice: random.Random) -> str:
    size = dice.randint(10, 30)
    return "\n".join(f"{a} x {b} = {a * b}" for a in range(1, size) for b in range(1, size))


def boxed_words(dice: random.Random) -> str:
    wide = dice.randint(20, 120)
    rows = ("|" + dice.choice(WORDS).center(wide) + "|" for _ in range(dice.randint(10, 60)))
    return "\n".join(f"+{'-' * wide}+\n{row}" for row in rows)


def numbered_steps(dice: random.Random) -> str:
    return "\n".join(f"{n}. {_sentence(dice)}" for n in range(1, dice.randint(40, 300)))


def checklist(dice: random.Random) -> str:
    return "\n".join(f"- [ ] Check node {n}: memory, clock, link" for n in range(1, dice.randint(20, 150)))


def yaml_list(dice: random.Random) -> str:
    return "\n".join(f"- name: spark-{n}\n  user: ai\n  gpu: GB10\n  labels: []" for n in range(dice.randint(20, 300)))


def dialogue(dice: random.Random) -> str:
    return "\n".join(
        f"{who}: {dice.choice(('Yes.', 'No.', 'Maybe.', _sentence(dice, 2, 4)))}"
        for _ in range(dice.randint(100, 400))
        for who in ("A", "B")
    )


def genome(dice: random.Random) -> str:
    tract = "".join(dice.choices("ACGT", k=dice.randint(500, 4000))) + dice.choice(("CAG", "A", "GATA")) * dice.randint(
        20, 300
    )
    return "\n".join((tract * 1)[at : at + 60] for at in range(0, len(tract), 60))


LEGITIMATE: Mapping[str, Text] = {
    one.__name__: one
    for one in (
        *(markdown_table, csv_numbers, csv_constant_columns, json_rows, json_nulls, python_getters, switch_cases),
        *(
            sql_inserts,
            html_rows,
            poem_with_refrain,
            chorus,
            base64_text,
            hex_dump,
            heartbeat_log,
            access_log,
            test_log,
            counting,
        ),
        *(matrix, multiplication, boxed_words, numbered_steps, checklist, yaml_list, dialogue, genome),
    )
}


def _start(dice: random.Random) -> str:
    return " ".join(_sentence(dice) for _ in range(dice.randint(0, 30))) + "\n"


def looped(kind: str, dice: random.Random) -> tuple[str, str]:
    """The text before the loop, and 200 kB of the loop itself."""
    if kind == "word":
        unit = f" {dice.choice(WORDS)}"
    elif kind == "sentence":
        unit = f" {_sentence(dice)}"
    elif kind == "paragraph":
        unit = "\n\n" + " ".join(_sentence(dice) for _ in range(dice.randint(4, 24)))
    elif kind == "code":
        unit = f"    {dice.choice(WORDS)}.append({dice.choice(WORDS)})\n    return {dice.choice(WORDS)}\n"
    elif kind == "tool call":
        unit = json.dumps({"path": f"src/{dice.choice(WORDS)}.py", "text": _sentence(dice)})
    elif kind == "blanks":
        unit = dice.choice((" ", "\n", "\t", "\n  "))
    elif kind == "signs":
        unit = dice.choice(("!", "-", "0, ", "=", "\u3002", "A"))
    elif kind == "chinese":
        unit = "".join(chr(0x4E00 + dice.randrange(2000)) for _ in range(dice.randint(4, 40)))
    elif kind == "counter":
        words = _sentence(dice)
        return _start(dice), "".join(f"{n}. {words}\n" for n in range(1, 200_000 // len(words)))
    else:
        words = " ".join(_sentence(dice) for _ in range(3))
        return _start(dice), "".join(f"Wait, attempt {n} failed. {words}\n\n" for n in range(1, 200_000 // len(words)))
    return _start(dice), unit * (200_000 // len(unit))


LOOPS = ("word", "sentence", "paragraph", "code", "tool call", "blanks", "signs", "chinese", "counter", "attempts")


def samples(seed: int, each: int) -> Iterator[tuple[str, str]]:
    """(name, text) of generated legitimate texts."""
    for name, make in LEGITIMATE.items():
        for number in range(each):
            yield f"{name}-{seed}-{number}", make(random.Random(f"{name} {seed} {number}"))
