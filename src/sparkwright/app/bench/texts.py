"""What a workload's prompts are made of, counted by the server's tokenizer before anything is measured."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from sparkwright.app.bench.frames import Measuring
from sparkwright.domain.probed import Probed
from sparkwright.domain.workload import Replay, Single, Text, Workload
from sparkwright.loadgen import texts
from sparkwright.loadgen.profiles import largest, shipped_file
from sparkwright.loadgen.prompts import END, HEAD, SALT, Piece, Stock, Texts, asking
from sparkwright.loadgen.recorded import Recorded, parse
from sparkwright.loadgen.texts import CLOSING, QUESTIONS, blocks, lines
from sparkwright.ports import Tokenizer

_LINES, _PARAGRAPHS, _PARAGRAPH = 64, 48, 60
_BIG = 600  # blocks of a long prompt at most, each as long as it takes

_CHECKED = 1500  # tokens of a text that is counted whole

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Given:
    """What a run brings. salt: other in every run, so that no prompt of an earlier one can come from the cache.

    files: path -> text of what the workload replays (`replayed_paths`).
    """

    salt: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


async def prepare(
    workload: Workload,
    probed: Probed,
    tokenizer: Tokenizer,
    tell: Tell = lambda text: None,
    given: Given | None = None,
) -> Texts:
    """Raises NotReady when the server stops answering, UsageError for a file that cannot be replayed."""
    given = given or Given()
    told = {path: shipped_file(path) or given.files[path] for path in _paths(workload)}
    recorded = {path: await _recorded(tokenizer, path, text, workload) for path, text in told.items()}
    tell("counting the tokens of the prompts' pieces")
    made = replace(await _pieces(workload, probed, tokenizer), salt=given.salt, recorded=recorded)
    measuring = Measuring(workload, made, tokenizer)
    frames = await measuring.frames()
    doubts = (*measuring.doubts, *await _sums(made, tokenizer), *_too_long(made))
    return replace(_fitting(made), frames=frames, doubts=tuple(dict.fromkeys(doubts)))


async def _pieces(workload: Workload, probed: Probed, tokenizer: Tokenizer) -> Texts:
    longest = max((largest(level) for level in workload.levels), default=0)
    bare, least = await tokenizer.counts([HEAD + END, HEAD + END.rstrip()])
    units = await _units(tokenizer, bare)
    stocks = {kind: await _stock(tokenizer, kind, longest) for kind in _kinds(workload)}
    (closing,) = await _counted(tokenizer, [CLOSING])
    return Texts(probed, tokenizer.name, units, bare, least, stocks, closing, exact=tokenizer.exact)


async def _sums(texts: Texts, tokenizer: Tokenizer) -> tuple[str, ...]:
    """A doubt where a text put together has not the tokens of its pieces. An estimate's name says what it is."""
    if not texts.exact:
        return ()
    wanted, found = _CHECKED, []
    for kind in texts.stocks:
        (tokens,) = await tokenizer.counts([asking(texts, wanted, Random(str(kind)), kind)])
        found.append(tokens)
    if all(tokens == wanted for tokens in found):
        return ()
    return (f"texts have not the tokens of their pieces with this tokenizer: {wanted} were {max(found)}",)


def _too_long(texts: Texts) -> tuple[str, ...]:
    lost = [
        f"{len(all_of) - len(fit)} of {len(all_of)} requests of {path} are longer than the server's context of "
        f"{texts.probed.context} tokens and left out"
        for path, all_of in texts.recorded.items()
        if len(fit := _within(texts, all_of)) < len(all_of)
    ]
    return tuple(lost)


def _fitting(texts: Texts) -> Texts:
    return replace(texts, recorded={path: _within(texts, all_of) for path, all_of in texts.recorded.items()})


def _within(texts: Texts, recorded: tuple[Recorded, ...]) -> tuple[Recorded, ...]:
    """Those that fit into the server's context, as far as their lengths are known."""
    most = texts.probed.context
    return tuple(one for one in recorded if not most or one.input_tokens + one.output_tokens <= most)


def replayed_paths(workload: Workload) -> tuple[str, ...]:
    """The user's files, whose text `prepare` wants."""
    return tuple(path for path in _paths(workload) if shipped_file(path) is None)


def _paths(workload: Workload) -> Iterable[str]:
    return dict.fromkeys(level.shape.path for level in workload.levels if isinstance(level.shape, Replay))


async def _recorded(tokenizer: Tokenizer, path: str, text: str, workload: Workload) -> tuple[Recorded, ...]:
    """Answers that are known as text only are counted: the new answers are made as long."""
    limits = [level.shape.limit for level in workload.levels if isinstance(level.shape, Replay)]
    found = parse(text, path, 0 if 0 in limits else max(limits))
    answers = [one.answer for one in found if one.answer and not one.output_tokens]
    counts = iter(await tokenizer.counts(answers))
    return tuple(replace(one, output_tokens=next(counts)) if one.answer else one for one in found)


def _kinds(workload: Workload) -> tuple[Text, ...]:
    wanted = {level.shape.text for level in workload.levels if isinstance(level.shape, Single)}
    return tuple(kind for kind in Text if kind in wanted | {Text.PROSE})


async def _units(tokenizer: Tokenizer, bare: int) -> tuple[str, ...]:
    """Words of one token each; letters where the vocabulary has no such words. An estimate takes them all for such."""
    if not tokenizer.exact:
        return tuple(f" {word}" for word in texts.COMMON)
    for candidates in (texts.COMMON, texts.LETTERS):
        spaced = [f" {word}" for word in candidates]
        counts = await tokenizer.counts([HEAD + word + END for word in spaced])
        good = tuple(word for word, count in zip(spaced, counts, strict=True) if count == bare + 1)
        if len(good) >= SALT:
            return good
    return tuple(f" {word}" for word in texts.LETTERS)


async def _stock(tokenizer: Tokenizer, kind: Text, longest: int) -> Stock:
    sizes = [lines(kind, "0", _LINES), blocks(kind, "0", _PARAGRAPHS, _PARAGRAPH)]
    if longest > 4000:
        # Half a token a word at least: so many blocks of so many words are longer than the longest prompt.
        count = min(_BIG, longest // 400)
        sizes.append(blocks(kind, "big", count, max(longest // count, 200)))
    counted = [await _counted(tokenizer, found) for found in reversed(sizes)]
    (question,) = await _counted(tokenizer, [QUESTIONS[kind]])
    return Stock(tuple(counted), question)


async def _counted(tokenizer: Tokenizer, found: Iterable[str]) -> tuple[Piece, ...]:
    texts = list(found)
    return tuple(Piece(text, count) for text, count in zip(texts, await tokenizer.counts(texts), strict=True))
