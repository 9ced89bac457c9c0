"""An answer: a headline, its origin, its figures, its cautions, and the evidence behind it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from workbench import units
from workbench.advice import Advice

if TYPE_CHECKING:  # the chart library loads as slowly as everything else together
    import plotly.graph_objects as go

    from workbench.views.cards import Card


class Unit(NamedTuple):
    """How a figure is written, and what a table of exact figures holds."""

    write: Callable[[Any], str]  # the value for readers
    label: str = ""  # unit of the exact figures; empty for words and plain numbers
    factor: float = 1.0  # factor between the value and the exact figure


WORDS = Unit(str)
COUNT = Unit(units.count)
NUMBER = Unit(units.number)
SHARE = Unit(units.share, "%", 100.0)
SECONDS = Unit(units.seconds, "s")
RATE = Unit(units.rate, "records/s")
RECORDS = Unit(lambda value: units.scaled(value, "", 2), "records")
SIZE = Unit(units.size, "MiB", 2.0**-20)


@dataclass(frozen=True)
class Fact:
    """One figure or word of an answer."""

    value: Any  # as in the JSON document
    key: str = ""  # field of the JSON document; empty where it has none
    name: str = ""  # heading; empty where only the JSON document has the fact
    unit: Unit = WORDS
    shown: Literal["always", "wide", "data"] = "always"  # wide: hidden on narrow terminals; data: only an exact figure
    verdict: str = ""  # "safe", "risky" or "unsure", which sets the colour; empty for others

    @property
    def text(self) -> str:
        """The value as readers see it; empty where there is none."""
        return "" if self.value is None else self.unit.write(self.value)

    @property
    def listed(self) -> bool:
        """Whether tables show the fact, and not only the exact figures."""
        return bool(self.name) and self.shown != "data"

    @property
    def exact(self) -> str | float | None:
        """The value in the unit of the exact figures."""
        if self.value is None or isinstance(self.value, str):
            return self.value
        value: float = self.value
        return value if self.unit.factor == 1 else self.unit.factor * value


class Listing(NamedTuple):
    """A table of few rows; `chosen` is the row of the answer, None if there is none."""

    caption: str
    rows: tuple[tuple[Fact, ...], ...]
    chosen: int | None = None


@dataclass(frozen=True)
class Answer:
    """What a result says."""

    name: str  # short and unique on a page
    question: str
    headline: str  # the answer in one sentence
    origin: str  # origin of the figures, such as "SIMULATED"
    of: tuple[str, ...] = ()  # what, when and where they were taken
    details: tuple[str, ...] = ()  # further sentences
    facts: Mapping[str, Any] = field(default_factory=dict)  # the JSON document, where it differs from the rows
    rows: tuple[tuple[Fact, ...], ...] = ()  # every row begins with the fact that names it
    caption: str = ""  # title of the rows
    listed: bool = True  # whether a page shows the rows at once, or only as the exact figures behind its chart
    chosen: int | None = None  # the row of the answer; None if there is none
    listings: tuple[Listing, ...] = ()  # next to the answer on a page
    cautions: Mapping[str, Advice] = field(default_factory=dict)  # what to mind, each with a remedy
    about: Mapping[str, str] = field(default_factory=dict)  # what the figures describe, by name
    draw: "Callable[[], go.Figure] | None" = None  # the chart of the answer
    also: "tuple[Callable[[], Iterable[Card]], ...]" = ()  # what a page shows at once after the answer
    evidence: "tuple[Callable[[], Iterable[Card]], ...]" = ()  # what the answer rests on, made when a page shows it
    in_words: tuple[str, ...] = ()  # `also` and `evidence` in a few lines, for faces that do not show them

    @property
    def source(self) -> str:
        """Origin of the figures, with what, when and where they were taken, in one line."""
        return " · ".join(filter(None, (self.origin, *self.of)))

    def document(self) -> Any:  # noqa: ANN401 - JSON
        """Return the figures for JSON: the facts, or else the rows: a list if their name is a field, else by name."""
        if self.facts or not self.rows:
            return dict(self.facts)
        if self.rows[0][0].key:
            return [fields(row) for row in self.rows]
        return {row[0].value: fields(row) for row in self.rows}


def fields(facts: Iterable[Fact]) -> dict[str, Any]:
    """Return the facts that the JSON document holds, by field."""
    return {fact.key: fact.value for fact in facts if fact.key}
