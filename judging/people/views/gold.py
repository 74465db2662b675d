"""Gold items of an evaluation: list, add one with a preview, import from a file, turn an item into gold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST

from datasets.models import Candidate
from evalsite.access import May, signed_in
from evalsite.names import join_sentences
from evalsite.web.request_limits import allow, file_too_large, upload_page
from judging.core.people.criteria import Criterion
from judging.core.people.gold import SUM_WITHIN, Accepted, accepted_values
from judging.core.people.parts import joined, parts_of, split
from judging.people.access import get_evaluation, get_item
from judging.people.forms import OneCandidate
from judging.people.gold import (
    LONGEST_FILE,
    LONGEST_REASON,
    MOST_OFF,
    WrongLine,
    gold_add,
    gold_change,
    gold_of_item,
    gold_read,
    gold_remove,
    item_at,
)
from judging.people.gold_rule import gold_rule_change
from judging.people.item_criteria import content_of, criteria_for
from judging.people.item_view import shown_in
from judging.people.labels import SEVERITY_NAMES, labelled_gold, value_label, values_of
from judging.people.models import Evaluation, GoldRule, Item, Scheme
from judging.people.quota import gold_supply
from judging.people.selectors import items_page


class GoldPlaceForm(forms.Form):
    """The row and the candidates of its answers; only `a` for a single answer, none where all are ranked."""

    row = forms.IntegerField(label=gettext_lazy("Row"), min_value=1, max_value=2**31 - 1)
    a = OneCandidate(Candidate.objects.none(), label=gettext_lazy("Answer A of"), empty_label=None)
    b = OneCandidate(Candidate.objects.none(), label=gettext_lazy("Answer B of"), empty_label=None)

    def __init__(self, data: Any, *, candidates: QuerySet[Candidate], pair: bool, ranked: bool) -> None:
        super().__init__(data)
        for field in ("a", "b"):
            self.fields[field].queryset = candidates  # type: ignore[attr-defined]
        if ranked:
            del self.fields["a"], self.fields["b"]
        elif pair:
            self.initial["b"] = candidates.values_list("pk", flat=True)[1:2].first()
        else:
            del self.fields["b"]
            self.fields["a"].label = gettext_lazy("Answer of")

    @property
    def names(self) -> list[str]:
        """Names of the candidates ('' for none). Call after is_valid."""
        return [self.cleaned_data[side].name if self.cleaned_data.get(side) else "" for side in ("a", "b")]


class GoldValuesForm(forms.Form):
    """The correct value of each criterion that is chosen, others that are accepted, and the reason."""

    def __init__(
        self,
        data: Any,
        *,
        criteria: dict[int, Criterion],
        values: Mapping[int, Accepted] | None = None,
        reason: str = "",
    ) -> None:
        super().__init__(data, initial=_initial(criteria, values or {}) | {"reason": reason})
        self.criteria = criteria
        self.parts = [part for part in parts_of(criteria) if not part.criterion.is_written]
        self.spans = [(number, criterion) for number, criterion in criteria.items() if criterion.marks_spans]
        for part in self.parts:
            criterion = part.criterion
            choices = [
                ("", "–"),
                *((str(place), value_label(criterion, v)) for place, v in enumerate(criterion.choices)),
            ]
            self.fields[f"value_{part.key}"] = forms.ChoiceField(
                label=criterion.name, choices=choices, required=len(criteria) == 1
            )
            if len(criterion.choices) > 2 and criterion.scale not in ("mark", "place"):
                self.fields[f"also_{part.key}"] = forms.MultipleChoiceField(
                    label=_("%(name)s: also accepted") % {"name": criterion.name},
                    choices=choices[1:],
                    required=False,
                    widget=forms.CheckboxSelectMultiple,
                )
        for number, criterion in self.spans:
            self.fields[f"within_{number}"] = forms.IntegerField(
                label=_("%(name)s: the sum may be off by") % {"name": criterion.name},
                min_value=0,
                max_value=MOST_OFF,
                initial=SUM_WITHIN,
                help_text=_(
                    "A rating is right when it marks each of these places with the same label, and the sums differ by "
                    "no more than this."
                ),
            )
        self.fields["reason"] = forms.CharField(
            label=_("Reason"),
            required=False,
            max_length=LONGEST_REASON,
            widget=forms.Textarea(attrs={"rows": 2}),
            help_text=_(
                "Why this is right. Raters see it in a training, otherwise only organisers and reviewers do."
            ),
        )

    def values(self) -> dict[str, Any]:
        """{criterion name: chosen value, or the accepted ones}. Call after is_valid."""
        chosen = {part.key: self.cleaned_data[f"value_{part.key}"] for part in self.parts}
        by_key = {
            part.key: part.criterion.choices[int(chosen[part.key])] for part in self.parts if chosen[part.key]
        }
        by_number = joined(self.criteria, by_key)
        named = {self.criteria[number].name: value for number, value in by_number.items()}
        for part in self.parts:
            also = self.cleaned_data.get(f"also_{part.key}") or ()
            if also and part.key in by_key:
                others = [part.criterion.choices[int(place)] for place in also]
                named[part.criterion.name] = [by_key[part.key], *others]
        for number, criterion in self.spans:
            if marked := self.marked(number):
                named[criterion.name] = {"value": marked, "within": self.cleaned_data[f"within_{number}"]}
        return named

    def marked(self, number: int) -> str:
        """The spans as the marking sends them, or those that are known; '' for none."""
        if self.is_bound:
            return str(self.data.get(f"v{number}", "")).strip()
        return str(self.initial.get(f"v{number}", ""))

    def span_parts(self) -> list[dict[str, Any]]:
        """What `people/_verdict_parts.html` needs for marking."""
        severities = [(severity, *told) for severity, told in SEVERITY_NAMES.items()]
        return [
            {"key": number, "criterion": criterion, "text": self.marked(number), "severities": severities}
            for number, criterion in self.spans
        ]

    @property
    def reason(self) -> str:
        """Call after is_valid."""
        return str(self.cleaned_data["reason"])


def _initial(criteria: dict[int, Criterion], values: Mapping[int, Accepted]) -> dict[str, Any]:
    """What the form shows for known answers."""
    initial: dict[str, Any] = {}
    first = {number: accepted_values(accepted)[0] for number, accepted in values.items()}
    for number, accepted in values.items():
        if isinstance(accepted, dict):
            initial |= {f"v{number}": accepted["spans"], f"within_{number}": accepted["within"]}
    first = {number: value for number, value in first.items() if f"v{number}" not in initial}
    for key, value in split(criteria, first).items():
        part = next(part for part in parts_of(criteria) if part.key == key)
        places = [str(part.criterion.choices.index(value))] if value in part.criterion.choices else []
        initial[f"value_{key}"] = next(iter(places), "")
        also = accepted_values(values[part.number])[1:]
        initial[f"also_{key}"] = [str(part.criterion.choices.index(other)) for other in also]
    return initial


class GoldRuleForm(forms.Form):
    """The pass mark of gold in percent, and what happens to raters who miss it."""

    mark = forms.IntegerField(label=gettext_lazy("Pass mark, % of gold items"), min_value=1, max_value=100)
    rule = forms.ChoiceField(label=gettext_lazy("Who misses it"), choices=GoldRule.choices)

    @classmethod
    def of(cls, evaluation: Evaluation) -> GoldRuleForm:
        return cls(initial={"mark": round(100 * evaluation.gold_mark), "rule": evaluation.gold_rule})


class GoldFileForm(forms.Form):
    """Gold from a JSON Lines file."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy(
            'JSON Lines: {"row": 3, "a": "…", "b": "…", "values": {"…": "A>B"}, "reason": "…"}; A is the answer called '
            'a. Several accepted values: ["A>B", "A>>B"]; a tolerance: {"value": 4, "within": 1}.'
        ),
    )


