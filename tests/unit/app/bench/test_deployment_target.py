"""The gateways that are the cluster's own: its keys are shown to no other."""

import pytest

from sparkwright.app.bench.deployment_target import behind, gateway_url
from sparkwright.domain.errors import UsageError
from unit.app.scene import ClusterScene, make_scene
from unit.app.test_status_supervised import watched

GATEWAY = "https://spark-1:8443/v1"


def served(endpoint: str = GATEWAY) -> ClusterScene:
    return watched(make_scene(), endpoint=endpoint)


@pytest.mark.parametrize(
    ("url", "proven", "found"),
    [
        ("https://spark-1:8443", False, "twin"),
        ("https://spark-1:8443/v1/", False, "twin"),
        ("https://10.0.0.7:8443/v1", False, ""),  # another name proves nothing by itself
        ("https://10.0.0.7:8443/v1", True, "twin"),
        ("https://10.0.0.7:9443/v1", True, ""),  # another service of the same machine
        ("http://spark-1:8443/v1", True, ""),  # in the clear a key is never shown to what has a certificate
        ("spark-1:8443", False, ""),
    ],
)
async def test_an_address_is_a_gateway_by_its_name_or_its_certificate(url: str, proven: bool, found: str) -> None:
    """Scheme and port must be the same in any case."""
    assert await behind(served().services, url, proven) == found


async def test_what_has_no_gateway_is_behind_none() -> None:
    """Neither the engine's own address nor that of nothing counts as one."""
    here = served("").services
    assert await behind(here, "http://127.0.0.1:8000/v1", True) == ""
    with pytest.raises(UsageError, match="twin has no gateway"):
        await gateway_url(here, "twin")
    assert await gateway_url(served().services, "twin") == GATEWAY
