"""Predictions of plans next to what a start then measured, node by node: how good the planner is on these machines."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from sparkwright.domain.calibration import Calibration
from sparkwright.domain.ledger import KV_POOL, WEIGHTS, MemoryLedger, Origin
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.verdict import Estimate

KV_TOKENS = "KV tokens"
START = "start"  # seconds until the server answers
DECODE = "decode"  # tokens/s of one user
_ANSWERS = ("answer", "server")  # phases whose time that is, the better one first


@dataclass(frozen=True, slots=True)
class PredictionError:
    """One figure of one node. at: seconds since the epoch.

    quantity: bytes of the ledger, tokens, a start's seconds, or tokens/s of one user, of which measured is 0 until a
    bench has measured them. learned: an earlier start of the same had corrected the prediction. low, high: of nine
    measurements of ten.
    """

    at: float
    deployment: str
    recipe: str
    engine: str
    node: str
    quantity: str
    predicted: float
    low: float
    high: float
    measured: float
    learned: bool = False
    simulated: bool = False

    @property
    def off(self) -> float:
        """Prediction less truth, as a share of the truth."""
        return self.predicted / self.measured - 1 if self.measured else 0.0

    @property
    def inside(self) -> bool:
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class PredictionScore:
    """Prediction errors of one quantity on one node: count, median and largest error, and how many lay inside their
    ranges."""

    node: str
    quantity: str
    learned: bool
    count: int
    median: float
    worst: float
    inside: int


def compared(ledger: MemoryLedger, found: Calibration) -> Iterator[PredictionError]:
    """Pairs of planned and logged figures of one rank; only quantities that both have."""
    under = found.conditions
    pairs = ((WEIGHTS, found.weights), (KV_POOL, found.kv))
    for name, truth in pairs:
        line = ledger.line(name)
        if line is None or not line.known or not line.bytes or not truth:
            continue
        low, high = line.bytes if line.low is None else line.low, line.bytes if line.high is None else line.high
        learned = line.origin is Origin.CALIBRATED
        yield PredictionError(
            found.at, found.source, under.recipe, under.engine, ledger.node, name, line.bytes, low, high, truth,
            learned, under.simulated,
        )  # fmt: skip
        tokens = ledger.kv_tokens if name == KV_POOL else None
        if tokens and found.kv_tokens:
            least, most = tokens * low / line.bytes, tokens * high / line.bytes
            yield PredictionError(
                found.at, found.source, under.recipe, under.engine, ledger.node, KV_TOKENS, tokens, least, most,
                found.kv_tokens, learned, under.simulated,
            )  # fmt: skip


def started(predicted: Estimate, found: Calibration) -> Iterator[PredictionError]:
    """The time of a start that was watched from its beginning; nothing where either is not known."""
    phases, under = dict(found.phases), found.conditions
    seconds = next((phases[name] for name in _ANSWERS if phases.get(name)), 0.0)
    if predicted.known and seconds:
        learned = any(line.startswith("measured") for line in predicted.why)
        yield PredictionError(
            found.at, found.source, under.recipe, under.engine, under.node, START,
            predicted.value, predicted.low, predicted.high, seconds, learned, under.simulated,
        )  # fmt: skip


def promised(predicted: Estimate, found: Calibration) -> Iterator[PredictionError]:
    """The speed of one user that a bench of this start is compared with; measured is 0 until then."""
    under = found.conditions
    if predicted.known:
        yield PredictionError(
            found.at, found.source, under.recipe, under.engine, under.node, DECODE,
            predicted.value, predicted.low, predicted.high, 0.0, False, under.simulated,
        )  # fmt: skip


def benched(rows: Sequence[PredictionError], deployment: str, measured: float, at: float) -> PredictionError | None:
    """The latest promise of the deployment with what a bench measured; None without a promise."""
    open_ = (one for one in reversed(rows) if one.quantity == DECODE and not one.measured)
    last = next((one for one in open_ if one.deployment == deployment), None)
    return replace(last, measured=measured, at=at) if last and measured > 0 else None


def scores(rows: Iterable[PredictionError]) -> tuple[PredictionScore, ...]:
    """Scores by node and quantity; predictions corrected by an earlier start are counted apart."""
    groups: dict[tuple[str, str, bool], list[PredictionError]] = {}
    for row in rows:
        groups.setdefault((row.node, row.quantity, row.learned), []).append(row)
    return tuple(_score(key, group) for key, group in sorted(groups.items()))


def _score(key: tuple[str, str, bool], group: Sequence[PredictionError]) -> PredictionScore:
    off = [abs(one.off) for one in group]
    return PredictionScore(*key, len(group), median(off), max(off), sum(one.inside for one in group))
