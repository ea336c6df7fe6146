"""Made-up JSON: records as an interface would list them, one object a line."""

import json
from random import Random

from sparkwright.loadgen import words


def small(dice: Random) -> str:
    """An object of a few plain values."""
    record = {
        "name": dice.choice(words.NAMES),
        "place": dice.choice(words.PLACES),
        "count": dice.randrange(1000),
        "open": dice.random() < 0.5,
    }
    return json.dumps(record)


def record(dice: Random) -> str:
    """An object with lists and an object inside."""
    found = {
        "id": f"{dice.choice(words.THINGS)}-{dice.randrange(100, 1000)}",
        "owner": {"name": dice.choice(words.NAMES), "role": dice.choice(words.PEOPLE)},
        "title": f"{dice.choice(words.KINDS)} {dice.choice(words.THINGS)}",
        "tags": dice.sample(words.IDEAS, dice.randrange(2, 5)),
        "price": round(dice.uniform(1, 500), 2),
        "history": [
            {"state": dice.choice(words.DID), "hour": dice.randrange(24), "ok": dice.random() < 0.8}
            for _ in range(dice.randrange(1, 4))
        ],
        "next": None if dice.random() < 0.3 else dice.randrange(10_000),
    }
    return json.dumps(found)


def records(dice: Random, size: int) -> str:
    """Objects, one a line, at least `size` words."""
    found, count = [], 0
    while count < size:
        found.append(record(dice) + "\n")
        count += len(found[-1].split())
    return "".join(found)
