"""Numbers in text: three digits, a prefix where it helps, a blank, always the unit.

>>> rate(1_234_000)
'1.23 M records/s'
>>> size(0)
'0 B'
>>> seconds(0.0123)
'12.3 ms'
"""

import math
import re

from workbench.errors import WorkbenchError

_DIGITS, _MOST_DIGITS = 3, 6
_LEAST = 1e-15  # in any unit, a value nearer to 0 is a rounding error
_LARGE = ("", "k", "M", "G", "T", "P")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_READ = ("", "K", "M", "G")
_RATE = re.compile(r"\s*((?:\d{1,3}(?:,\d{3})+|\d+)\.?\d*(?:[eE][+-]?\d{1,3})?)\s*([kKmMgG]?)\s*(?:records/s)?\s*")
_SMALL = ("s", "ms", "µs", "ns")
_BEFORE_A_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGTP]|MB|GB|%|core|records/s)(?!\w))|(?<=\d [kMGTP]) (?=records/s)")

UNKNOWN = "unknown"
UNLIMITED = "unlimited"


def number(value: float | None, digits: int = _DIGITS) -> str:
    """Write `value` with `digits` significant digits, without exponent or trailing zeros."""
    if (word := _word(value)) or value is None:
        return word
    if abs(value) < _LEAST:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{round(value, places):,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: float | None, unit: str = "") -> str:
    """Write a whole number with thousands separators: ``count(1234, "rows")`` is ``"1,234 rows"``."""
    return _word(value) or f"{value:,.0f} {unit}".rstrip()


def some(number: int, thing: str) -> str:
    """Write how many of a thing there are: ``some(1, "slot")`` is ``"1 slot"``, ``some(2, "slot")`` ``"2 slots"``."""
    return count(number, thing if number == 1 else f"{thing}s")


def scaled(value: float | None, unit: str, digits: int = _DIGITS) -> str:
    """Write a quantity with a decimal prefix: ``scaled(12_345, "rows")`` is ``"12.3 k rows"``."""
    if (word := _word(value)) or value is None:
        return word
    mantissa, step = _reduce(value, 1000.0, len(_LARGE) - 1, digits)
    return " ".join(part for part in (number(mantissa, digits), _LARGE[step], unit) if part)


def read_rate(text: str) -> float:
    """Read records per second as people write them: ``"1,500,000"``, ``"1.5M"`` or ``"1.5 M records/s"``."""
    found = _RATE.fullmatch(text)
    value = float(found[1].replace(",", "")) * 1000.0 ** _READ.index(found[2].upper()) if found else 0.0
    if not 0 < value < math.inf:
        raise WorkbenchError(f"The rate is {text!r}; write records/s above 0, such as 1,500,000 or 1.5 M.")
    return value


def rate(value: float | None, digits: int = _DIGITS) -> str:
    """Write records per second."""
    return scaled(value, "records/s", digits)


def ends(low: float | None, high: float | None, unit: str = "", digits: int = _DIGITS) -> tuple[str, str]:
    """Write two quantities with as many digits, at least three, as distinguish them: ``"12.9 k"`` and ``"13.0 k"``."""
    while digits < _MOST_DIGITS and low != high and padded(low, unit, digits) == padded(high, unit, digits):
        digits += 1
    return padded(low, unit, digits), padded(high, unit, digits)


def padded(value: float | None, unit: str, digits: int = _DIGITS) -> str:
    """Write a quantity as `scaled` does, with the zeros at its end."""
    if value is None or _word(value) or abs(value) < _LEAST:
        return scaled(value, unit)
    mantissa, step = _reduce(value, 1000.0, len(_LARGE) - 1, digits)
    places = max(0, digits - 1 - math.floor(math.log10(abs(float(f"{mantissa:.{digits}g}")))))
    return " ".join(part for part in (f"{mantissa:,.{places}f}", _LARGE[step], unit) if part)


def size(value: float | None) -> str:
    """Write bytes with a binary prefix."""
    if (word := _word(value)) or value is None:
        return word
    mantissa, step = _reduce(value, 1024.0, len(_BINARY) - 1, _DIGITS + 1)
    return f"{number(mantissa)} {_BINARY[step]}"


def seconds(value: float | None) -> str:
    """Write a duration, from nanoseconds to hours."""
    if (word := _word(value)) or value is None:
        return word
    if abs(value) >= 3600:
        return f"{number(value / 3600)} h"
    if abs(value) >= 120:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    step, mantissa = 0, value
    while mantissa and abs(mantissa) < 0.9995 and step < len(_SMALL) - 1:
        step, mantissa = step + 1, mantissa * 1000
    return f"{number(mantissa)} {_SMALL[step]}"


def clock(seconds: float) -> str:
    """Write a time since midnight as a clock shows it: ``"06:30"``, ``"06:30:05"``, ``"day 2, 06:30"``."""
    days, rest = divmod(round(seconds), 86_400)
    hours, minutes, left = rest // 3600, rest // 60 % 60, rest % 60
    text = f"{hours:02}:{minutes:02}" + (f":{left:02}" if left else "")
    return f"day {days + 1}, {text}" if days else text


def time_scale(seconds: float) -> tuple[float, str]:
    """Return the divisor and the unit that give an axis of so long a time short numbers."""
    return next(((scale, unit) for scale, unit in ((3600.0, "h"), (60.0, "min")) if seconds >= 3 * scale), (1.0, "s"))


def moment(at: str) -> str:
    """Write an ISO time in UTC to the minute: ``"2026-01-31 04:00 UTC"``."""
    return f"{at[:16].replace('T', ' ')} UTC"


def share(value: float | None) -> str:
    """Write a fraction of 1 as a percentage."""
    if (word := _word(value)) or value is None:
        return word
    return f"{number(value * 100)} %"


def percent(share: float, decimals: int = 0) -> str:
    """Write a fraction of 1 as a percentage, rounded to `decimals`."""
    return f"{share * 100:,.{decimals}f} %"


def kept_whole(text: str, gap: str = "\N{NO-BREAK SPACE}") -> str:
    """Put `gap` instead of the blanks between a number and its unit, so that no line ends there."""
    return _BEFORE_A_UNIT.sub(gap, text)


def chance(probability: float) -> str:
    """Write a probability in whole percent; below one with one decimal, and never as 0."""
    if probability < 0.001:
        return "under 0.1 %"
    return percent(probability, int(probability < 0.01))


def _word(value: float | None) -> str:
    """Return the word for a value that is not a finite number; empty for a finite number."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return UNLIMITED if value > 0 else f"-{UNLIMITED}"
    return ""


def _reduce(value: float, base: float, most: int, digits: int) -> tuple[float, int]:
    """Divide by `base` until the rounded mantissa is below it."""
    step = 0
    while step < most and abs(float(f"{value:.{digits}g}")) >= base:
        value, step = value / base, step + 1
    return value, step
