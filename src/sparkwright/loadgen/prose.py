"""Made-up English prose: sentences from frames, each a small scene. Reads like prose, and means nothing."""

from random import Random

from sparkwright.loadgen import words

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
    name, other = dice.sample(words.NAMES, 2)
    place, other_place = dice.sample(words.PLACES, 2)
    when, did = dice.choice(words.WHEN), dice.choice(words.DID)
    kind = dice.choice(words.KINDS)
    return frame.format(
        person=dice.choice(words.PEOPLE),
        name=name,
        Name=name,
        other=other,
        place=place,
        other_place=other_place,
        thing=dice.choice(words.THINGS),
        idea=dice.choice(words.IDEAS),
        kind=kind,
        kinder=f"more {kind}",
        did=did,
        done=_PARTICIPLES.get(did, did),
        went=dice.choice(words.WENT),
        how=dice.choice(words.HOW),
        when=when,
        When=when[0].upper() + when[1:],
        where=dice.choice(words.WHERE),
        number=dice.choice(words.NUMBERS),
    )


_PARTICIPLES = {"hid": "hidden", "drew": "drawn", "forgot": "forgotten"}


def paragraph(dice: Random, size: int) -> str:
    """Sentences on one line, at least `size` words."""
    found, count = [], 0
    while count < size:
        found.append(sentence(dice))
        count += len(found[-1].split())
    return " ".join(found) + "\n"
