"""Forms of Align: a draw, the version that a test is opened for, a licence's date, and the end of a suspension."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.accounts.models import User
from judging.core.licensing import Growth, Sizes, sizes_of
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.licence import FEWEST_TEST_ROWS
from judging.metrics.models import Metric
from judging.people.forms import RaterChoice
from judging.people.selectors import possible_raters
from judging.records.models import RunMetric
from judging.trust.drawing import Asking
from judging.trust.further import FreeRows, proposed_sizes
from judging.trust.labelled import Labels, labels_for
from judging.trust.models import SealedTest
from judging.trust.sources import Source

MOST_ROWS = 2_000
USUAL = sizes_of(0)


def proposed_rows(source: Source) -> int:
    """Sixty test rows; where nobody looked, so that rows are left for train and dev."""
    left = source.drawable if source.aside else max(source.drawable * 2 // 3, FEWEST_TEST_ROWS)
    return max(1, min(USUAL.test, left, source.drawable))


class DrawForm(forms.Form):
    """What to draw, and who rates it. `source` is another field of the page, which decides what is offered here."""

    test = forms.IntegerField(
        label=gettext_lazy("Test rows"),
        min_value=1,
        max_value=MOST_ROWS,
        help_text=gettext_lazy("Sealed until you open the test. They decide what the judge may be used for."),
    )
    dev = forms.IntegerField(
        label=gettext_lazy("Dev rows"),
        min_value=0,
        max_value=MOST_ROWS,
        initial=USUAL.dev,
        help_text=gettext_lazy("To improve the prompt with, as often as you want."),
    )
    train = forms.IntegerField(
        label=gettext_lazy("Train rows"),
        min_value=0,
        max_value=MOST_ROWS,
        initial=USUAL.train,
        help_text=gettext_lazy("May stand in the prompt as worked examples."),
    )
    weighted = forms.BooleanField(
        label=gettext_lazy("Train and dev: more of what the judge failed or scored low"),
        required=False,
        help_text=gettext_lazy(
            "More mistakes to learn from. Their figures are then no fair sample and only improve the prompt; "
            "the test is drawn evenly all the same."
        ),
    )
    labels = forms.ChoiceField(
        label=gettext_lazy("Where labels come from"),
        required=False,
        help_text=gettext_lazy(
            "A licence from earlier ratings says that the labels existed before the draw."
        ),
    )
    raters = RaterChoice(
        None,
        label=gettext_lazy("Raters"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("They rate blind, without the judge's verdict. You can add more later."),
    )
    overlap = forms.IntegerField(
        label=gettext_lazy("Raters per item"),
        min_value=1,
        max_value=20,
        initial=1,
        help_text=gettext_lazy("With two or more, the licence also says how well people agree."),
    )
    shows_reference = forms.BooleanField(
        label=gettext_lazy("Show raters the reference"),
        required=False,
        help_text=gettext_lazy("Proposed where the judge's prompt reads it, so that both know the same."),
    )
    guideline = forms.CharField(
        label=gettext_lazy("Guideline for raters"),
        required=False,
        max_length=50_000,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text=gettext_lazy("Proposed from the judge's prompt. Markdown; raters see no model names."),
    )

    def __init__(
        self,
        data: Any,
        *,
        metric: Metric,
        definition: MetricDefinition,
        source: Source,
        guideline: str,
        doubted: bool = False,
        reads_reference: bool = False,
    ) -> None:
        """`doubted`: whether the judge failed or scored low some of the source's answers; `reads_reference`: whether it
        reads the rows' references."""
        raters = possible_raters(metric.project)
        initial = {
            "test": proposed_rows(source),
            "guideline": guideline,
            "shows_reference": reads_reference,
            "raters": [rater.pk for rater in raters if not rater.is_superuser]
            or [rater.pk for rater in raters],
        }
        super().__init__(data, initial=initial)
        self.fields["raters"].queryset = raters  # type: ignore[attr-defined]
        self.earlier = {str(each.run_metric.pk): each for each in labels_for(metric, definition, source)}
        names = [(key, _label_name(each, metric)) for key, each in self.earlier.items()]
        self.fields["labels"].choices = [("", _("ask people")), *names]  # type: ignore[attr-defined]
        if not self.earlier:
            del self.fields["labels"]
        if not doubted:
            del self.fields["weighted"]
        if not source.has_reference:
            del self.fields["shows_reference"]

    def asking(self) -> Asking:
        """Who rates what is drawn, and how."""
        values = self.cleaned_data
        shows_reference = values.get("shows_reference", False)
        return Asking(list(values["raters"]), values["overlap"], values["guideline"], shows_reference)

    def clean_labels(self) -> Labels | None:
        return self.earlier.get(self.cleaned_data["labels"])

    def sizes(self) -> Sizes:
        """The chosen sizes, or the usual ones where a field is wrong or empty."""
        values = self.cleaned_data if self.is_bound and self.is_valid() else {}
        values = values or getattr(self, "cleaned_data", {})
        sizes = {name: values.get(name) for name in ("train", "dev", "test")}
        chosen = {
            name: self.get_initial_for_field(self.fields[name], name) if size is None else size
            for name, size in sizes.items()
        }
        return Sizes(**chosen)

    @property
    def possible_raters(self) -> list[User]:
        return list(self.fields["raters"].queryset)  # type: ignore[attr-defined]

    @property
    def chosen_overlap(self) -> int:
        return int(getattr(self, "cleaned_data", {}).get("overlap") or 1)


