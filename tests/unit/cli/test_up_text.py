"""The last screen of `up`."""

from dataclasses import replace

from sparkwright.app.serve.gateway import NO_KEY_HERE, GatewayReach
from sparkwright.app.serve.install_supervisor import InstallResult
from sparkwright.app.serve.prepare import Outcome
from sparkwright.app.services import ClusterState
from sparkwright.cli.up_text import capacity_text, engine_reach, outcome_text, request_lines
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.deployment import Answer
from sparkwright.domain.recipe import Expose, Serving
from sparkwright.domain.service import Manager
from unit.cli.test_text import PLAN, RECIPE

LOOPBACK = GatewayReach("https://127.0.0.1:8443/v1", "ai@spark-1", "/k e/default.key", "/keys/ca.crt")
ARMED = InstallResult("spark-1", Manager.USER, reach=LOOPBACK)
STEPS = [("facts", 2.0), ("load", 30.0), ("warmup", 4.0), ("total", 40.0), ("supervise", 5.0)]
READY = Outcome(
    PLAN, ClusterState({}), "ready", Answer("hi " * 40, 9, 40, 0.3, 1.0), STEPS, {"kv_tokens": "7"}, True, ARMED
)


def test_the_whole_time_counts_and_no_raw_key_is_shown() -> None:
    """The owner waits for supervision, too; the engine's own names are for --verbose."""
    lines = outcome_text(READY, 47.2).splitlines()
    assert lines[0] == "big: ready after 47 s"
    assert "  time        facts 2.0 s, engine start 34 s, supervise 5.0 s" in lines
    assert "  console     https://127.0.0.1:8443/console/ on spark-1" in lines
    assert "/console/" not in outcome_text(replace(READY, armed=replace(ARMED, reach=None)), 47.2), "no gateway"
    assert "kv_tokens" not in "\n".join(lines)
    assert "  kv_tokens: 7" in outcome_text(READY, 47.2, verbose=True).splitlines()
    assert max(len(line) for line in lines[: lines.index("try it")] if "answer" not in line) < 80


def test_what_is_simulated_reports_it() -> None:
    """The first word of the screen."""
    simulated = replace(PLAN, recipe=replace(RECIPE, model=replace(RECIPE.model, simulated=True)))
    assert outcome_text(replace(READY, plan=simulated), 1.0).startswith("SIMULATED  big: ready")


def test_the_request_goes_the_way_that_this_machine_has() -> None:
    """A tunnel where the gateway listens on the head's loopback; files quoted; the key itself is not shown."""
    assert request_lines(PLAN, LOOPBACK, "/my ssh")[:4] == [
        "ssh -F '/my ssh' -f -o ExitOnForwardFailure=yes -L 8443:127.0.0.1:8443 ai@spark-1 sleep 600",
        "curl --cacert /keys/ca.crt \\",
        "  https://127.0.0.1:8443/v1/chat/completions \\",
        "  -H \"Authorization: Bearer $(cat '/k e/default.key')\" \\",
    ]
    assert request_lines(PLAN, GatewayReach("https://spark-1:8443/v1"))[0] == "curl \\"
    fabric = request_lines(PLAN, GatewayReach("http://192.168.100.10:8000/v1", "spark-1"))
    assert "-L 8000:192.168.100.10:8000" in fabric[0] and "http://127.0.0.1:8000/v1" in fabric[2]


def test_without_a_key_no_request_is_shown_that_gets_401() -> None:
    """Guards a second laptop: where the key is, and what makes one here."""
    text = outcome_text(replace(READY, armed=replace(ARMED, said=(NO_KEY_HERE,))), 1.0)
    assert "curl" not in text and "only on the machine that made it" in text
    assert "`sparkwright keys add NAME` makes one here" in text


def test_without_a_gateway_the_engine_itself_is_the_address() -> None:
    """Private by default: a tunnel; for everybody: the head's name and the engine's key; on this machine: as it is."""
    assert engine_reach(PLAN) == GatewayReach("http://127.0.0.1:8000/v1", "ai@spark-1")
    serving = Serving(expose=Expose.ALL, api_key_env="KEY")
    open_to_all = replace(PLAN, bind="0.0.0.0", recipe=replace(RECIPE, serving=serving))
    assert engine_reach(open_to_all) == GatewayReach("http://spark-1:8000/v1")
    assert engine_reach(open_to_all, "10.0.0.7") == GatewayReach("http://10.0.0.7:8000/v1")
    assert '  -H "Authorization: Bearer $KEY" \\' in request_lines(open_to_all, engine_reach(open_to_all))
    local = replace(PLAN, cluster=Cluster("here", (Node("spark-1", "local"), Node("spark-2", "local")), "spark-1"))
    assert engine_reach(local) == GatewayReach("http://127.0.0.1:8000/v1")


def test_the_capacity_is_the_engines_own_where_it_printed_one() -> None:
    """The figure is the engine's own allocation in place of the plan's; hostile or missing figures leave the plan's,
    marked so."""
    assert "10,873,056 tokens of KV cache" in capacity_text(PLAN, "10873056")
    for printed in ("", "many", "-1"):
        assert "tokens of KV cache" not in capacity_text(PLAN, printed)