@upload_page
@login_required
def gold(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The list. With a row in the query, shows its answers so that the correct values can be entered."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    allow(request, LONGEST_FILE, file_too_large(LONGEST_FILE))
    return _gold(request, slug, evaluation)


@csrf_protect
def _gold(request: HttpRequest, slug: str, evaluation: Evaluation) -> HttpResponse:
    criteria = evaluation.criteria
    sent = request.POST if request.method == "POST" else request.GET
    taking_part = Candidate.objects.filter(pk__in=evaluation.run.run_candidates.values("candidate"))
    place = GoldPlaceForm(
        sent if "row" in sent else None,
        candidates=taking_part.order_by("pk"),  # as in the items, A first
        pair=bool(evaluation.scheme),
        ranked=evaluation.scheme == Scheme.RANK,
    )
    seen = _seen(evaluation, place)
    values_form = GoldValuesForm(
        request.POST if "row" in request.POST else None, criteria=seen.pop("criteria", criteria)
    )
    file = GoldFileForm(request.POST, request.FILES) if "file" in request.FILES else GoldFileForm()
    wrong: list[WrongLine] = []
    if file.is_bound:
        wrong = _from_file(request, evaluation, file)
    elif request.method == "POST" and place.is_valid() and values_form.is_valid():
        _add_one(request, evaluation, place, values_form)
    refused = bool(wrong or file.errors or values_form.errors or (request.method == "POST" and place.errors))
    if request.method == "POST" and not refused:
        return redirect("people:gold", slug, evaluation.run_id)
    page, further = items_page(evaluation, "gold")
    context: dict[str, Any] = {
        "evaluation": evaluation,
        "place": place,
        "values_form": values_form,
        "file_form": file,
        "wrong": wrong,
        "rule_form": GoldRuleForm.of(evaluation),
        "supply": gold_supply(evaluation),
        "further": further,
        "items": [(item, labelled_gold(criteria, values_of(item.gold))) for item in page],
        **seen,
    }
    return render(request, "people/gold.html", context, status=422 if refused else 200)


def _seen(evaluation: Evaluation, place: GoldPlaceForm) -> dict[str, Any]:
    """The item that the form names, as raters see it but with names; empty if there is none."""
    if not place.is_bound or not place.is_valid():
        return {}
    try:
        item = item_at(evaluation, place.cleaned_data["row"], *place.names)
    except ValidationError as error:
        place.add_error(None, error)
        return {}
    return {
        "shown": shown_in(evaluation, item, 1, with_reference=True),
        "names": item.candidate_names,
        "criteria": criteria_for(evaluation, item),
        "content": content_of(item),
    }


def _add_one(
    request: HttpRequest, evaluation: Evaluation, place: GoldPlaceForm, values_form: GoldValuesForm
) -> None:
    try:
        item = item_at(evaluation, place.cleaned_data["row"], *place.names)
        gold = gold_of_item(evaluation, item, values_form.values(), values_form.reason)
        _add(request, evaluation, [gold])
    except ValidationError as error:
        values_form.add_error(None, error)


def _from_file(request: HttpRequest, evaluation: Evaluation, form: GoldFileForm) -> list[WrongLine]:
    """All or nothing, so that a corrected file can be uploaded again."""
    if not form.is_valid():
        return []
    text = form.cleaned_data["file"].read(LONGEST_FILE).decode("utf-8-sig", "replace")
    items, wrong = gold_read(evaluation, text)
    if not wrong:
        try:
            _add(request, evaluation, items)
        except ValidationError as error:
            form.add_error(None, error)
    return wrong


def _add(request: HttpRequest, evaluation: Evaluation, items: list[Item]) -> None:
    count = gold_add(evaluation=evaluation, gold=items, by=signed_in(request))
    text = ngettext("%(n)s gold item added.", "%(n)s gold items added.", count)
    messages.success(request, text % {"n": count})


@login_required
@require_POST
def gold_rule(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Change the pass mark and what happens to who misses it."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    form = GoldRuleForm(request.POST)
    if form.is_valid():
        mark, rule = form.cleaned_data["mark"] / 100, form.cleaned_data["rule"]
        gold_rule_change(evaluation=evaluation, mark=mark, rule=rule, by=signed_in(request))
        messages.success(request, _("Saved."))
    else:
        messages.error(request, _("Enter a pass mark from 1 to 100 %."))
    return redirect("people:gold", slug, pk)


@login_required
@require_POST
def use_as_gold(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """Use an item as gold."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    item = get_item(evaluation, number)
    values_form = GoldValuesForm(request.POST, criteria=criteria_for(evaluation, item))
    try:
        if not values_form.is_valid():
            raise ValidationError(_("Choose the right answers from the lists."))
        gold = gold_of_item(evaluation, item, values_form.values(), values_form.reason)
        _add(request, evaluation, [gold])
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
    return redirect("people:item", slug, pk, number)


@login_required
def change_gold(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """Change the known answers of a gold item and their reason, or use a removed one again."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    item = get_item(evaluation, number)
    if not item.gold:
        raise Http404
    criteria = criteria_for(evaluation, item)
    sent = request.POST if request.method == "POST" else None
    form = GoldValuesForm(sent, criteria=criteria, values=values_of(item.gold), reason=item.gold_reason)
    if request.method == "POST" and form.is_valid():
        try:
            gold = gold_of_item(evaluation, item, form.values(), form.reason)
            gold_change(item=item, gold=gold, by=signed_in(request))
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, _("Changed. Gold hits are counted with the new answers."))
            return redirect("people:item", slug, pk, number)
    context = {
        "evaluation": evaluation,
        "item": item,
        "form": form,
        "content": content_of(item),
        "names": item.candidate_names,
        "shown": shown_in(evaluation, item, 1, with_reference=not item.rates_reference),
    }
    return render(request, "people/change_gold.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def remove_gold(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """Take a gold item out; its ratings are kept."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    item = get_item(evaluation, number)
    if not item.gold:
        raise Http404
    gold_remove(item=item, by=signed_in(request))
    messages.success(request, _("Removed. Raters no longer get it, and its ratings count in no gold hits."))
    return redirect("people:item", slug, pk, number)
