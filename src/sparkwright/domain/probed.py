"""The answers and settings of an endpoint, collected before any measurement."""

from collections.abc import Mapping

from sparkwright.domain.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's answer. headers: names in lower case. body: all of it, also of a stream. seconds: until its end.

    first: seconds until the body's first byte.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    seconds: float = 0.0
    first: float = 0.0


@dataclass(frozen=True, slots=True)
class Probed:
    """url: the server's root, without `/v1`. models: all that it serves. root: file or hub id behind the name.

    engine: as recipes call it, '' when unknown. context: most tokens of a request, 0 when unknown.
    usage, continuous, cached: whether a stream has usage at its end, in every chunk, and cached tokens in it.
    reasoning: whether its tokens came as reasoning. thinking: whether it accepts `chat_template_kwargs`.
    ignore_eos: whether it accepts that. metrics: path of its figures, '' without. names: word of
    engines/data/engines -> name on that page. seconds: until the first of the probe's tokens.
    """

    url: str
    model: str
    models: tuple[str, ...] = ()
    root: str = ""
    engine: str = ""
    engine_version: str = ""
    context: int = 0
    usage: bool = False
    continuous: bool = False
    cached: bool = False
    reasoning: bool = False
    thinking: bool = False
    ignore_eos: bool = False
    tokenize: bool = False
    metrics: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    simulated: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """The command a rank was really started with. image: its digest, else its id on the node; '' for a process."""

    argv: tuple[str, ...]
    image: str = ""
