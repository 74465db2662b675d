"""The figures of a report: functions over a pandas DataFrame with one row for each judgement; no database.

`frame` describes that table and makes it; `report` builds the document that the page, the command and the API show;
the other modules hold one family of formulas each, with formula, units, assumptions and source in their docstrings.
docs/notebook.md shows how to use them in a notebook.
"""
