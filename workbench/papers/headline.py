"""The numbers that a paper gives of a figure, and ours next to them."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from workbench import units

if TYPE_CHECKING:
    from workbench.papers.figure import Reproduction

Reader = Callable[["Reproduction"], float]
Verdict = Literal["agrees", "size differs", "sign differs", "fitted", "not here"]
CLOSE, POINTS = 0.10, (1.0, 3.0)
"""What still agrees: a tenth of the published number, which of a percentage is at least one point and at most three."""
_PERCENT = ("%", "change")
_EVEN: Mapping[str, float] = {"change": 0.0, "times": 1.0}


@dataclass(frozen=True)
class Headline:
    """A number that the paper gives of a figure, and where ours is read."""

    what: str  # what it is of
    # ``"%"``; ``"change"``, in percent, where 0 separates two signs; ``"times"``, a ratio, where 1 does; or another
    # unit, whose numbers have no sign; empty for a bare number
    unit: str
    published: float | tuple[float, float]  # the paper's, or the ends of what its `words` allow; infinite where open
    ours: Reader | None = None  # reads it from the figure; None where the figure is not here
    only: str = ""  # the input it is of; empty: of all
    words: str = ""  # what the paper says where it prints no number
    # what of ours was chosen so that this number comes out; then it counts only if it differs all the same
    fitted: str = ""

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest value that agrees with the published one."""
        return self.published if isinstance(self.published, tuple) else (self.published, self.published)

    @property
    def even(self) -> float | None:
        """Value where nothing differs, so that above and below it are two signs; None where there are no signs."""
        return _EVEN.get(self.unit)

    @property
    def said(self) -> str:
        """The paper's words, or its number."""
        low, high = self.ends
        if self.words:
            return self.words
        if low == high:
            return self.written(low)
        if low == self.even and math.isinf(high):
            return "more"
        if high == self.even and low in {-math.inf, 0.0, -100.0}:
            return "less"
        return f"at least {self.written(low)}" if math.isinf(high) else f"{units.number(low)} to {self.written(high)}"

    def written(self, value: float) -> str:
        """Write a value with its unit."""
        if self.unit == "change":
            return f"{'+' if value > 0 else ''}{units.number(value)} %"
        return f"{units.number(value)} %" if self.unit == "%" else units.scaled(value, self.unit)


@dataclass(frozen=True)
class Compared:
    """A headline of the figure `number`, and our value; None where the figure is not here."""

    number: str
    headline: Headline
    ours: float | None

    @property
    def verdict(self) -> Verdict:
        """Whether ours agrees within `CLOSE`, and if not, whether it differs in size alone or in sign."""
        found, _ = self._judged
        return "fitted" if self.headline.fitted and found == "agrees" else found

    @property
    def difference(self) -> str:
        """Where ours differs, in sign or by how much, and what of it was fitted to the published number."""
        fitted = self.headline.fitted if self.ours is not None else ""
        return self._judged[1] + (f" (fitted to this: {fitted})" if fitted else "")

    @property
    def sentence(self) -> str:
        """The paper's number, ours and the difference, without a full stop."""
        head = self.headline
        ours = "" if self.ours is None else f", {head.written(self.ours)} here"
        return f"{head.what}: {head.said} published{ours}, {self.difference}"

    @property
    def _judged(self) -> tuple[Verdict, str]:
        """What ours is next to the published number, and in words."""
        head, value = self.headline, self.ours
        if value is None:
            return "not here", "not here"
        (low, high), even = head.ends, head.even
        nearest = min(max(value, low), high)  # as published
        above = even is not None and low >= even < high and value <= even
        below = even is not None and low < even >= high and value >= even
        if above or below:
            return "sign differs", "no difference here" if value == even else "the sign differs"
        allowed, off = CLOSE * abs(nearest), abs(value - nearest)
        if head.unit in _PERCENT:
            allowed = min(max(allowed, POINTS[0]), POINTS[1])
        if off <= allowed:
            return "agrees", "as published"
        more = "more" if value > nearest else "less"
        if head.unit in _PERCENT:
            return "size differs", f"{units.number(off)} points {more}"
        if nearest > 0 < value:
            return "size differs", f"{units.number(value / nearest, 2)} times as much"
        return "size differs", f"{head.written(off)} {more}"


def reader(spec: Any, own: Mapping[str, Callable[..., float]] = MappingProxyType({})) -> Reader:  # noqa: ANN401 - TOML
    """Return what reads a number from a figure.

    ``[series, x]`` or ``[series, x, panel]`` is the value at `x`, ``{mean = [series]}`` the mean of a series. Of two
    such numbers, ``{ratio = [above, below]}`` is one in terms of the other, and ``{change = [before, after]}`` by how
    much it differs, %. Any other name is that of one of `own`, called with the figure and the arguments.
    """

    def read(made: "Reproduction") -> float:
        match spec:
            case [name, x, *panel]:
                return made.named(name, *panel).at(x)
            case {"mean": [name]}:
                return statistics.fmean(made.named(name).values)
            case {"ratio": [above, below]}:
                return reader(above, own)(made) / reader(below, own)(made)
            case {"change": [before, after]}:
                return 100 * (reader(after, own)(made) / reader(before, own)(made) - 1)
        ((name, arguments),) = spec.items()
        return own[name](made, *arguments)

    return read


def counted(found: Iterable[Compared]) -> dict[Verdict, int]:
    """Count headlines by verdict; agreement with what ours was fitted to is not counted as such."""
    counts = Counter(one.verdict for one in found)
    return {verdict: counts[verdict] for verdict in get_args(Verdict) if counts[verdict]}
