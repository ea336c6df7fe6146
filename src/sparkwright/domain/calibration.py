"""The memory figures that an engine logged at a start, rank by rank, and the conditions they were measured under."""

from sparkwright.domain.units import GIB
from sparkwright.domain.values import dataclass, field

# Weights and graphs of a second start are those of the first (vLLM 0.21.0 on two nodes, our recordings: to 0.01 GiB).
# What is left for the KV pool is not: 62.31, 62.59 and 62.81 GiB in three published logs of one recipe on a GB10, 4.22
# and 5.34 in two boots of another.
_SAME, _POOL_SAME = 0.005, GIB * 6 // 10
# Another node, driver or image, or conditions that nobody knows.
_LIKE, _POOL_LIKE = 0.03, GIB * 12 // 10


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions that decide a rank's figures; '' if unknown (a log from anywhere).

    recipe: NAME or NAME@PROFILE. model: id or path with its revision. engine: `vllm 0.21.0`. split: `tp 2`, with pp, dp
    and ep where there are any. settings: of flags, environment and speculation, limits: of tokens, sequences and memory
    fraction; both a digest: equal ones mean equal memory. image: its id on the node, '' for a process. simulated:
    measured of the simulator; never handed to the plan of a real engine, nor the reverse.
    """

    recipe: str
    model: str
    engine: str
    split: str
    settings: str
    limits: str
    rank: int = 0
    node: str = ""
    image: str = ""
    driver: str = ""
    recipe_hash: str = ""
    simulated: bool = False

    @property
    def family(self) -> tuple[str, ...]:
        """Equal for all under which a rank loads the same weights."""
        return self.model, self.engine, self.split, self.settings, str(self.simulated)

    @property
    def place(self) -> tuple[str, ...]:
        """The key of these figures within a family: a later start with the same key replaces them."""
        return self.limits, str(self.rank), self.node, self.driver, self.image


@dataclass(frozen=True, slots=True)
class Calibration:
    """One rank's figures in bytes and tokens, None where the engine does not print them.

    pool: what the engine's memory fraction was of, as planned then; 0: not known. kv_tokens: as the engine reports
    them. graphs: CUDA graphs. activations: peak of the profiling run. other: what is neither PyTorch's nor weights
    (context, NCCL). whole: all that a rank takes, of an engine that prints no parts. kept: by which available memory
    fell while weights were read, without the weights. phases: seconds until each start-up phase was entered. at:
    seconds since the epoch, 0 when nobody knows. source: the deployment, or the file that was read. differs: in which
    conditions it is not what is planned now; () when it is just that. A figure that those conditions change is None
    then.
    """

    conditions: Conditions
    weights: int | None = None
    kv: int | None = None
    kv_tokens: int | None = None
    graphs: int | None = None
    activations: int | None = None
    other: int | None = None
    whole: int | None = None
    kept: int | None = None
    pool: int = 0
    phases: tuple[tuple[str, float], ...] = ()
    at: float = 0.0
    source: str = ""
    differs: tuple[str, ...] = field(default=())

    @property
    def is_empty(self) -> bool:
        """True if it has no memory figure and so calibrates nothing."""
        return self.weights is None and self.kv is None and self.whole is None

    @property
    def spread(self) -> float:
        """The part of a figure by which the next start may differ from it."""
        return _LIKE if self.differs else _SAME

    def around(self, size: int, pool: bool = False) -> tuple[int, int]:
        """low, high of a figure of this calibration, in bytes; pool: it is what other figures leave for the KV."""
        slack = round(size * self.spread)
        if pool:
            slack = max(slack, _POOL_LIKE if self.differs else _POOL_SAME)
        return max(0, size - slack), size + slack
