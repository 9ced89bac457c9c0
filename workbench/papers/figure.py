"""A figure of a paper as numbers, ours next to the paper's where these can be read, and its headlines, likewise.

``data/papers`` keeps the figures of each paper with what it says of them, and our results that take minutes: these have
one row per point, and are written by ``benchmarks/papers.py``.
"""

import csv
import math
import statistics
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from workbench import units
from workbench.checks import require
from workbench.errors import WorkbenchError

Shape = Literal["line", "points", "bars"]
Status = Literal["reproduced", "same method, our input", "simulated", "not here, because"]
Number = float | None


def _numbers(values: Iterable[Number]) -> tuple[Number, ...]:
    return tuple(None if one is None else float(one) for one in values)


@dataclass(frozen=True)
class Panel:
    """One panel of axes."""

    title: str  # unique in its figure; series name it
    # x, y: titles of the axes, with units
    x: str
    y: str
    shape: Shape = "line"
    log_x: bool = False
    log_y: bool = False

    def series(
        self,
        name: str,
        x: Iterable[float | str],
        y: Iterable[Number],
        low: Iterable[Number] = (),
        high: Iterable[Number] = (),
        *,
        published: bool = False,
    ) -> "Series":
        """Return a series of this panel."""
        return Series(self.title, name, tuple(x), _numbers(y), _numbers(low), _numbers(high), published)

    def beside(self, paper: Mapping[str, Number], ours: Mapping[str, Number]) -> "Reproduction":
        """Return a figure of this panel alone: the paper's values and ours by name."""
        published = self.series("paper", paper, paper.values(), published=True)
        return Reproduction((self,), (published, self.series("ours", ours, ours.values())))


@dataclass(frozen=True)
class Series:
    """One line, or one group of points or bars."""

    panel: str
    name: str  # what it is; unique in its panel
    # x, y: numbers or names, and their values in the units of the panel; None where there is none
    x: tuple[float | str, ...]
    y: tuple[Number, ...]
    # low, high: ends of a range around each value; empty where there is none
    low: tuple[Number, ...] = ()
    high: tuple[Number, ...] = ()
    published: bool = False  # whether the values are the paper's, not ours

    def __post_init__(self) -> None:
        for values in (self.y, self.low or self.y, self.high or self.y):
            require(len(values) == len(self.x), f"{self.name!r} has {len(self.x)} x and {len(values)} values.")

    @property
    def values(self) -> list[float]:
        """The values that are not None."""
        return [value for value in self.y if value is not None]

    def at(self, x: float | str) -> float:
        """Return the value at `x`. Raises `WorkbenchError` when there is none."""
        for place, value in zip(self.x, self.y, strict=True):
            if place == x and value is not None:
                return value
        raise WorkbenchError(f"{self.name!r} has no value at {x!r}; it has {', '.join(map(str, self.x))}.")


@dataclass(frozen=True)
class Reproduction:
    """A figure of a paper next to ours; the headlines of its `PaperFigure` state its findings."""

    panels: tuple[Panel, ...]
    series: tuple[Series, ...]

    def named(self, name: str, panel: str | None = None) -> Series:
        """Return a series by its name, and the title of its panel where several have it.

        Raises `WorkbenchError` when there is none.
        """
        for one in self.series:
            if one.name == name and panel in {None, one.panel}:
                return one
        raise WorkbenchError(f"There is no series {name!r}; there are {', '.join(one.name for one in self.series)}.")


Reader = Callable[[Reproduction], float]
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

    def read(made: Reproduction) -> float:
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


@dataclass(frozen=True)
class PaperFigure:
    """One figure or table of a paper's evaluation."""

    number: str  # as the paper has it: ``"Figure 7"``
    shows: str
    said: str  # what the paper says of it: its values or its finding, with the section
    how: str  # how ours was made and why it differs; or why there is none
    make: Callable[[str], Reproduction] | None = None  # makes it for one of `inputs`; None where it is not here
    # the paper's queries, jobs or workloads to choose from, the usual one first; empty where it has one input
    inputs: tuple[str, ...] = ()
    headlines: tuple[Headline, ...] = ()  # what to compare: the numbers that the paper gives, or what its words allow
    # ``"reproduced"``: the paper's method on the paper's input. ``"same method, our input"``: the paper does not
    # publish all of its input. ``"simulated"``: in a simulation in place of the paper's cluster. ``"not here,
    # because"``: there is none of ours, for the reason in `how`
    status: Status = "simulated"
    panels: tuple[Panel, ...] = ()  # of one that is drawn from recorded results

    def reproduce(self, chosen: str | None = None) -> Reproduction:
        """Make the figure for the chosen input, the usual one by default.

        Raises `WorkbenchError` when the figure is not here, or has no such input.
        """
        if self.make is None:
            raise WorkbenchError(f"{self.number} is not here, because {self.how} Choose another figure.")
        if chosen is not None and chosen not in self.inputs:
            known = ", ".join(self.inputs)
            raise WorkbenchError(
                f"{self.number} cannot be made for {chosen!r}; "
                + (f"use one of {known}." if known else "it has one input, so leave it out.")
            )
        return self.make(chosen or next(iter(self.inputs), ""))

    def compare(self, made: Reproduction | None, chosen: str | None = None) -> tuple[Compared, ...]:
        """Compare the headlines of the chosen input, the usual one by default, with the figure made for it."""
        wanted = {"", chosen or next(iter(self.inputs), "")}
        return tuple(
            Compared(self.number, one, None if made is None or one.ours is None else one.ours(made))
            for one in self.headlines
            if one.only in wanted
        )

    def compare_all(self) -> tuple[Compared, ...]:
        """Compare all headlines, each with the figure made for its input."""
        usual = next(iter(self.inputs), "")
        found = []
        for chosen in dict.fromkeys(one.only or usual for one in self.headlines):
            made = None if self.make is None else self.make(chosen)
            found += [one for one in self.compare(made, chosen) if (one.headline.only or usual) == chosen]
        return tuple(found)


