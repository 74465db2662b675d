"""The form for re-parsing a run's replies: a parser for each judge model, and the scale."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
from django import forms
from django.forms.boundfield import BoundField
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets.core.kinds import CATEGORY, PASS_FAIL, SCORE
from datasets.messages import translated
from judging.core.metric_definition import MetricDefinition, ParserSpec
from judging.core.replies import PARSER_PROBLEMS, Parser, ParserError, make_parser
from judging.metrics.editor.forms import MetricForm
from judging.metrics.editor.judge_forms import PARSERS, JudgeForm, judge_initial, parser_spec, written_parse
from judging.metrics.editor.kind_fields import check_labels, kind_initial, rows_to_fill

_SETTINGS = ("min_score", "max_score", "whole", "step", "jury", "quorum")
_STATED = ("min_score", "max_score", "whole", "labels")


class ReparseForm(forms.Form):
    """Parsers and scale of a metric. `now`: the definition currently in use."""

    min_score = forms.FloatField(label=gettext_lazy("Lowest score"), min_value=-1e9, max_value=1e9)
    max_score = forms.FloatField(label=gettext_lazy("Highest score"), min_value=-1e9, max_value=1e9)

    whole = MetricForm.base_fields["whole"]
    step = MetricForm.base_fields["step"]
    labels = MetricForm.base_fields["labels"]
    jury = MetricForm.base_fields["jury"]
    quorum = MetricForm.base_fields["quorum"]

    def __init__(self, data: Any = None, *, now: MetricDefinition) -> None:
        self.now = now
        initial = kind_initial(now)
        initial |= {"jury": now.jury, "quorum": now.quorum}
        for number, judge in enumerate(now.judges):
            stored = judge_initial(judge)
            initial |= {f"parse-{number}": stored["parse"], f"pattern-{number}": stored["pattern"]}
        super().__init__(data, initial=initial)
        if now.asks_for != CATEGORY:
            del self.fields["labels"]
        if now.asks_for != SCORE:
            del self.fields["whole"], self.fields["step"]
        if now.asks_for in (PASS_FAIL, CATEGORY) or now.compares_candidates:
            del self.fields["min_score"], self.fields["max_score"]
        if now.votes_by_majority:
            del self.fields["jury"]
        for number in range(len(now.judges)):
            self.fields[f"parse-{number}"] = deepcopy(JudgeForm.base_fields["parse"])
            self.fields[f"pattern-{number}"] = deepcopy(JudgeForm.base_fields["pattern"])
            self.fields[f"pattern-{number}"].help_text = ""
            if now.compares_candidates:
                self.fields[f"parse-{number}"].choices = PARSERS[:1]  # type: ignore[attr-defined]

    def settings(self) -> list[BoundField]:
        """The fields of the metric as a whole that its kind has, without its labels."""
        return [self[name] for name in _SETTINGS if name in self.fields]

    @property
    def label_rows(self) -> list[dict[str, str]]:
        return rows_to_fill(self["labels"].value()) if "labels" in self.fields else []

    def parts(self) -> list[tuple[str, Any, Any]]:
        """Each judge model's name with its two fields."""
        return [
            (judge.name, self[f"parse-{number}"], self[f"pattern-{number}"])
            for number, judge in enumerate(self.now.judges)
        ]

    def spec(self, number: int) -> ParserSpec:
        judge = self.now.judges[number]
        way = self.cleaned_data.get(f"parse-{number}") or written_parse(judge, self.now.asks_for)
        return parser_spec(way, self.cleaned_data.get(f"pattern-{number}", ""))

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("min_score", 0) >= values.get("max_score", 10**10):
            self.add_error("max_score", _("The highest score must be above the lowest."))
        for sentence in check_labels(self["labels"].value()) if "labels" in self.fields else ():
            self.add_error("labels", sentence)
        for number, judge in enumerate(self.now.judges):
            try:
                make_parser(self.spec(number), self.now.reading_of(judge))
            except ParserError as error:
                self.add_error(
                    f"pattern-{number}", translated(PARSER_PROBLEMS[error.code], {"detail": error.detail})
                )
            if judge.both_orders and values.get(f"parse-{number}"):
                self.add_error(
                    f"parse-{number}", _("Judged in both orders, so its replies must be comparison verdicts.")
                )
        return values

    def result(self) -> MetricDefinition:
        """The new definition. Call only after is_valid."""
        values = self.cleaned_data
        stated = {name: values[name] for name in _STATED if values.get(name) is not None}
        return msgspec.structs.replace(
            self.now,
            **stated,
            step=values.get("step") or 0,
            jury=values.get("jury") or self.now.jury,
            quorum=self.cleaned_data["quorum"] or self.now.quorum,
            judges=tuple(
                msgspec.structs.replace(judge, parse=self.spec(number))
                for number, judge in enumerate(self.now.judges)
            ),
        )

    def parser(self, number: int) -> Parser:
        """The parser for a judge model. Call only after is_valid."""
        new = self.result()
        return make_parser(self.spec(number), new.reading_of(new.judges[number]))
