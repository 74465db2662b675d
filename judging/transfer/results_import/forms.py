"""The form for a results file."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy

from datasets.models import Version
from datasets.uploads import name_from
from evalsite.accounts.models import Project
from judging.runs.forms import VersionChoice
from judging.transfer.results_import.services import run_to_extend


class ResultsForm(forms.Form):
    """A file, the version whose answers it judges, and the run's name, which defaults to the file name."""

    file = forms.FileField(label=gettext_lazy("Results file"))
    version = VersionChoice(label=gettext_lazy("Data set"), queryset=Version.objects.none(), empty_label=None)
    name = forms.CharField(
        label=gettext_lazy("Run name"),
        max_length=200,
        required=False,
        help_text=gettext_lazy(
            "Defaults to the file name. An imported run of this name gets the new verdicts added."
        ),
    )

    def __init__(
        self, data: Any, files: Any, *, project: Project, versions: QuerySet[Version], version: str
    ) -> None:
        super().__init__(data, files, label_suffix="", initial={"version": version})
        self.project = project
        self.fields["version"].queryset = versions  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        sent = self.cleaned_data
        if "file" in sent and "version" in sent and "name" in sent:
            sent["name"] = sent["name"] or name_from(sent["file"].name)
            try:
                run_to_extend(self.project, sent["version"], sent["name"])
            except ValidationError as error:
                self.add_error("name", error)
        return sent


class ResultsPageForm(ResultsForm):
    """With what the API takes from the address."""

    strict = forms.BooleanField(label=gettext_lazy("Import nothing if a line does not fit"), required=False)
