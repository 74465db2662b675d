"""Round numbers for bins and axes."""

import math


def nice_step(raw: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least `raw` > 0 (Heckbert 1990)."""
    power = math.floor(math.log10(raw))
    for factor in (1, 2, 5, 10):
        step = _decimal(factor, power)
        if step >= raw * (1 - 1e-9):
            return step
    return _decimal(10, power)


def step_digits(step: float) -> int:
    """How many decimals multiples of a nice step need."""
    return max(0, -math.floor(math.log10(step) + 1e-9))


def multiples(low: float, high: float, step: float) -> list[float]:
    """The multiples of a nice `step` from the one at or below `low` to the one at or above `high`."""
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = step_digits(step)
    return [round(place * step, digits) for place in range(first, last + 1)]


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round, evenly spaced numbers that enclose low…high: about `about` of them, at least two."""
    if not high > low:
        low, high = low - 0.5, low + 0.5
    return multiples(low, high, nice_step((high - low) / about))


def _decimal(factor: int, power: int) -> float:
    return factor * 10.0**power if power >= 0 else factor / 10.0**-power
