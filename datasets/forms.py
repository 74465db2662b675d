"""Forms about data sets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import UploadedFile
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from datasets import files
from datasets.core.formats.names import FORMATS
from datasets.models import Candidate, Version
from datasets.words import FORMAT_NAMES

LONGEST_PASTE = 1_000_000  # characters; what a form may hold in memory is a little more than their bytes
Choices = list[tuple[str, Any]]


def format_choices(detect: Any) -> Choices:
    """The four formats after a first choice that lets the content decide."""
    return [("", detect), *((name, FORMAT_NAMES[name]) for name in FORMATS)]


class UploadForm(forms.Form):
    """A file or a pasted text, and if one wants to say so, its name and its format."""

    file = forms.FileField(label=_("File"), allow_empty_file=True, max_length=1000, required=False)
    text = forms.CharField(
        label=_("Text of the file"),
        max_length=LONGEST_PASTE,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false", "class": "mono"}),
        help_text=_(
            "Up to a million characters; comments, trailing commas and objects over many lines can be mended."
        ),
    )
    name = forms.CharField(
        label=_("Name of the data set"),
        max_length=200,
        required=False,
        help_text=_("Taken from the file if left empty. A name that exists here gets a further version."),
    )
    chosen_format = forms.ChoiceField(
        label=_("Format"),
        choices=format_choices(_("Find out from the content")),
        required=False,
        help_text=_("Can be corrected afterwards."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        file: UploadedFile[bytes] | None = cleaned.get("file")
        text = cleaned.get("text", "")
        if file is not None and text.strip():
            raise forms.ValidationError(_("Choose a file or paste a text, not both."))
        if file is None and not text.strip() and not self.errors:
            raise forms.ValidationError(_("Choose a file, or paste its text."))
        if file is None:
            cleaned["file"] = _pasted(text, cleaned.get("chosen_format", ""))
        if not cleaned.get("name", "").strip():
            cleaned["name"] = files.name_from(file.name or "") if file is not None else _name_of_pasted()
        return cleaned


def _pasted(text: str, chosen_format: str) -> ContentFile[bytes]:
    """A pasted text as a file, with line feeds as it had them before a browser sent it."""
    ending = "csv" if chosen_format == "legacy_csv" else "jsonl"
    content = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    return ContentFile(content, name=f"pasted.{ending}")


def _name_of_pasted() -> str:
    """Each pasted text is a data set of its own, unless a name is given."""
    return gettext("Pasted text, %(when)s") % {"when": f"{timezone.localtime():%Y-%m-%d %H:%M:%S}"}


class FormatForm(forms.Form):
    """Which format a version's file is to be read as."""

    chosen_format = forms.ChoiceField(
        label=_("Read it as"), choices=format_choices(_("what its content says")), required=False
    )


class ModelNameForm(forms.Form):
    """Whose answers a legacy file holds."""

    model_name = forms.CharField(label=_("Name of the model"), max_length=1000)


class AnswersForm(forms.Form):
    """A file of answers to attach, and how its lines name their rows."""

    file = forms.FileField(label=_("File"), allow_empty_file=True, max_length=1000)
    match_by = forms.ChoiceField(
        label=_("Match its lines by"),
        choices=[
            ("", _("what each line has")),
            ("id", _("the field “id”")),
            ("line", _("the line number")),
            ("prompt", _("the same prompt")),
        ],
        required=False,
        help_text=_("By default an “id” is tried first, then “line”, then “messages”."),
    )
    model_name = forms.CharField(
        label=_("Name of the model"),
        max_length=1000,
        required=False,
        help_text=_("Wanted for a legacy file only: whose answers its responses are."),
    )


class RowFilterForm(forms.Form):
    """What the row browser shows; every field is in the address."""

    q = forms.CharField(label=_("Search in the text"), max_length=200, required=False)
    model = forms.ChoiceField(label=_("Answered by"), required=False)
    field = forms.ChoiceField(label=_("Field"), required=False)
    value = forms.CharField(label=_("has the value"), max_length=200, required=False)
    finding = forms.ChoiceField(label=_("Findings"), required=False)
    line = forms.IntegerField(label=_("Go to line"), min_value=1, max_value=2**31 - 1, required=False)

    def __init__(self, data: Any, version: Version, candidates: list[Candidate]) -> None:
        super().__init__(data, label_suffix="")
        models: Choices = [("", _("any model")), *((str(c.pk), c.name) for c in candidates)]
        findings: Choices = [
            ("", _("all rows")),
            ("any", _("only rows with findings")),
            *((code, code) for code in sorted(version.counts)),
        ]
        names: Choices = [("", _("any field")), *((name, name) for name in sorted(version.fields_found))]
        self.fields["model"].choices = models  # type: ignore[attr-defined]
        self.fields["field"].choices = names  # type: ignore[attr-defined]
        self.fields["value"].widget.attrs["list"] = "values"
        self.fields["finding"].choices = findings  # type: ignore[attr-defined]
        self.fields["q"].widget = forms.TextInput(attrs={"type": "search"})
