"""The node of the sh tests: a folder of this machine, once for each shell that a node's `sh` may be."""

import pytest

from fakes.sh import SHELLS, Sh


@pytest.fixture(params=SHELLS)
def node_shell(request: pytest.FixtureRequest, tmp_path) -> Sh:
    return Sh(tmp_path, request.param)
