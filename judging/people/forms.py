"""The forms of a new human evaluation: data, criteria, raters."""

from __future__ import annotations

import random
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from datasets.models import Candidate, Version
from evalsite.accounts.models import User
from evalsite.templatetags.show import number
from judging.core.people.criteria import COMPARING, MOST_CATEGORIES, Criterion, Scale
from judging.core.people.ranking import FEWEST_RANKED, MOST_RANKED
from judging.core.people.spans import MOST_LABELS
from judging.filters.conditions import matching
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.people.blindness import HIDEABLE, LONGEST_NAME, FileSide, checked_names, is_named, proposed_names
from judging.people.labels import SCALES
from judging.people.models import Order, Scheme
from judging.people.presets import (
    AS_IT_STANDS,
    MARK_SPANS,
    ONE_AT_A_TIME,
    SINGLE,
    Preset,
    candidates_of,
    criteria_of_run,
    others,
    twin_of,
)
from judging.people.sampling import ItemChoice
from judging.people.selectors import possible_raters
from judging.people.services import MOST_ITEMS, Terms
from judging.records.models import Run
from judging.runs.forms import SEEDS, CandidateChoice, VersionChoice
from judging.runs.services import free_name

MOST_CRITERIA = 10
_ANSWERS_PROPOSED = 30  # of each candidate
_SEVERAL_ANSWERS = _(
    "Some candidates have several answers per row. One at a time, each is rated; side by side, the first ones are "
    "compared."
)


