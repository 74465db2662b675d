"""LaTeX formulas as MathML, which browsers draw themselves."""

from __future__ import annotations

import re

LONGEST = 2_000  # characters; a longer formula is shown as it is written
_DEFINITION = re.compile(r"\\(?:(?:re)?new(?:command|environment)|def|DeclareMathOperator)(?![a-zA-Z])")


def mathml(latex: str, *, display: bool) -> str | None:
    """A `<math>` element, not yet cleaned (commands such as \\href reach its attributes); None where it can't be made.

    The converter has no grammar of its own to fail by: what is not LaTeX raises whatever it stumbles over.
    """
    if len(latex) > LONGEST or not latex.strip() or _DEFINITION.search(latex):
        return None  # definitions that use each other could grow without end
    from latex2mathml.converter import (
        convert,
    )  # with the first formula: a process that starts does not wait for it

    try:
        return convert(latex, display="block" if display else "inline")
    except (Exception, RecursionError):
        return None
