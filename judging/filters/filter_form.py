"""The form for a run's judgement filter in the query strings of lists, downloads and re-judging."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import ProhibitNullCharactersValidator, RegexValidator
from django.forms import BoundField
from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evalsite.names import bracketed, join_sentences
from evalsite.rounding import significant
from evalsite.web.refusals import RequestRefused
from judging.core.candidates import ANSWER_EMPTY, ANSWER_TRUNCATED
from judging.core.metric_definition import MetricDefinition
from judging.core.reading.forms import FORMS
from judging.core.results import INJECTED_VERDICT, TRUNCATED, WOULD_ASK_AGAIN
from judging.core.rules.check import read_program
from judging.filters.counts import count_text, counts_of_choices, reasons
from judging.filters.judgement_filter import FIELD, FURTHER, LOWER, NO, RULE_SCORES, YES, Filters
from judging.filters.orders import FORMER_ORDERS, ORDERS
from judging.filters.page_limits import LIMITS, Limits
from judging.records.definitions import definitions_now
from judging.records.models import JudgementState, Run
from judging.records.row_fields import EVERY_ROW

FLAGS = {
    INJECTED_VERDICT: _("injected verdict suspected"),
    "order_flip": _("winner depends on order"),
    "format_failed": _("invalid answer format"),
    ANSWER_EMPTY: _("empty answer"),
    ANSWER_TRUNCATED: _("answer cut by its limit of tokens"),
    TRUNCATED: _("judge's reply cut off"),
    WOULD_ASK_AGAIN: _("re-parsing would ask again"),
}
PAGE_PARAMETERS = frozenset({"after", "before", "tab", "only", "a", "b", "differences", "version"})
"""Other query parameters of pages with a filter: list position, tab, single item, compared items, metric version."""

_ANY = [("", _("any"))]


class _OpenChoiceField(forms.ChoiceField):
    """A choice among values that the run has now. Any value is valid, since these change."""

    def valid_value(self, value: str) -> bool:
        return True


class _FieldChoiceField(forms.ChoiceField):
    """A field of the rows. The menu offers their own; reports also link to those that every row has."""

    def valid_value(self, value: str) -> bool:
        return value in EVERY_ROW or super().valid_value(value)


class _OrderField(forms.ChoiceField):
    """A sort order. Those that lists no longer have are valid, too (`FilterForm.former_order`)."""

    def valid_value(self, value: str) -> bool:
        return value.removeprefix("-") in {**ORDERS, **FORMER_ORDERS}


class FilterForm(forms.Form):
    """The query string as fields of the filter menu. `show_counts` completes the menu."""

    candidate = forms.ChoiceField(
        label=_("Candidate"),
        required=False,
        error_messages={"invalid_choice": _("This run has no candidate with that name.")},
    )
    metric = forms.ChoiceField(
        label=_("Metric"),
        required=False,
        error_messages={"invalid_choice": _("This run has no metric with that name.")},
    )
    state = forms.ChoiceField(label=_("State"), required=False, choices=[*_ANY, *JudgementState.choices])
    least = forms.FloatField(label=_("Score at least"), required=False)
    most = forms.FloatField(label=_("Score at most"), required=False)
    below = forms.FloatField(label=_("Score below"), required=False)
    value = forms.CharField(label=_("Value"), required=False, max_length=500)
    reason = _OpenChoiceField(
        label=_("Reason"), required=False, validators=[ProhibitNullCharactersValidator()]
    )
    flag = forms.ChoiceField(label=_("Flag"), required=False, choices=[*_ANY, *FLAGS.items()])
    overridden = forms.ChoiceField(
        label=_("Overridden"), required=False, choices=[*_ANY, (YES, _("yes")), (NO, _("no"))]
    )
    attempts = forms.ChoiceField(
        label=_("Attempts"),
        required=False,
        choices=[("", _("newest")), ("older", _("older ones")), ("all", _("all"))],
    )
    rule = _OpenChoiceField(
        label=_("Rule line"),
        required=False,
        validators=[RegexValidator(r"^[1-9][0-9]{0,8}\Z", _("Enter the number of a line."))],
    )
    rule_score = forms.ChoiceField(
        label=_("Its score"),
        required=False,
        choices=[*_ANY, *((score, score) for score in RULE_SCORES[:-1]), (LOWER, _("below 5"))],
    )
    spread = forms.FloatField(label=_("Judges apart by at least"), required=False, min_value=0)
    form = forms.ChoiceField(
        label=_("Read from"),
        required=False,
        choices=[*_ANY, *((form, _(str(kind.name))) for form, kind in FORMS.items())],
    )
    question = forms.CharField(label=_("Text in the question"), required=False, max_length=500)
    q = forms.CharField(label=_("Answer contains"), required=False, max_length=500, widget=forms.SearchInput)
    reply = forms.CharField(label=_("Text in the judge's reply"), required=False, max_length=500)
    field = _FieldChoiceField(
        label=_("Field"),
        required=False,
        error_messages={"invalid_choice": _("The rows have no field with that name.")},
    )
    field_is = forms.CharField(label=_("Field is"), required=False, max_length=500)
    field_has = forms.CharField(label=_("Field contains"), required=False, max_length=500)
    field_from = forms.FloatField(label=_("Field at least"), required=False)
    field_to = forms.FloatField(label=_("Field at most"), required=False)
    line = forms.IntegerField(label=_("Row"), required=False, min_value=1, max_value=2**31 - 1)
    sort = _OrderField(
        label=_("Sort by"),
        required=False,
        choices=[
            (sign + name, format_lazy("{} {}", order.label, arrow))
            for name, order in ORDERS.items()
            for sign, arrow in (("", "↑"), ("-", "↓"))
        ],
    )

    def __init__(self, data: QueryDict, run: Run, *, hidden: Collection[str] = ()) -> None:
        """`hidden`: names of further filters hidden from this user."""
        super().__init__(data, label_suffix="")
        self.run, self.hidden = run, hidden
        self._offer("candidate", lambda: _named(self.candidates))
        self._offer("metric", lambda: _named(self.metrics))
        self._offer("rule", lambda: self.rule_lines)
        # The menu lists the rows' custom fields; links from reports may also use computed fields.
        computed = [name for name in EVERY_ROW if name == data.get("field")]
        self._offer("field", lambda: _named(sorted({*run.version.fields_found, *computed})))
        self._offer("reason", list)
        self.further = [further for further in FURTHER.values() if further.name not in hidden]
        for further in self.further:
            self.fields[further.name] = further.field(run)
            self.fields[further.name].required, self.fields[further.name].label = False, further.label

    @cached_property
    def candidates(self) -> list[str]:
        return sorted(set(self.run.run_candidates.values_list("candidate__name", flat=True)))

    @cached_property
    def metrics(self) -> list[str]:
        return list(self.run.metrics.order_by("number").values_list("name", flat=True))

    @cached_property
    def definitions(self) -> list[MetricDefinition]:
        return list(definitions_now(self.run).values())

    @cached_property
    def rule_lines(self) -> list[tuple[str, str]]:
        return rule_lines_of(self.definitions, self.data.get("metric", ""))

    def _offer(self, name: str, choices: Callable[[], list[tuple[str, str]]]) -> None:
        """Set choices that are queried lazily, when the query string uses the field or the menu shows it."""

        def offered() -> list[Any]:
            labels, value = dict(choices()), self.data.get(name)
            if value and isinstance(self.fields[name], _OpenChoiceField):
                labels.setdefault(value, value)
            return [*_ANY, *labels.items()]

        self.fields[name].choices = offered  # type: ignore[attr-defined]

    @property
    def filters(self) -> Filters:
        """The parsed filter. Raises RequestRefused with a message if the query string is not a valid filter."""
        problem = self.problem
        if problem:
            title = gettext("This filter can't be used")
            raise RequestRefused(title, problem, gettext("Show judgements without it"), self._address_without)
        values = {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}
        if self.former_order:
            del values["sort"]
        further = {name: str(values.pop(name)) for name in FURTHER if name in values}
        return Filters(**values, further=further)

    @property
    def former_order(self) -> str:
        """The name of the requested sort order if lists no longer have it; they are then sorted by position."""
        return str(FORMER_ORDERS.get(self.data.get("sort", "").removeprefix("-"), ""))

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        field_parameters = [name for name in FIELD if values.get(name) not in (None, "")]
        if field_parameters and field_parameters[0] != "field":
            self.add_error(field_parameters[0], _("Choose the field too."))
        if field_parameters == ["field"]:
            self.add_error("field", _("Enter a condition for the field."))
        if values.get("rule_score") and not self.data.get("rule"):
            self.add_error("rule_score", _("Choose the rule line too."))
        return values

    @property
    def problem(self) -> str:
        """The error in the query string as a sentence that names the parameter; '' if valid."""
        problem = self._unknown(self.data)
        for name, errors in self.errors.items():
            return problem or _cannot_be(name, str(self.data.get(name)), join_sentences(errors))
        return problem

    @property
    def _address_without(self) -> str:
        """The URL of the list with the valid part of the filter."""
        if not self.problem:
            address = reverse("runs:judgements", args=(self.run.project.slug, self.run.pk))
            return address + self.filters.query()
        right = {name: self.data[name] for name in self.data if name in self.fields.keys() - self.errors}
        return FilterForm(QueryDict(urlencode(right)), self.run, hidden=self.hidden)._address_without

    def misfit(self, query: str) -> str:
        """Why a filter given as a query string does not fit this run; '' if it does."""
        parameters = QueryDict(query)
        for name, value in {} if self._unknown(parameters) else parameters.items():
            try:
                self.fields[name].clean(value)
            except ValidationError as error:
                return _cannot_be(name, str(value), join_sentences(error.messages))
        return self._unknown(parameters)

    def _unknown(self, parameters: Mapping[str, Any]) -> str:
        for name in parameters:
            if name not in self.fields and name not in PAGE_PARAMETERS:
                return gettext("There is no filter “%(name)s”. Remove it from the address.") % {"name": name}
        return ""

    def show_counts(self, limits: Limits = LIMITS) -> None:
        """Add the number of matches to each choice, and offer the reasons that occur in the run."""
        occurring = _named(dict.fromkeys(code for _, code, _ in reasons(self.run)))
        self._offer("reason", lambda: occurring)
        menu = [field.name for field in self.menu()]
        offered = {name: self._choices(name) for name in menu if name in self.counted}
        shown = {
            name: [str(value) for value, _label in choices if value] for name, choices in offered.items()
        }
        for name, counts in counts_of_choices(self.run, self.filters, shown, limits).items():
            self.fields[name].choices = [  # type: ignore[attr-defined]
                (
                    value,
                    bracketed(label, count_text(counts[value], limits=limits)) if value in counts else label,
                )
                for value, label in offered[name]
            ]

    @property
    def counted(self) -> list[str]:
        """Names of menu fields with counted choices."""
        others = ("field", "form", "rule", "rule_score", "sort", "attempts")
        return [name for name in self.fields if name not in others and self._choices(name)]

    def _choices(self, name: str) -> list[tuple[str, str]]:
        return list(getattr(self.fields[name], "choices", ()))

    def chips(self) -> list[tuple[str, str, str]]:
        """The active filters: (label, displayed value, query string without it)."""
        filters = self.filters
        chips = []
        for name, value in filters.active.items():
            if name in ("sort", "state", *FIELD):
                continue
            field: Any = self.fields[name]
            choices = {str(key): text for key, text in getattr(field, "choices", ())}
            shown = significant(value, 6) if isinstance(value, float) else str(choices.get(str(value), value))
            chips.append((str(field.label), shown, filters.without(name).query() or "?"))
        if filters.field:
            chips.append((filters.field, _field_text(filters), filters.without(*FIELD).query() or "?"))
        return chips

    def menu(self) -> Iterator[BoundField]:
        """The menu's fields that have choices in this run or are in use."""
        for name in self.fields:
            if name != "state" and (self._offered.get(name, True) or self.data.get(name)):
                yield self[name]

    @cached_property
    def _offered(self) -> dict[str, bool]:
        return {
            "metric": len(self.metrics) > 1,
            "below": False,
            "value": False,
            "reason": len(self._choices("reason")) > 1,
            "overridden": self.run.judgements.filter(override_value__isnull=False).exists(),
            "attempts": self.run.judgements.filter(position__gte=self.run.total).exists(),
            "form": any(definition.judges for definition in self.definitions),
            "spread": any(len(definition.judges) > 1 for definition in self.definitions),
            **dict.fromkeys(FIELD, bool(self.run.version.fields_found)),
            "rule": bool(self.rule_lines),
            "rule_score": bool(self.rule_lines),
            **{further.name: further.offered(self.run) for further in self.further},
        }