class OneCandidate(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A choice of candidates, by name."""

    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


class RaterChoice(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """A choice of people, by full name and user name."""

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError:  # raised by SQLite for ids beyond 64 bits
            raise forms.ValidationError(gettext("Select a valid choice."), code="invalid_choice") from None

    def label_from_instance(self, obj: Any) -> str:
        full = obj.get_full_name()
        return f"{full} ({obj.username})" if full else str(obj.username)


class EvaluationForm(forms.Form):
    """Items and settings of an evaluation, without its criteria."""

    kind = forms.ChoiceField(label=_("Type"), widget=forms.RadioSelect)
    candidates = CandidateChoice(
        Candidate.objects.none(),
        label=_("Candidates"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("Raters never see these names; the sides are shuffled."),
    )
    baseline = OneCandidate(Candidate.objects.none(), label=_("Baseline"), required=False, empty_label="–")
    other_version = VersionChoice(
        Version.objects.none(), label=_("The other file"), required=False, empty_label="–"
    )
    name_here = forms.CharField(
        label=_("Name of this file's answers"),
        max_length=LONGEST_NAME,
        required=False,
        help_text=_("For example, the model's name. Raters never see it."),
    )
    name_there = forms.CharField(
        label=_("Name of the other file's answers"), max_length=LONGEST_NAME, required=False
    )
    pairs_per_item = forms.IntegerField(
        label=_("Pairs per row"), min_value=1, max_value=50, initial=1, required=False
    )
    sample_size = forms.IntegerField(
        label=_("Sample size"),
        min_value=1,
        max_value=200_000,
        required=False,
        help_text=_(
            "Leave empty for all rows. A random sample can later be used to correct a judge model's scores."
        ),
    )
    stratify_by = forms.ChoiceField(
        label=_("Stratify by"),
        required=False,
        help_text=_(
            "The sample keeps the proportions of this field's values, with at least one row for each."
        ),
    )
    overlap = forms.IntegerField(
        label=_("Raters for each item"),
        min_value=1,
        max_value=50,
        initial=1,
        help_text=_("Two or more are needed to measure agreement."),
    )
    order = forms.ChoiceField(label=_("Order"), choices=Order.choices, initial=Order.RANDOM)
    repeat_share = forms.IntegerField(
        label=_("Hidden repeats, %"),
        min_value=0,
        max_value=50,
        initial=0,
        help_text=_("Items shown to the same rater again with the sides swapped, to measure consistency."),
    )
    gold_share = forms.IntegerField(
        label=_("Gold items, %"),
        min_value=0,
        max_value=50,
        initial=0,
        help_text=_(
            "Share of items with known answers, which you add after creating the evaluation. They measure raters "
            "and do not count in the results."
        ),
    )
    lease_minutes = forms.IntegerField(
        label=_("Time limit per item (minutes)"), min_value=2, max_value=10_080, initial=30
    )
    shows_reference = forms.BooleanField(label=_("Show raters the reference"), required=False)
    hidden_roles = forms.MultipleChoiceField(
        label=_("Hide from raters"),
        choices=list(HIDEABLE.items()),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("Custom fields, message names and model names are never shown to raters."),
    )
    raters = RaterChoice(
        User.objects.none(), label=_("Raters"), widget=forms.CheckboxSelectMultiple, required=False
    )
    name = forms.CharField(
        label=_("Name"),
        max_length=200,
        help_text=_("Raters see this name, so don't mention the models."),
    )
    guideline = forms.CharField(
        label=_("General guideline"),
        required=False,
        max_length=50_000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("Markdown. Each criterion can have its own guideline too."),
    )
    draft = forms.BooleanField(
        label=_("Keep it as a draft"),
        required=False,
        help_text=_(
            "Raters see nothing of it until you open it. Gold items, dates and a pilot can be prepared."
        ),
    )
    seed = forms.IntegerField(label=_("Random seed"), min_value=0, max_value=SEEDS - 1, required=False)

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        version: Version,
        offered: list[Preset],
        about: Run | None = None,
        filters: Filters = ANYTHING,
    ) -> None:
        candidates = candidates_of(version)
        if about is not None:
            of_run = about.run_candidates.values("candidate")
            candidates = candidates.model.objects.filter(pk__in=of_run).order_by("name")
        self.version, self.about, self.filters = version, about, filters
        raters = possible_raters(version.dataset.project)
        compares_files = any(preset.code == Scheme.VERSIONS for preset in offered)
        initial = {
            **(_proposed_twin(version) if compares_files and data is None else {}),
            "kind": offered[0].code,
            "candidates": list(candidates),
            "raters": [rater.pk for rater in raters if not rater.is_superuser]
            or [rater.pk for rater in raters],
            "name": free_name(version.dataset.project, gettext("Rating")),
            "seed": random.randrange(SEEDS),
        }
        super().__init__(_with_proposed_names(data, version) if data else data, initial=initial)
        some = self.fields
        queries = {"candidates": candidates, "baseline": candidates, "raters": raters}
        for key, queryset in {**queries, "other_version": others(version)}.items():
            some[key].queryset = queryset  # type: ignore[attr-defined]
        some["kind"].choices = [(preset.code, preset.name) for preset in offered]  # type: ignore[attr-defined]
        fields = [(name, name) for name in sorted(version.fields_found)]
        some["stratify_by"].choices = [("", _("not stratified")), *fields]  # type: ignore[attr-defined]
        if about is not None:
            self._adapt_to_answers(about)
        self.offered = {preset.code: preset for preset in offered}
        if any(candidate.responses > version.valid_rows for candidate in candidates):
            some["candidates"].help_text = _SEVERAL_ANSWERS

    def _adapt_to_answers(self, about: Run) -> None:
        """Adapt the fields: with a run, its answers are drawn, not rows."""
        size, strata = self.fields["sample_size"], self.fields["stratify_by"]
        judged = about.total // max(1, about.metrics.count())
        if self.filters != ANYTHING:
            answers = matching(about, self.filters).order_by().values("response").distinct()
            judged = min(judged, answers[: MOST_ITEMS + 1].count())
        size.label, size.required = _("Number of answers"), True
        size.help_text = _("Sampled at random from all %(n)s judged answers, equally across candidates.") % {
            "n": number(judged)
        }
        self.initial["sample_size"] = min(judged, _ANSWERS_PROPOSED * about.run_candidates.count())
        strata.label = _("Stratify by the score of")
        strata.help_text = _("Low and high scores each get their share. The probabilities are kept.")
        names = about.metrics.order_by("number").values_list("name", flat=True)
        strata.choices = [("", _("nothing: purely at random")), *((name, name) for name in names)]  # type: ignore[attr-defined]

    def kind_boxes(self) -> list[tuple[Any, Preset]]:
        """Each scheme's radio button with its preset."""
        return [(box, self.offered[str(box.data["value"])]) for box in self["kind"]]

    @property
    def chosen_kind(self) -> str:
        """The chosen or proposed scheme."""
        sent = self.data.get("kind") if self.is_bound else None
        return sent if sent in self.offered else str(self.initial["kind"])

    @property
    def proposes(self) -> Scale:
        """The scale of the first criterion that is proposed for the chosen scheme."""
        return self.offered[self.chosen_kind].proposes

    def clean(self) -> dict[str, Any]:
        sent = super().clean() or {}
        kind, chosen = sent.get("kind"), list(sent.get("candidates") or [])
        if kind in (AS_IT_STANDS, Scheme.VERSIONS):
            sent["candidates"] = chosen = []
        if kind in (SINGLE, MARK_SPANS, Scheme.REFERENCE) and not chosen:
            self.add_error("candidates", gettext("Choose at least one candidate."))
        if kind in (Scheme.EVERY_PAIR, Scheme.BALANCED, Scheme.BASELINE) and len(chosen) < 2:
            self.add_error("candidates", gettext("Choose at least two candidates to compare."))
        if kind == Scheme.RANK and not FEWEST_RANKED <= len(chosen) <= MOST_RANKED:
            self.add_error("candidates", gettext("Choose three to six candidates to rank."))
        if kind == Scheme.BASELINE and sent.get("baseline") not in chosen:
            self.add_error("baseline", gettext("Choose one of the candidates as the baseline."))
        if kind == Scheme.VERSIONS and not sent.get("other_version"):
            self.add_error("other_version", gettext("Choose the version to compare with."))
        elif kind == Scheme.VERSIONS:
            self._clean_side_names(sent)
        refuse_model_names(self, self.names())
        return sent

    def _clean_side_names(self, sent: dict[str, Any]) -> None:
        try:
            checked_names(sent.get("name_here", ""), sent.get("name_there", ""))
        except forms.ValidationError as error:
            self.add_error("name_there", error)

    def names(self) -> list[str]:
        """Names that raters must not see: of the candidates, or of the two files. Call after is_valid."""
        sent = self.cleaned_data if self.is_bound else self.initial
        files = [str(sent.get(field) or "") for field in ("name_here", "name_there")]
        compares_files = self.chosen_kind == Scheme.VERSIONS
        return [candidate.name for candidate in candidates_of(self.version)] + (
            files if compares_files else []
        )

    def clean_seed(self) -> int:
        seed = self.cleaned_data["seed"]
        return random.randrange(SEEDS) if seed is None else int(seed)

    def choice(self) -> ItemChoice:
        """The items to rate. Call after is_valid."""
        sent, kind = self.cleaned_data, self.cleaned_data["kind"]
        return ItemChoice(
            version=self.version,
            candidates=list(sent["candidates"]),
            scheme="" if kind in ONE_AT_A_TIME else kind,
            baseline=sent["baseline"] if kind == Scheme.BASELINE else None,
            other_version=sent["other_version"] if kind == Scheme.VERSIONS else None,
            side_names=(sent["name_here"], sent["name_there"]),
            pairs_per_item=sent["pairs_per_item"] or 1,
            sample_size=sent["sample_size"],
            stratify_by=sent["stratify_by"],
            about=self.about,
            filters=self.filters,
            seed=sent["seed"],
        )

    def terms(self) -> Terms:
        """The settings of the evaluation. Call after is_valid."""
        sent = self.cleaned_data
        return Terms(
            overlap=sent["overlap"],
            order=sent["order"],
            lease_minutes=sent["lease_minutes"],
            gold_share=sent["gold_share"] / 100,
            repeat_share=sent["repeat_share"] / 100,
            shows_reference=sent["shows_reference"],
            hidden_roles=sent["hidden_roles"],
            guideline=sent["guideline"],
            draft=sent["draft"],
        )


def _proposed_twin(version: Version) -> dict[str, Any]:
    """Initial values: the file that the version is probably compared with, and the names of both sides."""
    twin = twin_of(version)
    here, there = proposed_names(version, twin) if twin else ("", "")
    return {"other_version": twin, "name_here": here, "name_there": there}


def _with_proposed_names(data: QueryDict, version: Version) -> QueryDict:
    """Replace the sent names of the two files by proposed ones unless the user typed others."""
    versions = {str(other.pk): other for other in others(version)}
    other = versions.get(data.get("other_version", ""))
    if other is None:
        return data
    proposals = {name for twin in versions.values() for name in proposed_names(version, twin)}
    named = data.copy()
    for field, name in zip(("name_here", "name_there"), proposed_names(version, other), strict=True):
        typed = data.get(field, "").strip()
        named[field] = typed if typed and typed not in proposals else name
    return named


def refuse_model_names(form: forms.Form, names: list[str]) -> None:
    """Add an error to texts that raters read if they contain a model's name."""
    for field in ("name", "guideline", "categories"):
        text = str(form.cleaned_data.get(field) or "")
        if named := next((name for name in names if is_named(name, text)), ""):
            problem = gettext(
                "Raters can read this text, and it contains the model name %(name)s. Remove the name."
            )
            form.add_error(field, problem % {"name": named})


class SidesForm(forms.Form):
    """The names of the two compared files."""

    here = forms.CharField(max_length=LONGEST_NAME)
    there = forms.CharField(max_length=LONGEST_NAME)

    def __init__(self, data: QueryDict | None, sides: list[FileSide]) -> None:
        here, there = sides
        super().__init__(data, initial={"here": here.name, "there": there.name})
        self.fields["here"].label, self.fields["there"].label = here.file, there.file


class CriterionForm(forms.Form):
    """One criterion."""

    name = forms.CharField(
        label=pgettext_lazy("of a human evaluation", "Criterion"),
        max_length=100,
        required=False,
        help_text=_("Leave empty to remove this criterion."),
    )
    scale = forms.ChoiceField(label=_("Scale"), choices=list(SCALES.items()))
    categories = forms.CharField(
        label=_("Categories"),
        required=False,
        max_length=5000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("One per line; only for the categories scale, and for spans their labels (up to 9)."),
    )
    both_bad = forms.BooleanField(label=_("Allow “Both bad”"), required=False)
    required = forms.BooleanField(label=_("Required"), required=False)
    guideline = forms.CharField(
        label=_("Guideline"),
        required=False,
        max_length=50_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Markdown. When to choose which value; raters open it with G."),
    )

    def clean(self) -> dict[str, Any]:
        sent = super().clean() or {}
        names = [line.strip() for line in str(sent.get("categories", "")).splitlines() if line.strip()]
        sent["categories"] = list(dict.fromkeys(names))
        if sent.get("scale") == "categories" and not 2 <= len(sent["categories"]) <= MOST_CATEGORIES:
            self.add_error("categories", gettext("Enter 2 to 50 categories, one per line."))
        if sent.get("scale") == "spans" and not 0 < len(sent["categories"]) <= MOST_LABELS:
            self.add_error(
                "categories", gettext("Enter 1 to 9 labels, one per line: each has a digit as its key.")
            )
        return sent

    def criterion(self) -> Criterion:
        """Call after is_valid."""
        sent = self.cleaned_data
        return Criterion(
            name=sent["name"],
            scale=sent["scale"],
            guideline=sent["guideline"],
            required=sent["required"],
            categories=tuple(sent["categories"]) if sent["scale"] in ("categories", "spans") else (),
            both_bad=sent["both_bad"] and sent["scale"] in COMPARING,
        )


CriteriaForms = forms.formset_factory(
    CriterionForm, extra=0, max_num=MOST_CRITERIA, validate_max=True, absolute_max=20
)


def proposed_criteria(scale: Scale, about: Run | None = None) -> list[dict[str, Any]]:
    """Initial data of an empty form. `scale`: see `EvaluationForm.proposes`."""
    if scale == "spans":
        labels = (
            pgettext("kind of error", "Accuracy"),
            pgettext("kind of error", "Terminology"),
            pgettext("kind of error", "Language"),
            pgettext("kind of error", "Style"),
            pgettext("kind of error", "Other"),
        )
        return [
            {
                "name": pgettext("criterion", "Errors"),
                "scale": scale,
                "required": True,
                "categories": "\n".join(labels),
            }
        ]
    if about is not None:
        return [
            {
                "name": criterion.name,
                "scale": criterion.scale,
                "required": True,
                "categories": "\n".join(criterion.categories),
            }
            for criterion in criteria_of_run(about)
        ]
    name = gettext("Preference") if scale in ("steps", "rank") else gettext("Quality")
    return [{"name": name, "scale": scale, "both_bad": scale == "steps", "required": True}]
