"""The drawing of `top` and `status --watch` on a terminal."""

from sparkwright.cli.watch import fitted


def test_no_reason_is_cut_on_the_right() -> None:
    """Guards a narrow terminal: the end of a sentence, where the cause is, goes on below, indented."""
    text = "chat: ready\n  problem: rank 1 on spark-2 is throttled: 87 °C, clock 1,410 of 2,411 MHz\n\n" + 100 * "x"
    lines = fitted(text, 40)
    assert max(map(len, lines)) <= 40 and lines[0] == "chat: ready" and "" in lines
    assert lines[1:3] == ["  problem: rank 1 on spark-2 is", "    throttled: 87 °C, clock 1,410 of"]
    assert sum(line.count("x") for line in lines) == 100
