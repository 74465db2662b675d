"""The filter of the list of judgements, and the form of an override."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from judging.core.candidates import ANSWER_EMPTY, ANSWER_TRUNCATED
from judging.core.results import PLANTED_VERDICT, TRUNCATED
from judging.core.rules.check import read_program
from judging.core.values import Value
from judging.review.telling import shown
from judging.runs.counts import overridden_states, reasons
from judging.runs.filters import ANYTHING, LOWER, NO, RULE_SCORES, SORTS, YES, Filters
from judging.runs.models import JudgementState, Run
from judging.runs.rerun.reparse import definition_now

FLAGS = {
    PLANTED_VERDICT: _("planted verdict suspected"),
    "order_flip": _("winner changed with the order"),
    "format_failed": _("answer lacks the program's format"),
    ANSWER_EMPTY: _("empty answer"),
    ANSWER_TRUNCATED: _("answer cut by its limit of tokens"),
    TRUNCATED: _("judge's reply cut off"),
}
_ANY = [("", _("any"))]
LARGEST = sys.float_info.max


class FilterForm(forms.Form):
    """What stands in the address; `filters` holds what of it makes sense."""

    q = forms.CharField(label=_("Text in the answer"), required=False, widget=forms.SearchInput)
    candidate = forms.ChoiceField(label=_("Candidate"), required=False)
    metric = forms.ChoiceField(label=_("Metric"), required=False)
    state = forms.ChoiceField(label=_("State"), required=False, choices=[*_ANY, *JudgementState.choices])
    reason = forms.ChoiceField(label=_("Reason"), required=False)
    flag = forms.ChoiceField(label=_("Flag"), required=False, choices=[*_ANY, *FLAGS.items()])
    least = forms.FloatField(label=_("Score, from – to"), required=False)
    most = forms.FloatField(
        required=False, widget=forms.NumberInput(attrs={"aria-label": _("Score, at most"), "step": "any"})
    )
    below = forms.FloatField(label=_("Score below"), required=False)
    value = forms.CharField(label=_("Value"), required=False, max_length=500)
    overridden = forms.ChoiceField(
        label=_("Overridden"), required=False, choices=[*_ANY, (YES, _("yes")), (NO, _("no"))]
    )
    line = forms.IntegerField(label=_("Row"), required=False, min_value=1, max_value=2**31 - 1)
    rule = forms.ChoiceField(label=_("Rule line"), required=False)
    rule_score = forms.ChoiceField(
        label=_("Its score"),
        required=False,
        choices=[*_ANY, *((score, score) for score in RULE_SCORES[:-1]), (LOWER, _("below 5"))],
    )
    attempts = forms.ChoiceField(
        label=_("Attempts"),
        required=False,
        choices=[("", _("newest")), ("older", _("older ones")), ("all", _("all"))],
    )
    sort = forms.ChoiceField(required=False, choices=[(name, name) for name in SORTS])

    def __init__(self, data: QueryDict, run: Run) -> None:
        super().__init__(data, label_suffix="")
        candidates = run.run_candidates.values_list("candidate__name", flat=True).distinct()
        metrics = run.metrics.order_by("number").values_list("name", flat=True)
        self.has_overrides = bool(overridden_states(run))
        self.reason_counts: dict[str, int] = {}
        for _state, code, count in reasons(run):
            self.reason_counts[code] = self.reason_counts.get(code, 0) + count
        self._offer("candidate", [(name, name) for name in sorted(candidates)])
        self._offer("metric", [(name, name) for name in metrics])
        self.rule_lines = rule_lines_of(run, self.data.get("metric", ""))
        self._offer("rule", self.rule_lines)
        self._offer("reason", [(code, f"{code} ({count})") for code, count in self.reason_counts.items()])

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        asked = self.data.get(name, "")
        known = asked in ("", *(choice for choice, _label in choices)) or "\0" in asked
        # What an address asks for is kept, even if nothing (any more) is like that: the list is then empty.
        self.fields[name].choices = [*_ANY, *choices, *([] if known else [(asked, asked)])]  # type: ignore[attr-defined]

    def chips(self) -> list[tuple[str, str, str]]:
        """What the filter asks for: name, value as people read it, and the address without it."""
        filters = self.filters
        found = []
        for name, field in self.fields.items():
            value = getattr(filters, name)
            if value == getattr(ANYTHING, name) or name in ("sort", "state"):
                continue
            choices = dict(getattr(field, "choices", ()))
            without = replace(filters, **{name: getattr(ANYTHING, name)}).query() or "?"
            label = gettext("Score, at most") if name == "most" else field.label
            found.append((str(label), str(choices.get(value, value)), without))
        return found

    @property
    def filters(self) -> Filters:
        self.is_valid()
        return Filters(
            **{name: value for name, value in self.cleaned_data.items() if value not in (None, "")}
        )


def rule_lines_of(run: Run, metric: str) -> list[tuple[str, str]]:
    """(number, what stands there) of each line of the run's one rule program, or of the one that is asked for."""
    definitions = [definition_now(one) for one in run.metrics.order_by("number")]
    programs = [one.rules for one in definitions if one.rules and metric in ("", one.name)]
    program = read_program(programs[0]).program if len(programs) == 1 else None
    if program is None:
        return []
    places = dict.fromkeys(rule.place.line for rule in program.rules)
    lines = programs[0].removeprefix("\ufeff").split("\n")
    return [(str(line), f"{line} · {lines[line - 1].strip()[:60]}") for line in places]


