"""The form of a further draw of answers for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evalsite.accounts.models import User
from judging.people.asking.draws import NewStudy
from judging.people.models import Evaluation
from judging.people.selectors import possible_raters
from judging.records.models import Run

NEW = ""
MOST = 100_000


class AskForm(forms.Form):
    """How many answers, and who rates them: an evaluation of this run that is open, or a new one."""

    size = forms.IntegerField(
        label=_("Answers"),
        min_value=1,
        max_value=MOST,
        help_text=_("About so many are drawn: each answer by itself, with its own probability."),
    )
    into = forms.ChoiceField(label=_("Rated in"), required=False)
    raters = forms.ModelMultipleChoiceField(
        label=_("Raters"), queryset=User.objects.none(), required=False, widget=forms.CheckboxSelectMultiple
    )
    overlap = forms.IntegerField(
        label=_("Raters per answer"), min_value=1, max_value=20, initial=1, required=False
    )

    def __init__(self, data: Any, run: Run, evaluations: Sequence[Evaluation]) -> None:
        super().__init__(data, initial={"size": 50, "into": evaluations[0].run_id if evaluations else NEW})
        self.evaluations = {str(evaluation.run_id): evaluation for evaluation in evaluations}
        names = [(pk, evaluation.run.name) for pk, evaluation in self.evaluations.items()]
        self.fields["into"].choices = [*names, (NEW, _("A new evaluation"))]  # type: ignore[attr-defined]
        self.fields["raters"].queryset = possible_raters(run.project)  # type: ignore[attr-defined]
        if evaluations:
            self.fields["raters"].help_text = gettext("For a new evaluation only.")

    @property
    def study(self) -> Evaluation | NewStudy:
        """Call after is_valid."""
        chosen = self.evaluations.get(self.cleaned_data["into"])
        return chosen or NewStudy(list(self.cleaned_data["raters"]), self.cleaned_data["overlap"] or 1)
