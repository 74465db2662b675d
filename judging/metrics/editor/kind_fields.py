"""The fields of the metric form that say what the judges give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from datasets.core.kinds import CATEGORY, CHECKLIST, COMPARISON, PASS_FAIL, SCORE
from datasets.messages import translated
from evalsite.rounding import significant
from judging.core.metric_definition import Label, MetricDefinition
from judging.core.metrics_file import COMPARISON_TOP
from judging.core.metrics_file_kind import KIND_PROBLEMS, MAX_DESCRIPTION, MAX_LABEL, MAX_LABELS, MAX_NAME
from judging.core.reading.labels import fold

CANDIDATES = "candidates"
"""The form's value for a comparison of candidates; `COMPARISON` is one with the reference."""
GIVES = [
    (PASS_FAIL, pgettext_lazy("kind of verdict", "Pass or fail")),
    (SCORE, pgettext_lazy("kind of verdict", "Score")),
    (CATEGORY, pgettext_lazy("kind of verdict", "Category")),
    (COMPARISON, gettext_lazy("Comparison with the reference")),
    (CANDIDATES, gettext_lazy("Comparison of candidates")),
    (CHECKLIST, gettext_lazy("Checklist (a rubric for each row)")),
    ("", gettext_lazy("Whatever the last script returns")),
]
ALL_PAIRS, ANY_PAIRS, WITH_BASELINE = "all", "any", "baseline"
PAIRS = [
    (ALL_PAIRS, gettext_lazy("every pair, for up to 4 candidates")),
    (ANY_PAIRS, gettext_lazy("every pair, for any number of candidates")),
    (WITH_BASELINE, gettext_lazy("each candidate with a baseline")),
]
FIXED_SCALES = {
    COMPARISON: (1.0, COMPARISON_TOP),
    CANDIDATES: (1.0, COMPARISON_TOP),
    CHECKLIST: (0.0, 1.0),
}
"""Scales of kinds whose verdicts become scores."""
GIVES_NAMES = dict(GIVES)
_PAIR_FLAGS = ("all_answers", "both_bad", "three_steps")
KIND_FLAGS = ("whole", *_PAIR_FLAGS)
_LABEL_FIELDS = ("label", "description", "value")
_FEWEST_ROWS = 2


class LabelsWidget(forms.Widget):
    """Rows of inputs (metrics/_labels.html) named NAME-label and so on; a row is a dict of texts."""

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> list[dict[str, str]]:
        return typed_labels(data, name) if isinstance(data, MultiValueDict) else []


def typed_labels(typed: MultiValueDict[str, Any], name: str = "labels") -> list[dict[str, str]]:
    columns = [typed.getlist(f"{name}-{part}") for part in _LABEL_FIELDS]
    return [dict(zip(_LABEL_FIELDS, row, strict=True)) for row in zip(*columns, strict=False)]


def rows_of(labels: Sequence[Label]) -> list[dict[str, str]]:
    """Labels as the widget's rows."""
    return [
        {
            "label": label.label,
            "description": label.description,
            "value": "" if label.value is None else significant(label.value, 6),
        }
        for label in labels
    ]


def labels_of(rows: Sequence[Mapping[str, str]]) -> tuple[Label, ...]:
    """The labels in rows with a name, of which an invalid value counts as none."""
    return tuple(
        Label(label=name, description=row["description"].strip(), value=_number(row["value"]))
        for row in rows
        if (name := row["label"].strip())
    )


def _number(text: str) -> float | None:
    try:
        number: float | None = forms.FloatField(required=False, min_value=-1e9, max_value=1e9).clean(text)
    except ValidationError:
        return None
    return number


def rows_to_fill(rows: Sequence[dict[str, str]] | None) -> list[dict[str, str]]:
    """The rows that hold something, and blank ones."""
    filled = [row for row in rows or () if any(row.values())]
    return [*filled, *[dict.fromkeys(_LABEL_FIELDS, "")] * max(1, _FEWEST_ROWS - len(filled))]


class LabelsField(forms.Field):
    """The labels of a category. Checked by `check_labels` only where the metric gives a category."""

    widget = LabelsWidget

    def clean(self, value: Any) -> tuple[Label, ...]:
        return labels_of(value)


