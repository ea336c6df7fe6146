"""The server's counters and their report on a level."""

from fakes.measured import make_level, scrape
from sparkwright.engines.catalog import ENGINES
from sparkwright.engines.tables import metric_names
from sparkwright.loadgen import samples


def test_gauges_give_their_most_and_counters_their_increase() -> None:
    """The figures are over all repeats: the longest queue, the fullest cache, all preemptions."""
    first = (
        scrape(0, requests_waiting=0, kv_cache_usage=0.2, preemptions_total=5),
        scrape(5, requests_waiting=7, kv_cache_usage=0.9),
        scrape(9, requests_waiting=3, kv_cache_usage=0.7),
        scrape(10, requests_waiting=0, preemptions_total=8),
    )
    second = (scrape(0, preemptions_total=8), scrape(5, requests_waiting=1), scrape(9, preemptions_total=9))
    found = samples.engine_figures([make_level((), 0, scrapes=first), make_level((), 1, scrapes=second)])
    assert found == {"requests_waiting": 7, "kv_cache_usage": 0.9, "preemptions_total": 4}


def test_before_and_after_prove_nothing_of_between() -> None:
    """A level that was too short for a scrape within it has no longest queue: 0 would be that of an idle server."""
    idle = (scrape(0, requests_running=0.0), scrape(0.4, requests_running=0.0))
    assert samples.engine_figures([make_level((), scrapes=idle)]) == {}


def test_the_share_of_prefix_hits_is_of_this_level() -> None:
    """Hits before the level's begin do not count: 80 of the 100 tokens that were asked for since."""
    told = [(900.0, 1000.0), (980.0, 1100.0)]
    scrapes = tuple(
        scrape(at, prefix_cache_hits_total=hits, prefix_cache_queries_total=asked)
        for at, (hits, asked) in enumerate(told)
    )
    assert samples.engine_figures([make_level((), scrapes=scrapes)])["prefix_hit_share"] == 0.8


def test_what_an_engine_does_not_report_is_absent() -> None:
    """One scrape gives no increase, and no queries no share: nothing is zero in its place."""
    assert samples.engine_figures([make_level((), scrapes=(scrape(0, preemptions_total=3.0),))]) == {}
    idle = tuple(scrape(at, prefix_cache_hits_total=1.0, prefix_cache_queries_total=5.0) for at in (0, 1))
    assert "prefix_hit_share" not in samples.engine_figures([make_level((), scrapes=idle)])
    assert samples.acceptance(()) is None


def test_a_total_wants_every_repeat() -> None:
    """A repeat of which nothing is known would make the sum too small."""
    known = make_level((), 0, scrapes=(scrape(0, preemptions_total=1.0), scrape(1, preemptions_total=2.0)))
    assert "preemptions_total" not in samples.engine_figures([known, make_level((), 1)])


def test_a_counter_that_falls_has_begun_again() -> None:
    """The server was restarted in the middle: no increase can be reported."""
    scrapes = tuple(scrape(at, generation_tokens_total=total) for at, total in enumerate((500.0, 900.0, 40.0)))
    assert samples.restarted(scrapes)
    assert samples.increase(scrapes, "generation_tokens_total") is None
    assert not samples.restarted(scrapes[:2])


def test_the_node_with_the_least_memory_is_reported() -> None:
    """It is the one that ends a run."""
    scrapes = (scrape(0, memory={"a": 50, "b": 9}), scrape(1, memory={"a": 40, "b": 12}))
    assert samples.engine_figures([make_level((), scrapes=scrapes)]) == {"memory_available_least": 9.0}


def test_the_words_are_those_of_the_engines() -> None:
    """They are written twice, since neither part may see the other."""
    known = {word for name in ENGINES for word in metric_names(name)}
    assert {*samples.GAUGES, *samples._ALL} <= known
