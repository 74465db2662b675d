"""Form fields for JSON objects and for secrets."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from judging.core.json_size import check_json_size
from judging.core.judges.outside_text import clean_json
from judging.messages import localized

MAX_PARAMS = 20_000  # characters


class JsonObjectField(forms.CharField):
    """A JSON object as text; errors name line and column. Empty means {}."""

    def __init__(self, **more: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"})
        super().__init__(required=False, max_length=MAX_PARAMS, widget=widget, **more)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return json.dumps(value, ensure_ascii=False, indent=2) if value else ""
        return value

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        return json_object(text) if text else {}


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValidationError with line and column."""
    try:
        check_json_size(text.encode("utf-8", "replace"), depth=50, marks=100_000)
        value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        sentence = _("Invalid JSON: %(problem)s, line %(line)s, column %(column)s.")
        place = {"problem": localized(error.msg), "line": error.lineno, "column": error.colno}
        raise forms.ValidationError(sentence % place, code="json") from None
    except (RecursionError, ValueError) as error:
        raise forms.ValidationError(
            _("Invalid JSON: %(problem)s.") % {"problem": error}, code="json"
        ) from None
    if not isinstance(value, dict):
        raise forms.ValidationError(_('Enter a JSON object, for example {"temperature": 0}.'), code="json")
    for name in ("model", "messages"):
        if name in value:
            sentence = _("“%(name)s” can't be set here: it comes from the endpoint and the template.")
            raise forms.ValidationError(sentence % {"name": name}, code="json")
    return dict(clean_json(value))


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, count in Counter(name for name, _value in pairs).items():
        if count > 1:
            raise ValueError(_("duplicate name “%(name)s”") % {"name": name})
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(_("%(name)s is not a JSON value") % {"name": name})


class SecretField(forms.CharField):
    """Write-only: the stored value is never sent to the page, and an empty field keeps it."""

    def __init__(self, *, rows: int = 0, **more: Any) -> None:
        attrs = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off", "data-secret": True}
        widget: forms.Widget = (
            _EmptyTextarea(attrs=attrs | {"rows": rows, "class": "mono"})
            if rows
            else forms.PasswordInput(attrs=attrs | {"autocomplete": "new-password"})
        )
        super().__init__(required=False, widget=widget, **more)


class _EmptyTextarea(forms.Textarea):
    """Never renders the submitted text, not even after a validation error."""

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        return super().get_context(name, None, attrs)


REMOVE = gettext_lazy("Remove stored value")
