"""People's verdicts: on what scale, who gets what next, which answers meet. Pure."""
