"""The wait before a stop that a person asked for: requests that the gateway has let through may end."""

from sparkwright.domain.units import DRAIN_SECONDS
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.endpoint import gateway_use

_LOOK_EVERY = 0.5
# The gateway refuses from the moment that live.json is there; what it let through before is on its way by then.
_SETTLES = 0.3


async def drained(context: DeploymentContext) -> None:
    """Returns once none is under way, or after as long as the request for the stop allows; at once where no gateway

    answers, and where the engine does not answer any more.
    """
    began, limit = context.now(), context.scaled(context.seen.drain)
    if began - context.seen.good_at > context.policy.canary_every + context.scaled(DRAIN_SECONDS):
        return
    await context.services.clock.sleep(_SETTLES)
    while (use := await gateway_use(context)) and use.under_way:
        some = f"{use.under_way} request{'s' if use.under_way > 1 else ''}"
        if context.now() - began > limit:
            context.notice(f"{context.name}: {some} under way after {limit:.0f} s, cut by the stop", warning=True)
            break
        context.seen.doing = f"the end of {some}"
        await context.services.clock.sleep(_LOOK_EVERY)
    context.seen.doing = ""
