"""The form for re-parsing a run's replies: a parser for each judge model, and the scale."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets.messages import translated
from evalsite.rounding import significant
from judging.core.metric_definition import MetricDefinition, ParserSpec
from judging.core.replies import PARSER_PROBLEMS, Parser, ParserError, make_parser
from judging.metrics.editor.forms import MetricForm
from judging.metrics.editor.judge_forms import JudgeForm, judge_initial


class ReparseForm(forms.Form):
    """Parsers and scale of a metric. `now`: the definition currently in use."""

    min_score = forms.FloatField(label=gettext_lazy("Lowest score"), min_value=-1e9, max_value=1e9)
    max_score = forms.FloatField(label=gettext_lazy("Highest score"), min_value=-1e9, max_value=1e9)

    jury = MetricForm.base_fields["jury"]
    quorum = MetricForm.base_fields["quorum"]

    def __init__(self, data: Any = None, *, now: MetricDefinition) -> None:
        self.now = now
        initial: dict[str, Any] = {
            "min_score": significant(now.min_score, 6),
            "max_score": significant(now.max_score, 6),
        }
        initial |= {"jury": now.jury, "quorum": now.quorum}
        for number, judge in enumerate(now.judges):
            stored = judge_initial(judge)
            initial |= {f"parse-{number}": stored["parse"], f"pattern-{number}": stored["pattern"]}
        super().__init__(data, initial=initial)
        for number in range(len(now.judges)):
            self.fields[f"parse-{number}"] = deepcopy(JudgeForm.base_fields["parse"])
            self.fields[f"pattern-{number}"] = deepcopy(JudgeForm.base_fields["pattern"])
            self.fields[f"pattern-{number}"].help_text = ""

    def parts(self) -> list[tuple[str, Any, Any]]:
        """Each judge model's name with its two fields."""
        return [
            (judge.name, self[f"parse-{number}"], self[f"pattern-{number}"])
            for number, judge in enumerate(self.now.judges)
        ]

    def spec(self, number: int) -> ParserSpec:
        kind = self.cleaned_data.get(f"parse-{number}") or "score"
        pattern = self.cleaned_data.get(f"pattern-{number}", "")
        return {kind: pattern} if kind in ("regex", "json_path") else kind

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("min_score", 0) >= values.get("max_score", 10**10):
            self.add_error("max_score", _("The highest score must be above the lowest."))
        for number, judge in enumerate(self.now.judges):
            try:
                make_parser(self.spec(number), self.now.reading_of(judge))
            except ParserError as error:
                self.add_error(
                    f"pattern-{number}", translated(PARSER_PROBLEMS[error.code], {"detail": error.detail})
                )
            if judge.both_orders and self.spec(number) != "comparison":
                self.add_error(
                    f"parse-{number}", _("Judged in both orders, so its replies must be comparison verdicts.")
                )
        return values

    def result(self) -> MetricDefinition:
        """The new definition. Call only after is_valid."""
        return msgspec.structs.replace(
            self.now,
            min_score=self.cleaned_data["min_score"],
            max_score=self.cleaned_data["max_score"],
            jury=self.cleaned_data["jury"] or self.now.jury,
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
