"""The statistics of a report: functions over a pandas DataFrame with one row per judgement; no database access.

`frame` describes and builds that table; `report` builds the document shown by the page, the command and the API; each
other module holds one family of formulas, with formula, units, assumptions and source in the docstrings.
docs/notebook.md shows how to use them in a notebook.
"""
