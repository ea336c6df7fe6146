"""Answers to easy questions: language with the known answer passes, soup does not, and the rest is not decided."""

from sparkwright.evals.coherence import Coherence, judge_answers, questions, why_soup
from unit.for_each import for_each

HEALTHY = ["The capital of France is Paris.", "2 + 3 = 5", "Thursday"]
THINKS = "Okay, the user asks for the capital of France. That is Paris, of course. I should answer with one word."
MIXED = "ponд蕎 rowspan Изgrep ताज़ा 없습니다 enumerable ثم klär 的な glob ของ zát Ἀθ"
WORDS = "rowspan kernel glob enumerable yacht pivot lantern cobalt tensor mango vortex quilt zebra prism"
FUSED = "on are the andmidesgatedgateddenserressesdenseense on in lecturedlandittyrespeciallymaditi is the other on"
LOOP = "the sun is the sun is the sun is the sun is the sun is the sun is the sun is the sun is"

ECHO = "What is the capital of France? Answer with one word.<|im_end|>\n<|im_start|>admin\n" * 5 + "What is the cap"
TURNS = "<|im_end|>\n<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n" * 8
LINES = "The answer is the number of the day.\n" * 9 + "The answer is"


def judged(*texts):
    return judge_answers(list(zip(questions(), texts, strict=True))).coherence


@for_each(
    "texts",
    [
        HEALTHY,
        [THINKS, "five", "It is Wednesday."],
        ["Paris", "", ""],
        ["paris", MIXED, "Friday"],
        ["巴黎", "五", "星期四"],
    ],
)
def test_language_with_a_known_answer_is_coherent(texts):
    """A weak model errs, a model that thinks does not come to its end, and one answer may be odd."""
    assert judged(*texts) is Coherence.COHERENT


@for_each(
    "texts",
    [
        [MIXED] * 3,
        [WORDS] * 3,
        [FUSED] * 3,
        [LOOP] * 3,
        ["ibular" * 30] * 3,
        ["!!!!!!!!!!"] * 3,
        [WORDS, MIXED, ""],
        ["Paris", MIXED, WORDS],
        ["rowspan kernel glob enumerable yacht.\n" * 8] * 3,
        ["<unused49>" * 40] * 3,
        ["<|im_end|>" * 40] * 3,
        ["the.\nis the.\n" * 20] * 3,
        ["What is the capital of France? " + LOOP] * 3,
    ],
)
def test_soup_is_garbled(texts):
    """Scripts mixed, words without a sentence, a loop, one sign: also where one answer came out right by chance."""
    assert judged(*texts) is Coherence.GARBLED


@for_each("text", [ECHO, TURNS, LINES, "What is 2 + 3? Answer with the number only. " * 9])
def test_sentences_over_and_over_are_unknown(text):
    """A base model at temperature 0 repeats sentences of its prompt, or its own: it is well, and not called garbled."""
    assert judged(text, text, text) is Coherence.UNKNOWN


@for_each("texts", [["", "", ""], ["Bonjour, comment allez-vous aujourd'hui ?", "six", "Friday"], [MIXED, "six", "no"]])
def test_what_proves_nothing_is_unknown(texts):
    """No text, a language that the questions are not in, wrong answers: not called garbled."""
    assert judged(*texts) is Coherence.UNKNOWN


@for_each(
    "text",
    [
        THINKS,
        "東京は日本の首都です。カタカナも使います。ABCも使う。",
        "Столица Франции - Париж, крупнейший город страны и её культурный центр",
        "Die Donaudampfschifffahrtsgesellschaft in der Stadt ist eine of the oldest in the world, and it is "
        "still there with all of its ships on the river, so they have not gone",
        "def add(a, b):\n    return a + b  # the sum of the two",
    ],
)
def test_no_language_is_soup(text):
    """Other scripts and code are no defect."""
    assert why_soup(text) == ""


def test_a_number_is_not_part_of_another():
    """15 and 2.5 are not the answer 5."""
    known = questions()[1].known
    assert not any(each.search(text) for each in known for text in ("15", "2.5", "52", "1,5"))


def test_a_long_answer_costs_no_more():
    """The judged text is bounded."""
    assert judged("Paris " + "x" * 10_000_000, "5", "Thursday") is Coherence.COHERENT
