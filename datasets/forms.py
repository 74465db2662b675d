"""Forms for data sets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import UploadedFile
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from datasets.core.formats import FORMAT_NAMES, FORMATS
from datasets.models import Version
from datasets.selectors import candidates_of
from datasets.versions.joined_parts import natural_key

LONGEST_PASTE = 1_000_000  # characters; a form's memory limit is slightly above their size in bytes
Choices = list[tuple[str, Any]]


def format_choices(detect: Any) -> Choices:
    """The four formats, preceded by a choice to detect the format."""
    return [("", detect), *((name, _(FORMAT_NAMES[name])) for name in FORMATS)]


class SeveralFilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class SeveralFiles(forms.FileField):
    """Any number of files, as a list."""

    widget = SeveralFilesInput

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[bytes]]:
        clean = super().clean
        return [file for item in data or () if (file := clean(item, initial))]


class UploadForm(forms.Form):
    """Files or pasted text, and optionally a name and a format.

    In the cleaned data, `files` keep the order in which they are to be joined or listed, and `name` is '' if the files
    name their data sets.
    """

    file = SeveralFiles(label=_("File"), allow_empty_file=True, required=False)
    text = forms.CharField(
        label=_("Text of the file"),
        max_length=LONGEST_PASTE,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false", "class": "mono"}),
        help_text=_(
            "Up to a million characters; comments, trailing commas and objects over many lines can be repaired."
        ),
    )
    together = forms.ChoiceField(
        label=_("If you upload several files"),
        choices=[("each", _("Each file is a data set")), ("parts", _("Parts of one data set"))],
        required=False,
        widget=forms.RadioSelect,
    )
    order = forms.ChoiceField(
        choices=[("name", "name"), ("given", "given")], required=False, widget=forms.HiddenInput
    )
    name = forms.CharField(
        label=_("Name of the data set"),
        max_length=200,
        required=False,
        help_text=_("Defaults to the file name. If a data set with this name exists, it gets a new version."),
    )
    chosen_format = forms.ChoiceField(
        label=_("Format"),
        choices=format_choices(_("Detect automatically")),
        required=False,
        help_text=_("Can be corrected afterwards."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        files: list[UploadedFile[bytes]] = cleaned.get("file", [])
        text = cleaned.get("text", "")
        if files and text.strip():
            raise forms.ValidationError(_("Choose a file or paste a text, not both."))
        if not files and not text.strip() and not self.errors:
            raise forms.ValidationError(_("Choose a file or paste its content."))
        if len(files) > 1 and cleaned.get("order") != "given":
            files = sorted(files, key=lambda file: natural_key(file.name or ""))
        cleaned["files"] = files or [_pasted(text, cleaned.get("chosen_format", ""))]
        cleaned["name"] = cleaned.get("name", "").strip()
        each_is_a_data_set = len(files) > 1 and cleaned.get("together") != "parts"
        if each_is_a_data_set and cleaned["name"]:
            raise forms.ValidationError(
                _("Several data sets can't share a name. Leave it empty, or choose “Parts of one data set”.")
            )
        if not files and not cleaned["name"]:
            cleaned["name"] = _name_of_pasted()
        return cleaned


def _pasted(text: str, chosen_format: str) -> ContentFile[bytes]:
    """Pasted text as a file, with the line feeds it had before the browser sent it."""
    ending = "csv" if chosen_format == "legacy_csv" else "jsonl"
    content = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    return ContentFile(content, name=f"pasted.{ending}")


def _name_of_pasted() -> str:
    """Default name: each pasted text becomes a separate data set unless a name is given."""
    return gettext("Pasted text, %(when)s") % {"when": f"{timezone.localtime():%Y-%m-%d %H:%M:%S}"}


class FormatForm(forms.Form):
    """The format in which to read a version's file."""

    chosen_format = forms.ChoiceField(
        label=_("Read as"), choices=format_choices(_("detect from content")), required=False
    )


class ModelNameForm(forms.Form):
    """The model whose answers a legacy file contains."""

    model_name = forms.CharField(label=_("Name of the model"), max_length=1000)


class AnswersForm(forms.Form):
    """A file of answers to attach, and how its lines identify their rows."""

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
        help_text=_("Only for legacy files: the model that wrote the responses."),
    )


class RowFilterForm(forms.Form):
    """Filter of the row browser; every field is a query parameter."""

    q = forms.CharField(label=_("Search in the text"), max_length=200, required=False)
    model = forms.TypedChoiceField(label=_("Answered by"), coerce=int, empty_value=None, required=False)
    field = forms.ChoiceField(label=_("Field"), required=False)
    value = forms.CharField(label=_("has the value"), max_length=200, required=False)
    finding = forms.ChoiceField(label=_("Findings"), required=False)
    line = forms.IntegerField(label=_("Go to line"), min_value=1, max_value=2**31 - 1, required=False)

    def __init__(self, data: Any, version: Version) -> None:
        super().__init__(data, label_suffix="")
        candidates = candidates_of(version)
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