def form_in(request: HttpRequest, run: Run, query: QueryDict | None = None) -> FilterForm:
    """The filter form for a page of the run, from the query string, or from another one."""
    hidden = [further.name for further in FURTHER.values() if further.hidden(request, run)]
    return FilterForm(request.GET if query is None else query, run, hidden=hidden)


def _named(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]


def _cannot_be(name: str, value: str, why: str) -> str:
    sentence = gettext("The filter “%(name)s” can't be “%(value)s”: %(why)s")
    return sentence % {"name": name, "value": value, "why": why}


def _field_text(filters: Filters) -> str:
    """The condition on a custom field as text."""
    conditions = [filters.field_is, f"…{filters.field_has}…" if filters.field_has else ""]
    conditions += [f"≥ {significant(filters.field_from, 6)}" if filters.field_from is not None else ""]
    conditions += [f"≤ {significant(filters.field_to, 6)}" if filters.field_to is not None else ""]
    return ", ".join(filter(None, conditions))


def rule_lines_of(definitions: Iterable[MetricDefinition], metric: str) -> list[tuple[str, str]]:
    """(number, text) of each line of the run's only rule program, or of the given metric's program."""
    programs = [
        definition.rules for definition in definitions if definition.rules and metric in ("", definition.name)
    ]
    program = read_program(programs[0]).program if len(programs) == 1 else None
    if program is None:
        return []
    places = dict.fromkeys(rule.place.line for rule in program.rules)
    lines = programs[0].removeprefix("\ufeff").split("\n")
    return [(str(line), f"{line} · {lines[line - 1].strip()[:60]}") for line in places]
