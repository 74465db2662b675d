"""Quantiles and tails of the normal and the t distribution.

`scipy.special` is imported inside: it costs 50 MB that a web process without a report need not hold
(`scipy.stats` would cost twice that and three times as long).
"""

from statistics import NormalDist


def normal_quantile(probability: float) -> float:
    """z with P(Z <= z) = probability, for 0 < probability < 1."""
    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, df: float) -> float:
    """t with P(T <= t) = probability for `df` > 0 degrees of freedom (Student's t, inverse of its CDF)."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def t_two_sided(statistic: float, df: float) -> float:
    """P(|T| >= |statistic|) for `df` > 0 degrees of freedom."""
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(statistic)))
