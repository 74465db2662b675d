"""Charts as SVG text, made on the server: no script, no `style`, every text escaped, legible without colour.

Looks come from the classes of `static/css/charts.css`; presentation attributes stand in where that sheet is
absent, as in a downloaded file. All words are the caller's, so that they can be translated.
"""
