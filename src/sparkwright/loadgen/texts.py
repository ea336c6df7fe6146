"""Natural-looking text of three kinds, made here: the same for the same seed, never the same twice in a prompt.

Every piece begins with a letter or a bracket and ends with a line break. Tokenizers cut there, whatever follows, so the
tokens of pieces one after the other are the sum of their tokens.
"""

import json
from collections.abc import Callable
from random import Random

from sparkwright.domain.workload import Text


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


PEOPLE = _words(
    "engineer teacher captain doctor farmer baker painter writer judge pilot nurse driver clerk miner sailor tailor "
    "merchant gardener librarian carpenter musician reporter student ranger mechanic architect surgeon astronomer "
    "translator inspector shepherd potter weaver blacksmith botanist photographer editor chemist plumber watchmaker"
)
NAMES = _words(
    "Anna Peter Maria Jonas Clara Simon Elena Victor Laura Martin Sofia Daniel Alice Robert Julia Thomas Helen Oscar "
    "Irene Walter Nora Felix Emma Hugo Rosa Albert Vera Leon Greta Marcus Ida Samuel Lucy Arthur Olga Henry"
)
PLACES = _words(
    "harbor market library station museum valley village factory garden theater airport bridge castle island forest "
    "kitchen office hospital school tower warehouse workshop studio cellar courtyard lighthouse orchard quarry mill "
    "port canal railway cathedral farm clinic laboratory archive barn dock square"
)
THINGS = _words(
    "letter machine report map engine window table clock bottle camera ladder wheel basket lantern notebook painting "
    "rope mirror drum violin hammer compass bell key coin blanket kettle saddle sail lens pump wire battery magnet "
    "ticket ledger parcel statue carpet contract blueprint timetable recipe photograph instrument cable generator"
)
IDEAS = _words(
    "plan question answer reason method theory promise warning agreement mistake rumor schedule budget proposal custom "
    "law habit price measurement result experiment forecast debt tradition rule secret risk memory story argument "
    "delay journey season repair lesson discovery election harvest flood strike"
)
KINDS = _words(
    "old new small large quiet bright heavy narrow simple strange careful broken early late warm cold empty famous "
    "local wooden gray green yellow blue long short distant useful fragile modern ancient steady rough clever honest "
    "silent crowded hidden ordinary expensive temporary reliable unusual faint generous stubborn"
)
DID = _words(
    "found moved carried repaired painted described opened closed measured sold bought borrowed counted cleaned hid "
    "noticed copied praised examined dropped packed delivered returned replaced drew studied forgot mentioned "
    "inspected polished collected exchanged recorded photographed compared restored guarded abandoned remembered"
)
WENT = _words(
    "walked traveled hurried returned wandered sailed drove climbed waited worked slept rested listened argued talked "
    "stayed stopped arrived lived gathered danced laughed studied marched camped"
)
HOW = _words(
    "slowly quickly quietly carefully suddenly often rarely calmly proudly gladly finally gently badly openly firmly "
    "nervously patiently politely reluctantly cheerfully secretly together alone again twice"
)
WHEN = _phrases(
    "in the morning|at noon|after the storm|before dinner|during the winter|on the second day|late in autumn|"
    "at the end of the week|some years ago|just before midnight|when the rain stopped|as soon as the doors opened|"
    "on a Sunday in spring|after a long silence|by the middle of June|while the others slept|at the first light|"
    "once the work was done|on the way home|long after the war|in the same hour|between two meetings"
)
WHERE = _phrases(
    "near the river|behind the church|on the hill|across the border|under the bridge|at the edge of the town|"
    "by the sea|along the old road|in the north|on the upper floor|next to the well|inside the walls|"
    "beyond the last houses|at the foot of the mountain|in the back room|on the other side of the bay|"
    "between the two rivers|above the shop"
)
NUMBERS = _words("two three four five six seven eight nine ten twelve fifteen twenty thirty forty fifty sixty ninety")
VERBS = _words("load parse merge count find check build send read write split sort group filter update remove")
FIELDS = _words("size name count total price weight index state owner level start end limit color length")