@dataclass(frozen=True)
class Paper:
    """A paper, and the figures and tables of its evaluation in its order."""

    name: str
    title: str
    figures: tuple[PaperFigure, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """All queries, jobs and workloads that its figures can be made for."""
        return tuple(dict.fromkeys(name for figure in self.figures for name in figure.inputs))

    def figure(self, number: str) -> PaperFigure:
        """Return a figure by its number. Raises `WorkbenchError` when there is none."""
        for one in self.figures:
            if one.number == number:
                return one
        if not self.figures:
            raise WorkbenchError(f"The figures of {self.title} are missing: {_CLONE}")
        known = ", ".join(one.number for one in self.figures)
        raise WorkbenchError(f"{self.title} has no {number!r} in its evaluation; it has {known}. Use one of these.")


def counted(found: Iterable[Compared]) -> dict[Verdict, int]:
    """Count headlines by verdict; agreement with what ours was fitted to is not counted as such."""
    counts = Counter(one.verdict for one in found)
    return {verdict: counts[verdict] for verdict in get_args(Verdict) if counts[verdict]}


FOLDER = Path(__file__).resolve().parents[2] / "data"
_CLONE = (
    "the package was installed without its repository. "
    "Next step: clone the repository and install it with 'pip install -e .' there."
)


def rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file of the repository, which a package installed without its repository lacks."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise WorkbenchError(f"{path} cannot be read ({error.strerror}); {_CLONE}") from error


def read_figures(
    paper: str,
    makers: Mapping[str, Callable[[str], Reproduction]],
    own: Mapping[str, Callable[..., float]] = MappingProxyType({}),
    derived: Mapping[str, Iterable[Headline]] = MappingProxyType({}),
) -> tuple[PaperFigure, ...]:
    """Read the figures of a paper; there are none if the package was installed without its repository.

    Parameters
    ----------
    makers
        What makes ours, by number, of figures that are not drawn from recorded results.
    own
        Readers that the paper's headlines name, see `reader`.
    derived
        Further headlines, which follow from tables, by number; not read where there are no figures.
    """
    try:
        text = (FOLDER / "papers" / f"{paper}.toml").read_text(encoding="utf-8")
    except OSError:
        return ()
    figures = []
    for one in tomllib.loads(text)["figures"]:
        number, headlines = one["number"], list[Headline]()
        for row in one.pop("headlines", ()):
            if isinstance(row["published"], list):
                row["published"] = tuple(row["published"])
            if "ours" in row:
                row["ours"] = reader(row["ours"], own)
            headlines.append(Headline(**row))
        panels = tuple(Panel(**row) for row in one.pop("panels", ()))
        published = tuple(
            Series(
                row["panel"],
                row["name"],
                tuple(row["x"]),
                tuple(None if math.isnan(y) else y for y in row["y"]),
                published=True,
            )
            for row in one.pop("published", ())
        )
        of = one.pop("recorded", number)  # the figure whose results it shows
        make = partial(_redrawn, paper, of, panels, published) if panels else makers.get(number)
        one["inputs"] = tuple(one.get("inputs", ()))
        with suppress(WorkbenchError):  # without the tables that they follow from
            headlines += derived.get(number, ())
        figures.append(PaperFigure(**one, make=make, headlines=tuple(headlines), panels=panels))
    return tuple(figures)


def _redrawn(
    paper: str, number: str, panels: tuple[Panel, ...], published: tuple[Series, ...], chosen: str
) -> Reproduction:
    """Make a figure of what is recorded in these panels, next to the paper's series."""
    titles = {panel.title for panel in panels}
    ours = (one for one in recorded(paper, number, chosen) if one.panel in titles)
    return Reproduction(panels, (*published, *ours))


def recorded(paper: str, number: str, chosen: str = "") -> tuple[Series, ...]:
    """Read the series of a figure that were recorded for an input.

    Raises `WorkbenchError` when none were, or their file is missing.
    """
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows(FOLDER / "papers" / f"{paper}.csv"):
        if (row["figure"], row["input"]) == (number, chosen):
            found.setdefault((row["panel"], row["series"]), []).append(row)
    if not found:
        raise WorkbenchError(
            f"Nothing is recorded of {number} for {chosen!r}; run python benchmarks/papers.py {paper} --record."
        )
    series = []
    for (panel, name), points in found.items():
        y, low, high = (_column(points, column) for column in ("y", "low", "high"))
        series.append(Series(panel, name, tuple(_place(row["x"]) for row in points), y, low, high))
    return tuple(series)


def _column(points: Sequence[Mapping[str, str]], column: str) -> tuple[Number, ...]:
    """Return the values, or one end of the ranges: empty where no point has one."""
    values = tuple(float(point[column]) if point[column] else None for point in points)
    return () if column != "y" and not any(point[column] for point in points) else values


def _place(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
