"""How a reply can state a value, with what users read about it."""

from __future__ import annotations

from dataclasses import dataclass

from datasets.core.texts import Text, gettext_noop
from judging.core.reading.statements import Form


@dataclass(frozen=True, slots=True)
class FormKind:
    """The name of a form, what is read where, and an example on a scale from 1 to 10."""

    name: Text
    rule: Text
    example: str


FORMS: dict[Form, FormKind] = {
    "json": FormKind(
        gettext_noop("JSON"),
        gettext_noop(
            "An object anywhere in the reply, with the value under a name such as score or verdict."
        ),
        '{"reasoning": "…", "score": 8}',
    ),
    "brackets": FormKind(
        gettext_noop("double brackets"),
        gettext_noop("Anywhere in the reply, with or without a name."),
        "[[8]]",
    ),
    "tag": FormKind(
        gettext_noop("tag"),
        gettext_noop("Anywhere, under a name such as score or verdict."),
        "<score>8</score>",
    ),
    "label": FormKind(
        gettext_noop("name and value"),
        gettext_noop(
            "Anywhere: the name, then a colon or “is”, then the value alone to the end of its clause."
        ),
        "Score: 8",
    ),
    "bare": FormKind(
        gettext_noop("value alone"),
        gettext_noop("Nothing but the value, as the first line or the last sentence."),
        "8/10",
    ),
    "prose": FormKind(
        gettext_noop("last sentence"),
        gettext_noop("Only where the reply has none of the forms above, and only in its last sentence."),
        "I'd rate this answer an 8.",
    ),
}
"""In the order in which they are looked for."""
