"""Forms for a new run, its budget, and the models that generate answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar, cast

from django import forms
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import QuerySet
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from datasets.models import Candidate, Version
from evalsite.templatetags.show import number
from judging.core.candidates import MOST_ANSWERS, CandidateModel
from judging.endpoints.fields import JsonObjectField
from judging.endpoints.models import Endpoint
from judging.endpoints.selectors import offers_batches
from judging.engine.budget import MILLION, Budget
from judging.engine.rubric_rows import UNREADABLE
from judging.records.models import Priority, Run
from judging.runs.selectors import MetricChoice
from judging.runs.services import RunOptions

Created = TypeVar("Created")


def create_once(
    form: forms.Form, make: Callable[[], Created], earlier: Callable[[], Created | None]
) -> Created | None:
    """Call `make`; if the name is taken, return the `earlier` object of the same form. None: the form has errors."""
    try:
        return make()
    except IntegrityError:
        existing = earlier()
        if existing is None:
            form.add_error("name", _("A run with this name already exists. Choose another name."))
        return existing
    except ValidationError as error:
        form.add_error(None, error)
        return None


class BudgetForm(forms.Form):
    """Limits for a whole run."""

    budget_calls = forms.IntegerField(label=_("Max requests"), min_value=1, max_value=10**15, required=False)
    budget_tokens = forms.IntegerField(
        label=_("Max tokens"),
        min_value=1,
        max_value=10**15,
        required=False,
        help_text=_("Input and output combined."),
    )
    budget_money = forms.DecimalField(
        label=_("Max cost"),
        min_value=Decimal("0.01"),
        max_digits=12,
        decimal_places=4,
        required=False,
        help_text=_("In the currency of the endpoint prices."),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )

    def budget(self) -> Budget:
        """The budget. Call only after is_valid."""
        sent = self.cleaned_data
        money = sent["budget_money"]
        return Budget(
            sent["budget_calls"], sent["budget_tokens"], None if money is None else int(money * MILLION)
        )


def raise_budget_form(run: Run, data: Any = None) -> BudgetForm:
    """The form to raise a paused run's budget, filled with its current limits."""
    money = None if run.budget_money is None else Decimal(run.budget_money) / MILLION
    initial = {
        "budget_calls": run.budget_calls,
        "budget_tokens": run.budget_tokens,
        "budget_money": money.normalize() if money is not None else None,
    }
    return BudgetForm(data, initial=initial)


MOST_MODELS = 4
PREFIX = "asked"


class EndpointChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Labels an endpoint with its model."""

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} · {obj.model}"


class CandidateForm(forms.Form):
    """A model that generates answers. Without an endpoint the form is ignored."""

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

    def proposed(self) -> CandidateModel | None:
        """The model of a form that was not sent yet; None without an endpoint."""
        endpoint: Endpoint | None = self.initial.get("endpoint")
        return CandidateModel(name=endpoint.name, endpoint=endpoint.pk) if endpoint else None

    def candidate(self) -> CandidateModel | None:
        """The chosen model; None without an endpoint. Call only after is_valid."""
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


class BaseCandidateForms(forms.BaseFormSet):  # type: ignore[type-arg]
    def candidates(self) -> list[CandidateModel]:
        """The chosen models, of forms not sent yet the proposed ones; empty if the forms are invalid."""
        if not self.is_bound:
            return [candidate for form in self.forms if (candidate := form.proposed())]
        if not self.is_valid():
            return []
        return [candidate for form in self.forms if (candidate := form.candidate())]


_Forms = forms.formset_factory(
    CandidateForm,
    formset=BaseCandidateForms,
    extra=0,
    min_num=MOST_MODELS,
    max_num=MOST_MODELS,
    absolute_max=MOST_MODELS,
)


def candidate_forms(
    data: Any, endpoints: QuerySet[Endpoint], *, has_answers: bool = True
) -> BaseCandidateForms:
    """The formset, bound if the data include it. For a version without answers the project's only tested endpoint is
    proposed to generate them."""
    sent = data if data is not None and f"{PREFIX}-TOTAL_FORMS" in data else None
    tested = [] if has_answers else [endpoint for endpoint in endpoints if endpoint.works]
    initial = [{"endpoint": tested[0]}] if len(tested) == 1 else None
    more: dict[str, Any] = {"prefix": PREFIX, "form_kwargs": {"endpoints": endpoints}}
    return cast(BaseCandidateForms, _Forms(sent, initial=initial, **more))


SEEDS = 2**31
MORE = ("budget_calls", "budget_tokens", "budget_money", "priority", "stop_width", "seed")
FEW_ROWS = 20  # for a first trial


class VersionChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Labels a version with its data set, number and size."""

    def label_from_instance(self, obj: Any) -> str:
        text = ngettext(
            "%(name)s, version %(number)s (%(rows)s row)",
            "%(name)s, version %(number)s (%(rows)s rows)",
            obj.valid_rows,
        )
        return text % {
            "name": obj.dataset.name,
            "number": obj.number,
            "rows": number(obj.valid_rows),
        }


