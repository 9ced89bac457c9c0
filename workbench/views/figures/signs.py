"""How the verdicts on probes are marked: colour, shape and word."""

from collections.abc import Mapping
from types import MappingProxyType

from workbench.views.theme import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILLION, Sign

VERDICTS: Mapping[str, Sign] = MappingProxyType(
    {
        "sustained": Sign(BLUE, "circle", "sustained"),
        "overloaded": Sign(VERMILLION, "x", "overloaded"),
        "lower load": Sign(GREEN, "circle-open", "at lower rates, for the costs"),
        "reading": Sign(BLUE, "circle", "in the log's largest batches"),
        "source-bound": Sign(PURPLE, "diamond", "source-bound (not counted)"),
        "disturbed": Sign(PURPLE, "square", "disturbed (not counted)"),
        "warming": Sign(PURPLE, "square-open", "code still compiled (not counted)"),
        "not-at-capacity": Sign(PURPLE, "circle-open", "slots not at capacity (not counted)"),
        "not-offered": Sign(BLACK, "triangle-up", "not offered (not counted)"),
        "warm-up": Sign(GREY, "diamond-open", "warm-up"),
    }
)

COUNTED = frozenset({"sustained", "overloaded", "lower load", "reading"})
"""Verdicts of valid probes, and observations at lower rates."""