def _number(text: str) -> int | float | None:
    """A number as JSON writes it, full-width characters read as plain ones; None if it is none, or not finite."""
    try:
        number = json.loads(unicodedata.normalize("NFKC", text))
    except (ValueError, RecursionError):
        return None
    if isinstance(number, bool) or not isinstance(number, int | float) or not -LARGEST <= number <= LARGEST:
        return None
    return number


class WithdrawForm(forms.Form):
    """Why an override is withdrawn. `seen`: the newest entry of the history when the page was opened, or 0."""

    reason = forms.CharField(
        label=_("Reason for withdrawing"), widget=forms.Textarea(attrs={"rows": 2}), max_length=4000
    )
    seen = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)


class OverrideForm(forms.Form):
    """A reviewer's value and why; `seen` as in WithdrawForm. The value is one of `choices` if there are any, else of
    the kind of the metric's other `values`: a number from `least` to `most`, true or false, or a text."""

    value = forms.CharField(label=_("New value"), max_length=500)
    reason = forms.CharField(label=_("Reason"), widget=forms.Textarea(attrs={"rows": 3}), max_length=4000)
    seen = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)

    def __init__(
        self,
        data: Any = None,
        *,
        least: float,
        most: float,
        values: Collection[Value] = (),
        choices: Sequence[Value] = (),
        **options: Any,
    ) -> None:
        super().__init__(data, **options)
        self.least, self.most = least, most
        self.choices = {shown(choice): choice for choice in choices}
        self.bools = any(isinstance(one, bool) for one in values)
        self.texts = any(isinstance(one, str) for one in values)
        self.numbers = any(not isinstance(one, bool | str) for one in values) or not (
            self.bools or self.texts
        )
        self.bounded = (least, most) != (-LARGEST, LARGEST)
        said = {"least": f"{least:g}", "most": f"{most:g}", "values": " · ".join(self.choices)}
        self.fields["value"].help_text = self._help() % said

    def _help(self) -> str:
        if self.choices:
            return gettext("One of: %(values)s.")
        if not self.bounded and not self.bools and not self.texts:
            return gettext("A number.")
        if self.texts:
            return (
                gettext("A category, or a number from %(least)s to %(most)s.")
                if self.numbers
                else gettext("A category.")
            )
        if self.bools and self.numbers:
            return gettext("true or false, or a number from %(least)s to %(most)s.")
        return gettext("true or false.") if self.bools else gettext("A number from %(least)s to %(most)s.")

    def clean_value(self) -> Value:
        text: str = self.cleaned_data["value"].strip()
        if self.choices:
            return self._chosen(text)
        if self.bools and text.lower() in ("true", "false"):
            return text.lower() == "true"
        number = _number(text) if self.numbers else None
        if number is None and self.texts:
            return text
        if not self.numbers:
            raise ValidationError(_("Enter true or false."))
        if number is None:
            raise ValidationError(_("This is no number. Enter one with a decimal point, for example 7.5."))
        if not self.least <= number <= self.most:
            raise ValidationError(_("This is outside the metric's scale."))
        return number

    def _chosen(self, text: str) -> Value:
        named = unicodedata.normalize("NFKC", text)
        for name, choice in self.choices.items():
            if name in (text, named):
                return choice
        raise ValidationError(_("Enter one of the listed values."))
