"""Options of the engine that is on a node, asked of its own parser: half a minute of one CPU, no model is loaded."""

import re
from shlex import quote

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.values import dataclass
from sparkwright.facts.engine_image import Question
from sparkwright.facts.fact import not_understood, sections
from sparkwright.remote.host import script, script_texts
from sparkwright.remote.staging import copied_tag

_sh = script_texts(__name__)
_SECONDS = 400.0
_DIGEST = re.compile(r"(?:sha256:)?[0-9a-f]{64}", re.ASCII)
_HOME = 'own=$(x "$1"); program=$(x "$2"); shift 2; set -- "$own" "$program" "$@"\n'


@dataclass(frozen=True, slots=True)
class OptionsAnswer:
    """text: JSON of the program that asked, or a help text. build: digest of image or program, '' where unknown.

    All of it is as the node sent it, and is checked where it is read.
    """

    text: str
    help: bool = False
    build: str = ""


def options_of_node(engine: str, question: Question, program: str) -> Command:
    """Sections answer or help, said, end; nothing where the engine is not there. program: the one that asks."""
    ask = _sh("help") if question.says_version else _sh("ask")
    text = f'{_HOME}PROGRAM={quote(program)}\nask() (\n{ask})\n{_sh("node")}asked "$@"\n'
    return script(text, *_words(engine, question), timeout=_SECONDS)


def options_of_image(image: str, engine: str, question: Question, program: str) -> Command:
    """The same of an image, with the section image: its id. Nothing where there is no such image."""
    ask = _sh("help") if question.says_version else _sh("ask")
    gpus = "--gpus all" if question.says_version else ""
    words = (image, copied_tag(image), gpus, ask, *_words(engine, question))
    return script(f"PROGRAM={quote(program)}\n{_sh('node', 'image')}", *words, timeout=_SECONDS)


def _words(engine: str, question: Question) -> tuple[str, ...]:
    return (question.own, question.program, engine, question.packages[0] if question.packages else "")


def parse(done: Completed) -> OptionsAnswer | Unknown:
    parts = sections(done.stdout)
    said = (parts.get("said", "").splitlines() or [""])[-1][:200]
    if "end" not in parts:
        why = "it is not there" if "answer" not in parts else "its answer is too long"
        return Unknown(said, why) if done.ok else not_understood(done, "the engine's parser")
    build = next((parts[name] for name in ("image", "build") if _DIGEST.fullmatch(parts.get(name, ""))), "")
    text = parts.get("answer") or parts.get("help", "")
    if not text:
        return Unknown(said, "its parser gave no answer")
    return OptionsAnswer(text, "help" in parts, build)
