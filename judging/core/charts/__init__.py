"""Charts as SVG text, rendered on the server: no scripts, no `style`, all text escaped, legible without colour.

Styles come from the classes of `static/css/charts.css`; presentation attributes are the fallback without that
stylesheet, as in a downloaded file. All texts come from the caller, so that they can be translated.
"""
