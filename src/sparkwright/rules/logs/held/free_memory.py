"""The line with which vLLM refuses to start, split by how much was free: who holds the rest depends on it."""


def refused(free: str, total: str, unless: str = "") -> str:
    """A pattern for `Free memory on device (free/total GiB) on startup is less than ...`; unless: what may not be."""
    but = f"(?!{unless})" if unless else ""
    return rf"Free memory on device\b[^(]{{0,16}}\({but}(?P<free>{free})/(?P<total>{total}) ?GiB\) on startup\b(?!\.)"


ANY = r"\d+(?:\.\d+)?"
UNIFIED = r"1(?:19|2[0-2])(?:\.\d+)?"  # GiB that CUDA sees of a GB10: 119.7 or 121.7, gb10.md A1
LITTLE = r"(?:1?\d|2[0-4])(?:\.\d+)?"  # of a GB10: only an engine takes the rest
HALF = r"(?:2[5-9]|[3-8]\d|9[0-4])(?:\.\d+)?"
NEARLY_ALL = r"(?:9[5-9]|1[0-2]\d)(?:\.\d+)?"
# Free and total of a card that is empty but for a desktop or a context: at least about 88 %.
EMPTY_CARD = (
    r"(?:7\.\d+/7|1[01](?:\.\d+)?/1[01]|1[45](?:\.\d+)?/1[56]|2[1-4](?:\.\d+)?/2[1-4]|(?:29|3[0-2])(?:\.\d+)?/3[12]"
    r"|(?:3[6-9]|4[0-4])(?:\.\d+)?/(?:39|4[0-4])|4[3-8](?:\.\d+)?/4[78]|(?:7\d|80)(?:\.\d+)?/(?:79|80)"
    r"|(?:8[5-9]|9[0-6])(?:\.\d+)?/9[4-6]|1(?:2[5-9]|3\d|4[0-3])(?:\.\d+)?/1(?:39|4[0-3])"
    r"|1[6-9]\d(?:\.\d+)?/1[78]\d)(?:\.\d+)? ?GiB"
)
# A use that leaves the host of a GB10 next to nothing, as people write it.
FULL = r"(?<![.\d])(?:" + "|".join(f"{used}{unit}" for used in range(113, 122) for unit in (" GB", "GB", " GiB")) + ")"