def check_labels(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """What is wrong with the labels of a category, as sentences."""
    labels = labels_of(rows)
    sentences = []
    if len(labels) < 2:
        sentences.append(_("A category needs at least two labels."))
    if len(labels) > MAX_LABELS:
        sentences.append(translated(KIND_PROBLEMS["too_many_labels"], {"most": MAX_LABELS}))
    folded = [fold(label.label) for label in labels]
    for number, label in enumerate(labels):
        if folded[number] in folded[:number]:
            sentences.append(translated(KIND_PROBLEMS["duplicate_label"], {"name": label.label}))
        if len(label.label) > MAX_LABEL or len(label.description) > MAX_DESCRIPTION:
            sentences.append(
                _("“%(label)s”: the label or its description is too long.") % {"label": label.label[:40]}
            )
    for row in rows:
        if row["value"].strip() and _number(row["value"]) is None:
            sentences.append(_("“%(value)s” is not a number.") % {"value": row["value"][:40]})
        if not row["label"].strip() and (row["value"].strip() or row["description"].strip()):
            sentences.append(_("A label has no name."))
    return sentences


class KindForm(forms.Form):
    """What the judges give, and what each kind needs. Fields of the other kinds keep what was typed."""

    gives = forms.ChoiceField(
        label=gettext_lazy("What does the judge give?"),
        choices=GIVES,
        required=False,
        widget=forms.RadioSelect,
    )
    min_score = forms.FloatField(label=gettext_lazy("Lowest score"), initial=1, min_value=-1e9, max_value=1e9)
    max_score = forms.FloatField(
        label=gettext_lazy("Highest score"), initial=10, min_value=-1e9, max_value=1e9
    )
    whole = forms.BooleanField(
        label=gettext_lazy("Whole numbers only"),
        required=False,
        help_text=gettext_lazy("A fraction in a reply is then no score."),
    )
    step = forms.FloatField(
        label=gettext_lazy("Step"),
        required=False,
        min_value=0,
        max_value=1e9,
        help_text=gettext_lazy("Only multiples of it from the lowest score. Leave empty for any."),
    )
    labels = LabelsField(label=gettext_lazy("Labels"), required=False)
    pairs = forms.ChoiceField(label=gettext_lazy("Pairs to compare"), choices=PAIRS, required=False)
    baseline = forms.CharField(
        label=gettext_lazy("Baseline"),
        required=False,
        max_length=MAX_NAME,
        help_text=gettext_lazy("The name of the candidate that the others are compared with."),
    )
    all_answers = forms.BooleanField(
        label=gettext_lazy("Compare all answers of each"),
        required=False,
        help_text=gettext_lazy("Otherwise the first answer with the first."),
    )
    both_bad = forms.BooleanField(label=gettext_lazy("Offer “both bad”"), required=False)
    three_steps = forms.BooleanField(
        label=gettext_lazy("Better, tie, worse only"),
        required=False,
        help_text=gettext_lazy("“Much better” then counts as “better”."),
    )
    at_once = forms.BooleanField(
        label=gettext_lazy("All criteria in one request"),
        required=False,
        help_text=gettext_lazy(
            "Cheaper, but the judge sees all criteria together, and one reply that can't be read leaves all of them "
            "open. Otherwise it is asked about each criterion by itself."
        ),
    )

    @property
    def label_rows(self) -> list[dict[str, str]]:
        return rows_to_fill(self["labels"].value())

    def clean_gives(self) -> str:
        """Input without the field keeps the kind."""
        gives: str = self.cleaned_data["gives"] if "gives" in self.data else self.initial["gives"]
        return gives

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        low, high = values.get("min_score"), values.get("max_score")
        if low is not None and high is not None:
            self._check_scale(low, high)
        if values.get("gives") == CATEGORY:
            for sentence in check_labels(self["labels"].value()):
                self.add_error("labels", sentence)
        without_baseline = values.get("pairs") == WITH_BASELINE and not values.get("baseline")
        if values.get("gives") == CANDIDATES and without_baseline and "baseline" not in self.errors:
            self.add_error("baseline", _("Enter the name of a candidate."))
        return values

    def _check_scale(self, low: float, high: float) -> None:
        values = self.cleaned_data
        if low >= high:
            self.add_error("max_score", _("The highest score must be above the lowest."))
        elif values.get("gives") in (SCORE, "") and (step := values.get("step")):
            if step > high - low:
                self.add_error("step", _("The step must be at most the width of the scale."))
            elif values.get("whole") and not float(step).is_integer():
                self.add_error("step", translated(KIND_PROBLEMS["step_not_whole"]))


def form_kind(definition: MetricDefinition) -> str:
    """The form's value of `gives`."""
    return CANDIDATES if definition.compares_candidates else definition.kind


def kind_initial(definition: MetricDefinition) -> dict[str, Any]:
    return {
        "gives": form_kind(definition),
        "min_score": significant(definition.min_score, 6),
        "max_score": significant(definition.max_score, 6),
        "whole": definition.whole,
        "step": significant(definition.step, 6) if definition.step else "",
        "labels": rows_of(definition.labels),
        "pairs": _pairs_of(definition),
        **{name: getattr(definition, name) for name in ("baseline", *_PAIR_FLAGS)},
        "at_once": definition.at_once,
    }


def _pairs_of(definition: MetricDefinition) -> str:
    if definition.compares == "baseline":
        return WITH_BASELINE
    return ANY_PAIRS if definition.any_pairs else ALL_PAIRS


def kind_values(values: Mapping[str, Any], before: MetricDefinition) -> dict[str, Any]:
    """The definition's fields from the form's clean values. Without `gives` it stays so while its kind does."""
    chosen = values["gives"]
    numeric = chosen in (SCORE, "")
    return {
        "gives": _gives(chosen, before),
        **_compared(values, before),
        **_scale(values, before),
        "whole": values["whole"] and numeric,
        "step": (values["step"] or 0) if numeric else 0,
        "labels": values["labels"] if chosen == CATEGORY else (),
        "at_once": values["at_once"] and chosen == CHECKLIST,
    }


def _gives(chosen: str, before: MetricDefinition) -> str:
    if chosen == form_kind(before):
        return before.gives
    return COMPARISON if chosen == CANDIDATES else chosen


def _compared(values: Mapping[str, Any], before: MetricDefinition) -> dict[str, Any]:
    """What a comparison of candidates compares; for other kinds the defaults."""
    names = ("compares", "baseline", "any_pairs", *_PAIR_FLAGS)
    if values["gives"] != CANDIDATES:
        blank = MetricDefinition(name="")
        return {name: getattr(blank, name) for name in names}
    pairs = values["pairs"] or _pairs_of(before)
    with_baseline = pairs == WITH_BASELINE
    return {
        "compares": "baseline" if with_baseline else "all",
        "baseline": values["baseline"] if with_baseline else "",
        "any_pairs": pairs == ANY_PAIRS,
        **{name: bool(values[name]) for name in _PAIR_FLAGS},
    }


def _scale(values: Mapping[str, Any], before: MetricDefinition) -> dict[str, float]:
    """The scale; comparisons and checklists keep theirs."""
    chosen = values["gives"]
    if chosen not in FIXED_SCALES:
        return {"min_score": values["min_score"], "max_score": values["max_score"]}
    is_same = form_kind(before) == chosen
    low, high = (before.min_score, before.max_score) if is_same else FIXED_SCALES[chosen]
    return {"min_score": low, "max_score": high}


def typed_kind(typed: QueryDict, before: MetricDefinition) -> dict[str, Any]:
    """The same from input that is not validated, for a preview; invalid values fall back to those in `before`."""
    if "gives" not in typed:
        return {}
    chosen = typed["gives"] if typed["gives"] in GIVES_NAMES else form_kind(before)
    return kind_values(
        {
            "gives": chosen,
            "min_score": _typed_number(typed, "min_score", before.min_score),
            "max_score": _typed_number(typed, "max_score", before.max_score),
            "whole": bool(typed.get("whole")),
            "step": _typed_number(typed, "step", 0),
            "labels": labels_of(typed_labels(typed)),
            "pairs": typed.get("pairs", ""),
            "baseline": typed.get("baseline", "").strip(),
            **{name: bool(typed.get(name)) for name in _PAIR_FLAGS},
            "at_once": bool(typed.get("at_once")),
        },
        before,
    )


def _typed_number(typed: QueryDict, name: str, otherwise: float) -> float:
    number = _number(typed.get(name, ""))
    return otherwise if number is None else number
