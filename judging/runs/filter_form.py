"""The filter of a run's judgements as a form: what stands in the address of lists, downloads and re-judging."""

from __future__ import annotations

from dataclasses import replace

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from judging.core.candidates import ANSWER_EMPTY, ANSWER_TRUNCATED
from judging.core.results import PLANTED_VERDICT, TRUNCATED
from judging.core.rules.check import read_program
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
