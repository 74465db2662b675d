"""The figures of a report: plain numpy, no database; scipy only where a t distribution is asked for.

`columns` is what goes in, `report` builds the document that the page, the command and the API show; the other
modules hold one family of formulas each, with formula, units, assumptions and source in their docstrings.
"""