class CandidateChoice(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Labels a candidate with its number of answers."""

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError:  # raised by SQLite for ids beyond 64 bits, which no candidate has
            raise forms.ValidationError(
                self.error_messages["invalid_choice"], code="invalid_choice", params={"value": value}
            ) from None

    def label_from_instance(self, obj: Any) -> str:
        text = ngettext("%(name)s (%(count)s answer)", "%(name)s (%(count)s answers)", obj.responses)
        return text % {"name": obj.name, "count": number(obj.responses)}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The inputs of a new run, including the models that generate answers."""

    candidates: list[Candidate]
    metrics: list[MetricChoice]
    sample_size: int | None
    candidate_models: list[CandidateModel]
    batched: bool


def _row_choices(rows: int) -> list[tuple[str, str]]:
    few = [("few", gettext("%(n)s random rows") % {"n": FEW_ROWS})] if rows > FEW_ROWS else []
    every = ngettext("All %(n)s row", "All %(n)s rows", rows) % {"n": number(rows)}
    return [*few, ("all", every), ("some", gettext("Custom"))]


class RunForm(BudgetForm):
    """The form for a new run: what to judge, with which metrics, on how many rows."""

    version = VersionChoice(Version.objects.none(), label=_("Data set"), empty_label=None)
    candidates = CandidateChoice(
        Candidate.objects.none(),
        label=_("Candidates"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    metrics = forms.MultipleChoiceField(label=_("Metrics"), widget=forms.CheckboxSelectMultiple)
    rows_wanted = forms.ChoiceField(
        label=_("Rows"),
        required=False,
        widget=forms.RadioSelect,
    )
    sample_size = forms.IntegerField(
        label=_("Sample size"),
        min_value=1,
        max_value=100_000_000,
        required=False,
        help_text=_("Number of random rows. Leave empty to use all rows."),
    )
    seed = forms.IntegerField(
        label=_("Random seed"),
        min_value=0,
        max_value=SEEDS - 1,
        required=False,
        help_text=_("The same seed selects the same rows."),
    )
    name = forms.CharField(label=_("Name"), max_length=200)
    priority = forms.TypedChoiceField(
        label=_("Priority"),
        choices=Priority.choices,
        coerce=int,
        initial=Priority.NORMAL,
        required=False,
        empty_value=str(int(Priority.NORMAL)),
        help_text=_("Each level gets three times the calls of the one below when runs share an endpoint."),
    )
    stop_width = forms.FloatField(
        label=_("Stop early when every mean is within ±"),
        min_value=1e-6,
        required=False,
        help_text=_(
            "In score points, at 95 % confidence (valid at any time). Rows are judged in random order. Leave "
            "empty to judge all rows."
        ),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    reuse_replies = forms.BooleanField(
        label=_("Reuse replies to identical requests"),
        required=False,
        help_text=_(
            "Within this project, for judges at temperature 0, when address, model and the full request match. "
            "Reused replies are free and marked with their source."
        ),
    )

    reuse_at_any_temperature = forms.BooleanField(
        label=_("Also at other temperatures"),
        required=False,
        help_text=_(
            "A new call could return a different reply, so repeated runs no longer show judge variance."
        ),
    )

    batched = forms.BooleanField(
        label=_("Cheaper, within a day"),
        required=False,
        help_text=_(
            "Requests are sent in batches, usually at half the price. The server answers within 24 hours."
        ),
    )
    plain_if_expired = forms.BooleanField(
        label=_("Send alone what a batch did not answer in time"), required=False
    )
    leave_out_unreadable = forms.BooleanField(
        label=_("Leave out rows without a rubric that can be read"), required=False
    )

    @property
    def offers_to_leave_out(self) -> bool:
        """Whether the run was refused because of rows without a readable rubric, or is to leave them out."""
        errors = self.errors.as_data().get("__all__", []) if self.is_bound else []
        return bool(self.data.get("leave_out_unreadable")) or any(
            error.code == UNREADABLE for error in errors
        )

    def __init__(
        self,
        data: Any = None,
        *,
        versions: QuerySet[Version],
        version: Version,
        choices: list[MetricChoice],
        endpoints: QuerySet[Endpoint],
        metric: str = "",
    ) -> None:
        """`metric`: the metric version preselected by the query string."""
        candidates = Candidate.uploaded.filter(version=version, responses__gt=0).order_by("name")
        self.choices = {str(choice.version.pk): choice for choice in choices if choice.version}
        self._offers_batches = any(offers_batches(endpoint) for endpoint in endpoints)
        uploaded = list(candidates)
        proposed = {
            "version": version,
            "candidates": uploaded,
            "metrics": [metric] if metric in self.choices else list(self.choices) * (len(self.choices) == 1),
            "seed": random.randrange(SEEDS),
            "reuse_replies": True,
            "rows_wanted": "all",
        }
        super().__init__(data, initial=proposed)
        self.fields["rows_wanted"].choices = _row_choices(version.valid_rows)  # type: ignore[attr-defined]
        self.candidate_forms = candidate_forms(data, endpoints, has_answers=bool(uploaded))
        self.fields["version"].queryset = versions  # type: ignore[attr-defined]
        self.fields["candidates"].queryset = candidates  # type: ignore[attr-defined]
        self.fields["metrics"].choices = [  # type: ignore[attr-defined]
            (pk, choice.definition.name) for pk, choice in self.choices.items()
        ]

    def clean(self) -> dict[str, Any]:
        sent = super().clean() or self.cleaned_data
        if sent.get("rows_wanted") in ("few", "all"):
            sent["sample_size"] = FEW_ROWS if sent["rows_wanted"] == "few" else None
        if "candidates" in sent and not sent["candidates"] and not self.candidate_forms.candidates():
            self.add_error("candidates", _("Select at least one candidate, or a model to generate answers."))
        return sent

    def is_valid(self) -> bool:
        return super().is_valid() and (not self.candidate_forms.is_bound or self.candidate_forms.is_valid())

    def forget_errors(self) -> None:
        """Clear the errors of an unfinished draft; valid values stay in `chosen`."""
        for form in (self, *self.candidate_forms.forms):
            form.errors.clear()

    def metric_boxes(self) -> list[tuple[Any, MetricChoice]]:
        """Each checkbox with its metric."""
        return [(box, self.choices[str(box.data["value"])]) for box in self["metrics"]]

    def clean_seed(self) -> int:
        """Draw a random seed if none is given."""
        seed = self.cleaned_data["seed"]
        return random.randrange(SEEDS) if seed is None else int(seed)

    @property
    def offers_batches(self) -> bool:
        """Whether a judge that can be chosen is at a server that answers batches."""
        return self._offers_batches

    @property
    def more_errors(self) -> bool:
        """Whether the collapsed section has errors."""
        return any(name in self.errors for name in MORE)

    def options(self) -> RunOptions:
        """The run's options. Call only after is_valid."""
        sent = self.cleaned_data
        return RunOptions(
            self.budget(),
            Priority(int(sent["priority"])),
            sent["stop_width"],
            sent["reuse_replies"],
            sent["reuse_at_any_temperature"],
            sent["leave_out_unreadable"],
            sent["batched"],
            sent["plain_if_expired"],
        )

    def chosen(self) -> Chosen:
        """The valid part of the submitted data, or the initial values of an unbound form. Call after is_valid."""
        sent = self.cleaned_data if self.is_bound else self.initial
        return Chosen(
            list(sent.get("candidates", [])),
            [self.choices[pk] for pk in sent.get("metrics", [])],
            sent.get("sample_size"),
            self.candidate_forms.candidates(),
            bool(sent.get("batched")),
        )
