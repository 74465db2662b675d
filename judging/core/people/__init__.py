"""Human evaluation: scales, item assignment, sampling and answer pairs. No I/O."""
