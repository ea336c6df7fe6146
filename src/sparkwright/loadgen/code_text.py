"""Made-up Python: functions over lists and mappings of named things. It would compile, and does nothing useful."""

from random import Random

from sparkwright.loadgen import words

_PLAIN = [word for word in words.THINGS + words.IDEAS if len(word) < 9]
_STEPS = (
    "    {a} = [item for item in {arg} if item.{field} > {n}]\n",
    "    {a} = {arg}.get({quoted}, {n})\n",
    "    for index, {a} in enumerate({arg}):\n        {b}[index] = {a}.{field} * {n}\n",
    "    if {arg} is None or len({arg}) < {n}:\n        return {default}\n",
    "    while {a} < {n}:\n        {a} += {verb}_{b}({arg}, {quoted})\n",
    "    {a}, {b} = {verb}_{b}({arg}), {arg}[{n}:]\n",
    "    try:\n        {a} = int({arg}[{quoted}])\n    except (KeyError, ValueError):\n        {a} = {n}\n",
    "    {a} = sorted({arg}, key=lambda item: item.{field}, reverse={flag})\n",
    "    with open({quoted}) as {b}:\n        {a} = [line.strip() for line in {b}][:{n}]\n",
    "    {a} = {{key: value for key, value in {arg}.items() if value != {n}}}\n",
    "    log.info({message}, {arg}, {n})\n",
    "    # The {kind} {a} comes first: a {b} without {field} is not counted.\n",
)


def line(dice: Random) -> str:
    """One statement at the top level."""
    a, b = dice.sample(_PLAIN, 2)
    return f"{a}_{b} = {dice.choice(words.VERBS)}_{a}({b!r}, {dice.choice(words.FIELDS)}={dice.randrange(1, 100)})"


def function(dice: Random) -> str:
    """A function of three to six steps and the empty lines after it."""
    noun, arg = dice.sample(_PLAIN, 2)
    name = f"{dice.choice(words.VERBS)}_{noun}_{dice.choice(words.FIELDS)}"
    steps = "".join(_step(dice, arg) for _ in range(dice.randrange(3, 7)))
    doc = f"{dice.choice(words.VERBS).capitalize()} the {dice.choice(words.KINDS)} {noun} of each {arg}."
    head = f"def {name}({arg}, {dice.choice(words.FIELDS)}={dice.randrange(10)}):"
    return f'{head}\n    """{doc}"""\n{steps}    return {arg}\n\n\n'


def _step(dice: Random, arg: str) -> str:
    a, b = dice.sample(_PLAIN, 2)
    return dice.choice(_STEPS).format(
        a=a,
        b=b,
        arg=arg,
        n=dice.randrange(1, 100),
        field=dice.choice(words.FIELDS),
        verb=dice.choice(words.VERBS),
        quoted=repr(f"{dice.choice(words.PLACES)}_{b}"),
        message=repr(f"{dice.choice(words.KINDS)} {a}: %s of %d"),
        kind=dice.choice(words.KINDS),
        flag=dice.choice(("True", "False")),
        default=dice.choice(("None", "[]", "{}", "0")),
    )


def module(dice: Random, size: int) -> str:
    """Functions, at least `size` words."""
    found, count = [], 0
    while count < size:
        found.append(function(dice))
        count += len(found[-1].split())
    return "".join(found)