class FurtherForm(DrawForm):
    """What to draw later, and who rates it. Labels that are there already give a test of their own, no further rows."""

    def __init__(self, data: Any, *, test: SealedTest, free: FreeRows, **options: Any) -> None:
        super().__init__(data, **options)
        for name in ("labels", "weighted"):
            self.fields.pop(name, None)
        last = test.evaluations[-1] if test.evaluations else None
        initial: dict[str, Any] = asdict(proposed_sizes(test, free))
        if last is not None:
            initial |= {"overlap": last.overlap, "shows_reference": last.shows_reference}
            initial |= {"guideline": last.guideline}
            initial |= {"raters": list(last.raters.filter(left_at=None).values_list("user", flat=True))}
        self.initial = {**self.initial, **initial}
        growth, rows = free.growth, self.fields["test"]
        rows.min_value = 0  # type: ignore[attr-defined]
        rows.validators = [MaxValueValidator(MOST_ROWS), MinValueValidator(0)]
        rows.widget.attrs["min"] = 0
        if not test.can_grow:
            rows.disabled = True
            rows.help_text = _("This test takes no more rows: it is closed, or its labels were there before.")
        else:
            rows.help_text = _numbers_of(growth)


def _numbers_of(growth: Growth) -> str:
    """How many rows can join a test."""
    numbers = {"fewest": growth.fewest, "most": growth.most}
    if growth.fewest <= 1:
        return _("At most %(most)s. Sealed until you open the test.") % numbers
    return (
        _("None, or %(fewest)s to %(most)s, so that every row is as likely in the test as any other.")
        % numbers
    )


def _label_name(labels: Labels, metric: Metric) -> str:
    run_metric = labels.run_metric
    name = run_metric.run.name
    if run_metric.name != metric.name:
        name = f"{name} · {run_metric.name}"
    return _("take those of “%(name)s”") % {"name": name}


class OpenForm(forms.Form):
    """The run whose verdicts the test is opened for."""

    run_metric = forms.ModelChoiceField(RunMetric.objects.none(), required=True)

    def __init__(self, data: Any, offered: list[RunMetric]) -> None:
        super().__init__(data)
        field = self.fields["run_metric"]
        field.queryset = RunMetric.objects.filter(pk__in=[each.pk for each in offered])  # type: ignore[attr-defined]


class LiftForm(forms.Form):
    """Why a suspended licence holds again."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"), max_length=2_000, widget=forms.Textarea(attrs={"rows": 3})
    )


class ExpiryForm(forms.Form):
    """The day on which a licence lapses."""

    expires_on = forms.DateField(
        label=gettext_lazy("Lapses on"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )

    def clean_expires_on(self) -> Any:
        day = self.cleaned_data["expires_on"]
        if day is not None and day <= timezone.localdate():
            raise forms.ValidationError(_("Choose a day after today; a licence that has lapsed stays so."))
        return day
