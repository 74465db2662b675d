"""Which models a new run asks for answers: an endpoint each, with what is said to it."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from judging.core.candidates import MOST_ANSWERS, CandidateModel
from judging.endpoints.fields import JsonObjectField
from judging.endpoints.models import Endpoint

MOST_MODELS = 4
PREFIX = "asked"


class EndpointChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Names an endpoint with its model."""

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} ({obj.model})"


class AskedForm(forms.Form):
    """One model; without an endpoint it is none."""

    endpoint = EndpointChoice(
        Endpoint.objects.none(), label=_("Endpoint"), required=False, empty_label=_("none")
    )
    name = forms.CharField(
        label=_("Candidate name"),
        max_length=200,
        required=False,
        help_text=_("Shown in the report. Defaults to the endpoint name."),
    )
    model = forms.CharField(
        label=_("Model ID override"),
        max_length=300,
        required=False,
        help_text=_("Defaults to the endpoint's model."),
    )
    n = forms.IntegerField(
        label=_("Answers per row"), min_value=1, max_value=MOST_ANSWERS, initial=1, required=False
    )
    system_prompt = forms.CharField(
        label=_("System prompt"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Sent as the first message, unless the row has its own system message."),
    )
    params = JsonObjectField(
        label=_("Generation parameters"),
        help_text=_(
            'JSON object, for example {"temperature": 0.7, "seed": 1}. Row fields with the same names take '
            "precedence. With several answers per row, each gets seed + 1."
        ),
    )

    def __init__(self, *args: Any, endpoints: QuerySet[Endpoint], **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["endpoint"].queryset = endpoints  # type: ignore[attr-defined]

    def candidate(self) -> CandidateModel | None:
        """After is_valid; None where no endpoint is chosen."""
        sent = self.cleaned_data
        endpoint: Endpoint | None = sent.get("endpoint")
        if endpoint is None:
            return None
        return CandidateModel(
            name=sent["name"] or endpoint.name,
            endpoint=endpoint.pk,
            model=sent["model"],
            system_prompt=sent["system_prompt"] or None,
            params=sent["params"],
            n=sent["n"] or 1,
        )


class BaseAskedForms(forms.BaseFormSet):  # type: ignore[type-arg]
    def candidates(self) -> list[CandidateModel]:
        """The models that are chosen; none where the forms say nothing sensible."""
        if not self.is_bound or not self.is_valid():
            return []
        return [found for form in self.forms if (found := form.candidate())]


_Forms = forms.formset_factory(
    AskedForm,
    formset=BaseAskedForms,
    extra=0,
    min_num=MOST_MODELS,
    max_num=MOST_MODELS,
    absolute_max=MOST_MODELS,
)


def asked_forms(data: Any, endpoints: QuerySet[Endpoint]) -> BaseAskedForms:
    """Bound where the data have them."""
    sent = data if data is not None and f"{PREFIX}-TOTAL_FORMS" in data else None
    return cast(BaseAskedForms, _Forms(sent, prefix=PREFIX, form_kwargs={"endpoints": endpoints}))
