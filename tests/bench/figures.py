"""From samples to figures: ratios, flatness, limits, tables."""

from statistics import median

PRE_TOOL_USE_RATIO = 2.2
NAMESAKES_RATIO = 1.9  # beside 100,000 locks of another implementation, all of one last name
SESSION_RATIO = 3.0
MEMORY_RATIO = 1.6
FLATNESS = 1.15


class Series:
    """Samples of one case, in seconds, and of the bare interpreter just before each of them.

    `name` is for the table. Series of one `family` differ in the number of locks alone and must be flat. `limit` and
    `memory_limit` are ratios to the bare interpreter, None without one.
    """

    def __init__(self, name: str, family: str = "", limit: float | None = None, memory_limit: float | None = None):
        self.name = name
        self.family = family
        self.limit = limit
        self.memory_limit = memory_limit
        self.samples: list[float] = []
        self.bare: list[float] = []
        self.cpu: list[float] = []
        self.bare_cpu: list[float] = []
        self.peak = 0
        self.bare_peak = 0

    @property
    def ratio(self) -> float:
        """Return the ratio of the medians, a person's impression."""
        return median(self.samples) / median(self.bare)

    @property
    def floor_ratio(self) -> float:
        """Return the ratio of the minima, measured on a momentarily quiet machine."""
        return min(self.samples) / min(self.bare)

    @property
    def cpu_ratio(self) -> float:
        """Return the ratio of the medians of processor time, hardly affected by a busy machine."""
        return median(self.cpu) / median(self.bare_cpu)

    @property
    def memory_ratio(self) -> float:
        """Of the peaks; 0 where memory was not measured."""
        return self.peak / self.bare_peak if self.bare_peak else 0.0

    def misses(self) -> list[str]:
        """The limits this series misses, in words."""
        found = []
        if self.limit and self.ratio > self.limit:
            found.append(f"{self.name}: {self.ratio:.2f} times the bare interpreter, limit {self.limit}")
        if self.memory_limit and self.memory_ratio > self.memory_limit:
            found.append(f"{self.name}: {self.memory_ratio:.2f} times its memory, limit {self.memory_limit}")
        return found


def flatness(series: list[Series]) -> dict[str, float]:
    """Largest over smallest median of each family with more than one member."""
    families: dict[str, list[float]] = {}
    for one in series:
        if one.family:
            families.setdefault(one.family, []).append(median(one.samples))
    return {name: max(medians) / min(medians) for name, medians in families.items() if len(medians) > 1}


def misses(series: list[Series]) -> list[str]:
    """Every limit that is missed, in words; empty when all hold."""
    found = [miss for one in series for miss in one.misses()]
    for name, value in flatness(series).items():
        if value > FLATNESS:
            found.append(f"{name}: {value:.2f} between sizes, limit {FLATNESS}")
    return found


def table(series: list[Series]) -> str:
    """The figures, one series a line; times in milliseconds, memory in megabytes."""
    width = max(len(one.name) for one in series)
    lines = [f"{'':{width}}  median    p95    min   bare  ratio  of min  of cpu  memory  ratio"]
    for one in series:
        ordered = sorted(one.samples)
        p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        times = [median(ordered), p95, ordered[0], median(one.bare)]
        memory = f"{one.peak / 1e6:8.1f} {one.memory_ratio:6.2f}" if one.peak else ""
        mark = "  <-- over" if one.misses() else ""
        lines.append(
            f"{one.name:{width}} {''.join(f'{1000 * value:7.1f}' for value in times)}"
            f" {one.ratio:6.2f} {one.floor_ratio:7.2f} {one.cpu_ratio:7.2f}{memory}{mark}"
        )
    return "\n".join(lines)