# Words that stand alone, each of at most six letters: with a space in front, one token in nearly every vocabulary.
COMMON = _words(
    "time year people way day man thing woman life child world school state family group hand part place case week "
    "system point number night water room mother area money story fact month right study book eye job word issue side "
    "kind head house friend father power hour game line end member law car city name team minute idea body back "
    "parent face others level office door health person art war party result change reason moment air force "
    "food order price field table music street paper space ground form event matter center stage model road wall "
    "light sound voice color bank letter stone river hill ship wind summer winter spring garden green blue black "
    "white small large long short high early young old new good great little public local"
)
LETTERS = _words("a b c d e f g h i j k l m n o p q r s t u v w x y z")


_FRAMES = (
    "{When}, the {kind} {person} {did} the {thing} {where}.",
    "{Name} {did} the {kind} {thing} that the {person} from the {place} had {done}.",
    "The {person} {went} {how} to the {place}, and nobody asked about the {idea}.",
    "There were {number} {kind} boxes in the {place}, but only one of them held a {thing}.",
    '"We cannot keep this {thing}," said {name}, "because the {idea} was never ours."',
    "Although the {place} was {kind}, {name} {did} every {thing} {where}.",
    "Nobody in the {place} remembered the {idea} until {name} {did} the {kind} {thing}.",
    "The {idea} of the {person} was {kind}, and yet it changed how people spoke of the {place}.",
    "{Name} and {other} {went} {where} and talked about the {idea} for {number} hours.",
    "If the {person} had {done} the {thing} {when}, the {idea} would have been {kind}.",
    "It took {number} days before the {kind} {thing} from the {place} was {done}.",
    "{When}, {name} {went} {where} with a {thing} and a {kind} {idea}.",
    "The road to the {place} was {kind}, so the {person} {went} {how} and arrived {when}.",
    "What the {person} called a {idea} was, for {name}, a {kind} reason to leave the {place}.",
    "Every {thing} {where} had been {done} by the same {person}, who {went} {how}.",
    "{Name} asked whether the {idea} was {kind}, and the {person} {did} the {thing} instead of answering.",
    "They {did} {number} copies of the {thing}, left the {kind} ones {where}, and {went} back {when}.",
    "A {kind} {idea} is worth more than a {thing}, as the {person} of the {place} used to say.",
    "Since the {idea}, {name} had {done} no {thing}, and the {place} stayed {kind}.",
    "The {thing} was {kinder} than the {person} expected, and {number} people {did} it {how}.",
    "{When}, a {person} {went} {where}; {name} {did} the {thing} and thought of the {idea}.",
    "Between the {place} and the {other_place} lay {number} fields, a {kind} {thing}, and very little else.",
)


def sentence(dice: Random) -> str:
    frame = dice.choice(_FRAMES)
    name, other = dice.sample(NAMES, 2)
    place, other_place = dice.sample(PLACES, 2)
    when, did = dice.choice(WHEN), dice.choice(DID)
    kind = dice.choice(KINDS)
    return frame.format(
        person=dice.choice(PEOPLE),
        name=name,
        Name=name,
        other=other,
        place=place,
        other_place=other_place,
        thing=dice.choice(THINGS),
        idea=dice.choice(IDEAS),
        kind=kind,
        kinder=f"more {kind}",
        did=did,
        done=_PARTICIPLES.get(did, did),
        went=dice.choice(WENT),
        how=dice.choice(HOW),
        when=when,
        When=when[0].upper() + when[1:],
        where=dice.choice(WHERE),
        number=dice.choice(NUMBERS),
    )


_PARTICIPLES = {"hid": "hidden", "drew": "drawn", "forgot": "forgotten"}


