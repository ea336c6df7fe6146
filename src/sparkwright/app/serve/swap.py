"""Replacement of the running deployment, which is started again if that fails.

Where a supervisor keeps it, that one leaves the nodes to us, keeps the gateway, and starts it again when we fail, also
when this process is killed. Elsewhere this process does it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from sparkwright.app.lease import RENEW_EVERY, holding, remove_supervisor
from sparkwright.app.serve.running import Old, replaced_text, state_of, until_serving, watched
from sparkwright.app.serve.stop import clean_nodes
from sparkwright.app.services import LaunchRequest, Services, api_key, finished
from sparkwright.domain.codec import to_json
from sparkwright.domain.errors import (
    Busy,
    CommandFailed,
    NodeError,
    NotReady,
    SparkwrightError,
    Unreachable,
    UsageError,
)
from sparkwright.domain.live import Ask, Request, Supervised
from sparkwright.domain.plan import Plan
from sparkwright.domain.units import DRAIN_SECONDS, duration
from sparkwright.remote import service

_HEARD, _LOOK_AGAIN = 20.0, 0.5
# Starts the old one again from here; False: without waiting until it is ready.
Again = Callable[[LaunchRequest, bool], Awaitable[None]]


@dataclass
class Swap:
    """One replacement. again: start the old one again if the new one fails. begun: from here on the old one is away.

    drain: seconds that requests under way get. stands_by: its supervisor waits for us. kept: the new one serves.
    successor: a deployment that rests on the same head and is to serve; the supervisor itself looks after it.
    """

    services: Services
    launch_request: LaunchRequest
    old: Old | None = None
    again: bool = True
    restart: Again | None = None
    drain: float = DRAIN_SECONDS
    begun: bool = False
    stands_by: bool = False
    kept: bool = False
    successor: str = ""
    _since: float = 0.0
    _renewing: "asyncio.Task[None] | None" = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.launch_request.deployment, *([self.old.name] if self.old else []))))

    @property
    def other(self) -> str:
        """The old one's name where that is another than the new one's."""
        return self.old.name if self.old and self.old.name != self.launch_request.deployment else ""

    @property
    def unsupervised(self) -> tuple[str, ...]:
        """Names of the deployments whose supervision ends when their ranks do."""
        kept = self.old.name if self.stands_by and self.old else ""
        return tuple(name for name in self.names if name != kept)

    def announce(self) -> None:
        """Announces the replacement before any change. Raises UsageError if the old one could not be restarted as
        expected."""
        self.check_way_back()
        if old := self.old:
            back = "; it serves until weights and image are there, and is started again if the new one is not ready"
            text = replaced_text(old, self.launch_request.recipe) + (
                back if self.again else "; it is not started again"
            )
            self.services.notice(text)

    def check_way_back(self) -> None:
        """Raises UsageError where there is none and one was expected."""
        old = self.old
        if old is None:
            return
        self.again = self.again and old.serves
        if self.again and old.desired is None:
            said = f"{old.name} serves, and what it was started from is not recorded: it could not be started again"
            raise UsageError(said, "`--no-rollback` replaces it all the same")
        if self.again and old.desired and not old.supervised:
            try:
                api_key(self.services, old.desired.recipe)
            except UsageError as error:
                key = old.desired.recipe.serving.api_key_env
                said = f"{old.name} serves with a key and could not be started again: {key} is not set"
                hint = "set it to the key in use, or replace it with `--no-rollback`"
                raise UsageError(said, hint) from error

    async def begin(self) -> None:
        """Asks the old deployment's supervisor to hand over, once. Raises CommandFailed without an answer; nothing has
        been stopped then."""
        old = self.old
        if old is None or self.begun:
            return
        self._since = self.services.clock.monotonic()
        if old.supervised:
            self.stands_by = await self._handed_over(old.supervised)
            if not self.stands_by and self.again:
                said = f"the supervisor of {old.name} does not answer: it could not be started again"
                raise CommandFailed(old.supervised.node, said, "`--no-rollback` replaces it all the same")
        self.begun = True

    async def _handed_over(self, supervised: Supervised) -> bool:
        """Asks the supervisor to hand its ranks over. True once it has; its gateway then refuses requests with the
        reason.

        Raises Unreachable if the supervisor cannot ask a node, and could not start it again.
        """
        services, (node, state, name) = self.services, self._place(supervised)
        what = self.successor or f"recipe {self.launch_request.recipe.label}"
        asked = self._request(Ask.REPLACE, f"being replaced by {what}")
        if not (await services.run(node, service.send_request(state, name, asked, "replace", over=True))).ok:
            return False
        self._renewing = asyncio.create_task(self._renew(node, state, name))
        await services.run(node, service.resume(state, name))
        until = services.clock.monotonic() + self.drain + _HEARD
        while services.clock.monotonic() < until:
            seen = await watched(services, node, name)
            answer = seen.current.answer_to(services.nonce) if seen and seen.current else None
            if answer and answer.refused and self.again:
                raise Unreachable(node, answer.refused, answer.cure)
            if seen and seen.current and seen.current.request == services.nonce:
                return True
            if answer and answer.refused:
                return False
            await services.clock.sleep(_LOOK_AGAIN)
        await services.run(node, service.withdraw_request(state, name, services.nonce))
        return False

    def _why(self) -> str:
        return f"replaced by {self.launch_request.deployment}"

    def _place(self, supervised: Supervised) -> tuple[str, str, str]:
        return supervised.node, state_of(self.services, supervised), supervised.deployment

    def _request(self, ask: Ask, why: str) -> str:
        services, successor = self.services, self.successor
        return to_json(Request(ask, services.who, why, services.nonce, drain=self.drain, successor=successor))

    async def _renew(self, node: str, state: str, name: str) -> None:
        while True:
            await self.services.clock.sleep(RENEW_EVERY * self.services.time_scale)
            with suppress(NodeError):
                await self.services.run(node, service.renew_request(state, name, self.services.nonce))

    async def ours(self) -> bool:
        """True if the supervisor still waits for us: nobody has run `down` or another `up` since."""
        if not (self.stands_by and self.old and self.old.supervised):
            return False
        node, state, name = self._place(self.old.supervised)
        return (await self.services.run(node, service.renew_request(state, name, self.services.nonce))).ok

    async def undo(self, plan: Plan, error: BaseException) -> None:
        """The new one failed with `error`, which gets to know what serves now."""
        old, gone = self.old, isinstance(error, asyncio.CancelledError)
        if old is None or not self.begun or isinstance(error, Busy):
            return
        if not self.again:
            await self._left(old, error)
            return
        if self.stands_by and not await self.ours():
            if isinstance(error, SparkwrightError):
                error.message += f"; {old.name} is in other hands by now: taken down, or replaced by another call"
            return
        await finished(self._given_back(plan, _cause(error)))
        if gone:
            again = f"is being started again as it was ({old.label}); `sparkwright status` shows it"
            self.services.notice(f"interrupted: {old.name} {again}", warning=True)
        why = await self._back(old, wait=not gone)
        if isinstance(error, SparkwrightError):
            self._tell(old, error, why)

    async def _given_back(self, plan: Plan, cause: str) -> None:
        """Removes the ranks and files of the new deployment; its logs are kept here."""
        try:
            async with holding(self.services, plan.placement.nodes, f"roll back {plan.deployment}"):
                await clean_nodes(self.services, plan)
        except SparkwrightError as error:
            self.services.notice(f"not everything could be removed: {error.message}", warning=True)
        if self.stands_by:
            await self.answer(Ask.RETURN, f"its replacement failed: {cause}")

    async def hand_back(self, error: Exception) -> None:
        """Gives the nodes back to the supervisor that waits, and adds to the error what serves then."""
        assert self.old
        await self.answer(Ask.RETURN, f"its replacement failed: {_cause(error)}")
        why = await self._back(self.old, wait=True)
        if isinstance(error, SparkwrightError):
            error.message += self._end_of_rollback(self.old, why)

    async def _left(self, old: Old, error: BaseException) -> None:
        """Settles what the old deployment, which is not started again, has left. Interrupted: the new ranks go on, and
        the next `up` finds no other supervisor."""
        if not self.stands_by:
            return
        if isinstance(error, asyncio.CancelledError):
            await remove_supervisor(self.services, self.services.cluster.names, old.name)
        else:
            await self.answer(Ask.LEAVE, f"its replacement failed: {_cause(error)}")

    async def answer(self, ask: Ask, why: str) -> None:
        """Tells the supervisor that waits for us what to do now; nothing if somebody else has replaced our request."""
        assert self.old and self.old.supervised
        node, state, name = self._place(self.old.supervised)
        content = self._request(ask, why)
        await self.services.run(node, service.answer_request(state, name, self.services.nonce, content))

    async def _back(self, old: Old, wait: bool) -> str:
        """'' once the old one serves, or why it does not."""
        try:
            if old.supervised:
                return await until_serving(self.services, old.supervised.node, old.name) if wait else ""
            if self.restart and old.desired:
                recipe, key = old.desired.recipe, api_key(self.services, old.desired.recipe)
                await self.restart(LaunchRequest(recipe, old.name, old.desired.force, key), wait)
        except SparkwrightError as error:
            return error.message
        return ""

    def _end_of_rollback(self, old: Old, why: str) -> str:
        if why:
            return f"; rolled back, and {old.name} ({old.label}) does not serve either: {why}"
        took = duration(self.services.clock.monotonic() - self._since)
        return f"; rolled back: {old.name} serves again as it was ({old.label}), away for {took}"

    def _tell(self, old: Old, error: SparkwrightError, why: str) -> None:
        error.message += self._end_of_rollback(old, why)
        if isinstance(error, NotReady):
            logs = "the logs of all ranks of the replacement are kept here"
            error.hint = f"{logs}; `sparkwright status` shows what serves"

    def end_renewing(self) -> None:
        if self._renewing:
            self._renewing.cancel()

    async def close(self) -> None:
        """A supervisor that still waits for us when the new one serves would undo it."""
        self.end_renewing()
        if not (self.kept and self.old):
            return
        try:
            if await self.ours():
                await remove_supervisor(self.services, self.services.cluster.names, self.old.name, self._why())
        except NodeError as error:
            text = f"the supervisor of {self.old.name} could not be ended, and will start it again: {error.message}"
            self.services.notice(text, warning=True)


@asynccontextmanager
async def swapping(swap: Swap, plan: Callable[[], Plan]) -> AsyncIterator[None]:
    try:
        yield
    except (SparkwrightError, asyncio.CancelledError) as error:
        if not swap.kept:
            await swap.undo(plan(), error)
        raise
    finally:
        await finished(swap.close())


def _cause(error: BaseException) -> str:
    if not isinstance(error, SparkwrightError):
        return "interrupted" if isinstance(error, asyncio.CancelledError) else repr(error)[:200]
    causes = getattr(error, "causes", ())
    return str(causes[0].title) if causes else error.message.partition("\n")[0][:200]
