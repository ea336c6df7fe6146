"""A dialect's web server: the OpenAI routes that all share, metrics under the engine's names, and its own routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sparkwright.simulator.answers import CHAT, TEXT, Answers
from sparkwright.simulator.asked import ApiError, json_response
from sparkwright.simulator.metrics import Metrics
from sparkwright.simulator.server import Handler, Shell, listed
from sparkwright.simulator.service import Core

MARK = (
    "# HELP sparkwright_simulated 1: these figures come from sparkwright's simulator of {engine}, no model runs.\n"
    "# TYPE sparkwright_simulated gauge\nsparkwright_simulated 1.0\n"
)


class SiteApi(NamedTuple):
    """The answers and refusals that an engine sends in place of vLLM's. counts_cached: cached tokens are in its
    usage."""

    answered: Callable[[Response, Callable[[str], int]], Response]
    refused: Callable[[ApiError], Response]
    too_long: Callable[[int, int, int], ApiError]
    counts_cached: bool


@dataclass(slots=True)
class SimulatedSite:
    """names, labels: of the engine's metrics (dialect.Dialect). api: where its answers are not vLLM's. up: it has
    logged that it is ready."""

    core: Core
    engine: str
    names: Mapping[str, str]
    labels: Callable[[str], str]
    api: SiteApi | None = None
    up: bool = False
    answers: Answers = field(init=False)

    def __post_init__(self) -> None:
        mark = f"{self.engine.lower().replace(' ', '-')}-simulated"
        rules, details = self.core.rules(), bool(self.api and self.api.counts_cached)
        rules = replace(rules, any_name=True, too_long=self.api.too_long) if self.api else rules
        self.answers = Answers(self.core.engine, rules, mark, details, self.core.rank.voices.api)

    async def health(self, request: Request) -> Response:
        return Response(status_code=200 if self.up and not self.core.engine.dead else 503)

    async def models(self, request: Request) -> Response:
        return json_response(listed(self.answers.rules, str(self.core.rank.args.model)))

    async def scrape(self, request: Request) -> Response:
        """The metrics that the engine has, in its own names."""
        text = MARK.format(engine=self.engine) + "".join(self._lines(self.core.metrics))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    def _lines(self, metrics: Metrics) -> Iterator[str]:
        metrics.refresh()
        for theirs, ours in self.names.items():
            if ours in metrics.families:  # speculation's are there only while it is on
                yield from self._family([line.replace(ours, theirs) for line in metrics.families[ours].lines()])

    def _family(self, lines: list[str]) -> Iterator[str]:
        """Samples that differ by a label which this engine lacks are one."""
        sums = dict[str, float]()
        for line in (line for line in lines if "_created" not in line):
            if line.startswith("#"):
                yield line + "\n"
                continue
            name, _, value = self.labels(line).rpartition(" ")
            sums[name] = sums.get(name, 0.0) + float(value)
        yield from (f"{name} {value}\n" for name, value in sums.items())

    def app(self, routes: list[Route], guarded: Callable[[str], bool]) -> ASGIApp:
        posts = [(CHAT, self.answers.chat), (TEXT, self.answers.complete)]
        shared = [Route(path, checked(handler, self.api, self._tokens), methods=["POST"]) for path, handler in posts]
        plain = Starlette(routes=[*routes, Route("/v1/models", self.models), *shared])
        keys = (*self.core.rank.settings.api_keys, *(self.core.rank.args.api_key or ()))
        return Shell(plain, self.core.metrics, keys, guarded)

    def _tokens(self, text: str) -> int:
        return len(self.answers.rules.tokenizer.encode(text))


def checked(handler: Handler, api: SiteApi | None, tokens: Callable[[str], int]) -> Handler:
    async def run(request: Request) -> Response:
        try:
            response = await handler(request)
        except ApiError as error:
            return api.refused(error) if api else error.response()
        return api.answered(response, tokens) if api else response

    return run