def paragraph(dice: Random, size: int) -> str:
    """Sentences on one line, at least `size` words."""
    found, count = [], 0
    while count < size:
        found.append(sentence(dice))
        count += len(found[-1].split())
    return " ".join(found) + "\n"


def small(dice: Random) -> str:
    """An object of a few plain values."""
    record = {
        "name": dice.choice(NAMES),
        "place": dice.choice(PLACES),
        "count": dice.randrange(1000),
        "open": dice.random() < 0.5,
    }
    return json.dumps(record)


def record(dice: Random) -> str:
    """An object with lists and an object inside."""
    found = {
        "id": f"{dice.choice(THINGS)}-{dice.randrange(100, 1000)}",
        "owner": {"name": dice.choice(NAMES), "role": dice.choice(PEOPLE)},
        "title": f"{dice.choice(KINDS)} {dice.choice(THINGS)}",
        "tags": dice.sample(IDEAS, dice.randrange(2, 5)),
        "price": round(dice.uniform(1, 500), 2),
        "history": [
            {"state": dice.choice(DID), "hour": dice.randrange(24), "ok": dice.random() < 0.8}
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


_PLAIN = [word for word in THINGS + IDEAS if len(word) < 9]
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
    return f"{a}_{b} = {dice.choice(VERBS)}_{a}({b!r}, {dice.choice(FIELDS)}={dice.randrange(1, 100)})"


def function(dice: Random) -> str:
    """A function of three to six steps and the empty lines after it."""
    noun, arg = dice.sample(_PLAIN, 2)
    name = f"{dice.choice(VERBS)}_{noun}_{dice.choice(FIELDS)}"
    steps = "".join(_step(dice, arg) for _ in range(dice.randrange(3, 7)))
    doc = f"{dice.choice(VERBS).capitalize()} the {dice.choice(KINDS)} {noun} of each {arg}."
    head = f"def {name}({arg}, {dice.choice(FIELDS)}={dice.randrange(10)}):"
    return f'{head}\n    """{doc}"""\n{steps}    return {arg}\n\n\n'


def _step(dice: Random, arg: str) -> str:
    a, b = dice.sample(_PLAIN, 2)
    return dice.choice(_STEPS).format(
        a=a,
        b=b,
        arg=arg,
        n=dice.randrange(1, 100),
        field=dice.choice(FIELDS),
        verb=dice.choice(VERBS),
        quoted=repr(f"{dice.choice(PLACES)}_{b}"),
        message=repr(f"{dice.choice(KINDS)} {a}: %s of %d"),
        kind=dice.choice(KINDS),
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


Maker = Callable[[Random, int], str]

_BLOCKS: dict[Text, Maker] = {Text.PROSE: paragraph, Text.CODE: module, Text.JSON: records}
_LINES: dict[Text, Callable[[Random], str]] = {
    Text.PROSE: sentence,
    Text.CODE: line,
    Text.JSON: small,
}
# What is asked for at the end. Structured answers are easier to draft, so speculation is measured by what is asked.
QUESTIONS = {
    Text.PROSE: "Write a long and quiet story in plain prose about the people and places above, without any list.",
    Text.CODE: "Write a long Python module with a class and its tests that does what the functions above do.",
    Text.JSON: "Answer only with a JSON array of many objects that have the same keys as the records above.",
}
CLOSING = "Think before every step, use the tools where they help, and keep answers as short as the task allows."


def blocks(kind: Text, seed: str, count: int, size: int) -> tuple[str, ...]:
    """`count` different blocks of at least `size` words each."""
    dice = Random(f"blocks/{kind}/{seed}/{size}")
    return tuple(_BLOCKS[kind](dice, size) for _ in range(count))


def lines(kind: Text, seed: str, count: int) -> tuple[str, ...]:
    """`count` single lines, all different."""
    dice, found = Random(f"lines/{kind}/{seed}"), dict[str, None]()
    while len(found) < count:
        found[_LINES[kind](dice) + "\n"] = None
    return tuple(found)
