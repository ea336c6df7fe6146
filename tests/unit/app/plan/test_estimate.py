"""A plan for nodes that nobody asked: it refuses what `validate` and `up` refuse."""

from dataclasses import replace

import pytest

from sparkwright.app.plan.estimate import EstimateRequest, estimate
from sparkwright.domain.plan import stopping
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import rehearse
from unit.app.scene import make_scene, recipe

MINIMAX = recipe("minimax-m2.7-nvfp4")


def with_engine(version: str, **flags: object) -> Recipe:
    return replace(MINIMAX, engine=replace(MINIMAX.engine, version=version), flags={**MINIMAX.flags, **flags})


@pytest.mark.parametrize(
    ("version", "flags", "code", "stops"),
    [
        ("0.33.0", {"brand-new-switch": True}, "ENG001", True),
        ("0.33.0", {"tool-call-parser": "nosuch"}, "ENG009", False),
        ("0.34.0", {}, "ENG005", False),
    ],
)
async def test_what_validate_says_of_the_engine_is_said(
    version: str, flags: dict[str, object], code: str, stops: bool
) -> None:
    """Guards that such a plan has every finding of `recipes validate`, and that a blocking one stops it."""
    asked = with_engine(version, **flags)
    plan = (await estimate(make_scene().services, EstimateRequest(recipe=asked, nodes=2))).plan
    assert code in [finding.code for finding in plan.findings]
    assert {finding.code for finding in rehearse(asked)} <= {finding.code for finding in plan.findings}
    assert (code in [finding.code for finding in stopping(plan, "")]) == stops
