"""How a metric's judge models are asked, beyond their prompts and parameters."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from judging.core.metric_definition import MetricDefinition

FIELDS = ("ask_again", "structured")


class AskingForm(forms.Form):
    ask_again = forms.TypedChoiceField(
        label=gettext_lazy("If a reply can't be read"),
        required=False,
        coerce=int,
        empty_value=None,
        choices=[
            (0, gettext_lazy("leave it unparsed")),
            (1, gettext_lazy("ask once more")),
            (2, gettext_lazy("ask up to twice more")),
        ],
        help_text=gettext_lazy(
            "The judge gets its reply back with a sentence that says what was wrong. Every call counts."
        ),
    )
    structured = forms.ChoiceField(
        label=gettext_lazy("Structured output"),
        required=False,
        choices=[
            ("auto", gettext_lazy("where the server supports it")),
            ("on", gettext_lazy("always")),
            ("off", gettext_lazy("not used")),
        ],
        help_text=gettext_lazy(
            "Asks for JSON by a schema made from the metric. “Where the server supports it” needs a connection test, "
            "and a built-in template or {{ answer_format }}, without postprocess."
        ),
    )


def asking_values(values: dict[str, Any], before: MetricDefinition) -> dict[str, Any]:
    """The fields of the definition, from the form's cleaned data; those that were not sent stay as `before`."""
    return {name: getattr(before, name) if values[name] in (None, "") else values[name] for name in FIELDS}
