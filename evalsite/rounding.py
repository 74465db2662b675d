"""Numbers as rounded texts: the only place that rounds what people read.

A number is rounded as it is written, not as it is stored: 5.475 is a little less than that in binary, and yet 5.48.
Exactly between two texts, the one with the even digit is chosen: 5.475 → 5.48, 5.465 → 5.46.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

_CONTEXT = Context(prec=400, rounding=ROUND_HALF_EVEN)  # a float has at most 309 digits before the point


def exact(value: float) -> Decimal:
    """The number as it is written."""
    return Decimal(repr(float(value)))


def rounded(value: float | Decimal, places: int = 0) -> Decimal:
    """The number with exactly `places` decimals; never −0."""
    number = value if isinstance(value, Decimal) else exact(value)
    result = number.quantize(Decimal(1).scaleb(-places), context=_CONTEXT)
    return result if result else abs(result)


def adding_up(parts: Sequence[float], total: float, places: int) -> list[Decimal]:
    """The parts of `total` with exactly `places` decimals, so that they add up to the rounded total: those with the
    largest remainders are rounded up, the others down."""
    unit = Decimal(1).scaleb(-places)
    rounded_parts = [exact(part).quantize(unit, ROUND_FLOOR, _CONTEXT) for part in parts]
    missing = int((rounded(total, places) - sum(rounded_parts)) / unit)
    by_remainder = sorted(range(len(parts)), key=lambda place: rounded_parts[place] - exact(parts[place]))
    for place in by_remainder[:missing]:
        rounded_parts[place] += unit
    return [part if part else abs(part) for part in rounded_parts]


def fixed(value: float | Decimal, places: int = 0, *, thousands: bool = False) -> str:
    """With exactly `places` decimals, so that a column is aligned: 5.475 → 5.48, 7 → 7.00."""
    return f"{rounded(value, places):{',' if thousands else ''}f}"


def fixed_percent(share: float, places: int = 0) -> str:
    """A share in percent, without the sign: 0.5475 → 54.8 (with one decimal)."""
    return fixed(exact(share) * 100, places)


def without_zeros(text: str) -> str:
    """A decimal fraction without trailing zeros: 7.500 → 7.5."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def shortest(value: float, places: int) -> str:
    """With at most `places` decimals: 7.5 → 7.5, 7.12345 → 7.123."""
    return without_zeros(fixed(value, places))


def significant(value: float, digits: int) -> str:
    """With at most `digits` significant digits, and an exponent for very large and very small numbers."""
    number = exact(value)
    if not number:
        return "0"
    shortened = rounded(number, digits - 1 - number.adjusted())
    if -5 <= shortened.adjusted() < max(digits, 6):
        return without_zeros(f"{shortened:f}")
    mantissa, exponent = f"{shortened.normalize(_CONTEXT):e}".split("e")
    return f"{without_zeros(mantissa)}e{int(exponent):+03d}"
