"""A peer of a copy that says nothing."""

import pytest

from sparkwright.remote.programs.push_files import Failed
from sparkwright.remote.programs.push_work import Pipe
from sparkwright.remote.programs.wire import CUT_OFF, Watch


@pytest.mark.parametrize(("silent", "said"), [(2.0, "spark-2 has acknowledged nothing for 2 s"), (0.0, "-9")])
def test_a_connection_that_was_given_up_says_so_and_not_how_it_was_ended(silent: float, said: str) -> None:
    """Guards the reason of a copy that failed: a connection that we ended ourselves tells why."""
    watch = Watch(2.0, lambda: None)
    watch.silent = silent
    pipe = Pipe({"ssh": ["sh", "-c", "exec sleep 1000"], "at": "there", "peer": "spark-2"}, watch)
    pipe.kill()
    with pytest.raises(Failed) as failed:
        pipe.line()
    assert failed.value.code == CUT_OFF and said in str(failed.value)
    pipe.close()
