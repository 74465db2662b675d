"""The page of one judgement, and the panel next to the grid, with the form to override its verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from datasets.core.kinds import BOTH_BAD, COMPARISON_CODES
from evalsite.access import May, signed_in
from evalsite.text_diff import sides
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole
from judging.core.metric_definition import MetricDefinition
from judging.core.values import value_of
from judging.filters.addresses import filters_in, items_url, judgement_url, query_in
from judging.filters.filter_form import FLAGS
from judging.filters.judgement_filter import Filters
from judging.filters.orders import place_of
from judging.markdown import MarkupBudget, html_of
from judging.messages import stored_verdict_text
from judging.people.access import blind_evaluations, ratings_hidden
from judging.people.selectors import items_about, said_of, seen_by_people
from judging.records.access import get_judgement
from judging.records.models import INFER, PEOPLE, Generation, Judgement, JudgementState, JudgeReply, Override
from judging.records.overrides import OverrideConflict, override_add, override_withdraw
from judging.review import selectors
from judging.review.content import Part
from judging.review.forms import OverrideForm, WithdrawForm
from judging.review.history import timeline
from judging.review.judgement_view import JudgementView, judgement_view
from judging.review.override_values import override_form

TABS = ("rendered", "raw", "request", "reply", "script", "history")
EXCERPT = 400  # characters of a judge's reply; longer ones are folded
MOST_REPLIES = 60  # to choose from for a comparison


@login_required
def panel(request: HttpRequest, slug: str, pk: int, judgement_pk: int) -> HttpResponse:
    """One judgement in the panel next to the grid."""
    return _panel(request, get_judgement(request, slug, pk, judgement_pk))


@login_required
def judgement(request: HttpRequest, slug: str, pk: int, judgement_pk: int) -> HttpResponse:
    """One judgement with everything that led to it. While its newest attempt is pending, the page polls for it."""
    judgement = get_judgement(request, slug, pk, judgement_pk)
    if part_wanted(request):
        waits = _waits(selectors.attempts(judgement))
        return HttpResponse(status=204) if waits else HttpResponseClientRefresh()
    return _page(request, judgement)


def _waits(attempts: Iterable[Judgement]) -> bool:
    """Whether an attempt is pending. `attempts`: all of them."""
    return any(
        attempt.current and attempt.state == JudgementState.NOT_RUN and not attempt.run.is_idle
        for attempt in attempts
    )


@login_required
@require_POST
def override(request: HttpRequest, slug: str, pk: int, judgement_pk: int) -> HttpResponse:
    """Override the value of all attempts."""
    judgement = get_judgement(request, slug, pk, judgement_pk, May.REVIEW)
    done = _("Score overridden. The original value is kept.")
    return _change(request, judgement, override_form(judgement, request.POST), override_add, done)


@login_required
@require_POST
def withdraw(request: HttpRequest, slug: str, pk: int, judgement_pk: int) -> HttpResponse:
    """Withdraw the override: the attempts' own values count again."""
    judgement = get_judgement(request, slug, pk, judgement_pk, May.REVIEW)
    done = _("Override withdrawn. The judge's own value counts again.")
    return _change(request, judgement, _withdraw_form(request.POST), override_withdraw, done)


def _change(
    request: HttpRequest,
    judgement: Judgement,
    form: OverrideForm | WithdrawForm,
    service: Callable[..., Override],
    done: str,
) -> HttpResponse:
    """Apply a valid form, else show it with its errors; on the page or in the panel next to the grid."""
    if ratings_hidden(request, judgement.run):
        raise PermissionDenied
    in_panel = part_wanted(request)
    show = _panel if in_panel else _page
    if not form.is_valid():
        return show(request, judgement, form, status=422)
    try:
        service(judgement=judgement, by=signed_in(request), **form.cleaned_data)
    except OverrideConflict:
        _add_conflict(judgement, form)
        return show(request, judgement, form, status=422 if in_panel else 409)
    if in_panel:
        judgement.refresh_from_db()
        return _panel(request, judgement)
    messages.success(request, done)
    return redirect(judgement_url(judgement.run, judgement.pk, query_in(request, judgement.run)))


def _add_conflict(judgement: Judgement, form: OverrideForm | WithdrawForm) -> None:
    """Report the conflict and keep the input; `seen` becomes the newest entry, so that submitting again succeeds."""
    form.add_error(
        None,
        _(
            "Someone else changed this override in the meantime. Check its history above, then send this again."
        ),
    )
    form.data = dict(form.data.items()) | {"seen": _newest(selectors.overrides_of(judgement))}


def _newest(history: list[Override]) -> int:
    return history[0].pk if history else 0


def _withdraw_form(data: Any = None, *, seen: int = 0) -> WithdrawForm:
    return WithdrawForm(data, initial={"seen": seen}, auto_id="withdraw_%s")


def _page(
    request: HttpRequest,
    judgement: Judgement,
    form: OverrideForm | WithdrawForm | None = None,
    status: int = 200,
) -> HttpResponse:
    run, filters = judgement.run, filters_in(request, judgement.run)
    if ratings_hidden(request, judgement.run):
        return render(request, "reports/hidden.html", {"run": run})
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else TABS[0]
    budget = MarkupBudget()
    context = _judgement_context(request, judgement, form, budget)
    here = filters.query(tab=tab if tab != TABS[0] else "")
    before, after = selectors.neighbours(judgement, filters)
    context |= {
        "tab": tab,
        "tabs": _tabs(filters, tab),
        "query": filters.query(),
        "here": here,
        "history": filters.query(tab="history"),
        "items_url": _items_url(request, judgement, filters, first=before is None),
        "previous_url": judgement_url(run, before, here) if before else "",
        "next_url": judgement_url(run, after, here) if after else "",
        **_of_tab(request, tab, judgement, context, budget),
    }
    return render(request, "review/judgement.html", context, status=status)


def _items_url(request: HttpRequest, judgement: Judgement, filters: Filters, *, first: bool) -> str:
    """URL of the list or the grid with this judgement at the top."""
    before = "" if first else place_of(judgement, filters).beside(filters, back=True)
    return items_url(request, judgement.run, filters.query(after=before))


def _of_tab(
    request: HttpRequest, tab: str, judgement: Judgement, context: dict[str, Any], budget: MarkupBudget
) -> dict[str, Any]:
    """Context of the open tab."""
    if tab == "history":
        return {"entries": timeline(judgement, context["about"].seen)}
    if tab == "reply":
        hidden_fields = [pair for pair in request.GET.items() if pair[0] not in ("tab", "a", "b")]
        others = [other for other, _shown in context["others"]]
        return {"hidden_fields": hidden_fields, **_compared_replies(request, judgement, others)}
    if tab != "rendered":
        return {}
    shown = _rendered(context["view"], budget)
    if "differences" in request.GET:
        shown["differences"] = sides(context["view"].reference, context["view"].answer)
    return shown | (
        {"seen": seen_by_people(judgement)} if judgement.run.kind == PEOPLE else _other_answer(judgement)
    )


def _compared_replies(
    request: HttpRequest, judgement: Judgement, others: Sequence[Judgement]
) -> dict[str, Any]:
    """The replies that can be compared, [(key, name)], this judgement's first, and the differences between those
    selected by `a` and `b`."""
    offered = _reply_names(judgement, others)
    keys = [pk for name in ("a", "b") if (pk := whole(request.GET.get(name, ""))) in offered]
    context: dict[str, Any] = {"replies": list(offered.items()) if len(offered) > 1 else [], "compared": keys}
    if len(set(keys)) == 2:
        texts = JudgeReply.objects.in_bulk(keys)
        both = ("\n\n".join(filter(None, (texts[pk].reasoning, texts[pk].content))) for pk in keys)
        context["differences"] = list(zip((offered[pk] for pk in keys), sides(*both), strict=True))
    return context


def _reply_names(judgement: Judgement, others: Sequence[Judgement]) -> dict[int | None, str]:
    """{id: name} of these judgements' replies: the judge and, if it is not `judgement`'s, the run and the metric."""
    judgements = {entry.replies_from_id or entry.pk: entry for entry in (judgement, *others)}
    metrics = {pk: MetricDefinition.from_json(entry.definition) for pk, entry in judgements.items()}
    replies = JudgeReply.objects.filter(judgement__in=judgements).exclude(content=None)
    places = replies.values_list("pk", "judgement", "judge", "repeat", "swapped", "criterion")[:MOST_REPLIES]
    order = list(judgements)
    names: dict[int | None, str] = {}
    for pk, by, judge, repeat, swapped, criterion in sorted(
        places, key=lambda place: (order.index(place[1]), *place[2:])
    ):
        owner, judges = judgements[by], metrics[by].judges
        name = owner.source.name if owner.source else judges[judge].name if judge < len(judges) else ""
        parts = [] if owner is judgement else [owner.run.name, owner.run_metric.name]
        parts += [f"{name} #{repeat + 1}" if repeat else name, _("sides swapped") if swapped else ""]
        parts += [_("criterion %(number)s") % {"number": criterion}] if criterion else []
        names[pk] = " · ".join(filter(None, parts))
    return names


def _panel(
    request: HttpRequest,
    judgement: Judgement,
    form: OverrideForm | WithdrawForm | None = None,
    status: int = 200,
) -> HttpResponse:
    if ratings_hidden(request, judgement.run):
        return render(request, "reports/_hidden.html", {"run": judgement.run})
    context = _judgement_context(request, judgement, form, MarkupBudget())
    here = filters_in(request, judgement.run).query()
    return render(request, "review/_panel.html", context | {"here": here}, status=status)


def _judgement_context(
    request: HttpRequest, judgement: Judgement, form: OverrideForm | WithdrawForm | None, budget: MarkupBudget
) -> dict[str, Any]:
    """Context of the page and the panel."""
    run, metric = judgement.run, MetricDefinition.from_json(judgement.definition)
    replies = list(selectors.replies_of(judgement))
    generations = Generation.objects.filter(response=judgement.response_id).order_by("-attempt")
    tries = list(generations) if run.kind == INFER else []
    about = items_about(judgement.response_id, lambda: blind_evaluations(request, run.project))
    overrides = selectors.overrides_of(judgement)
    newest = _newest(overrides)
    view = judgement_view(judgement, replies, metric, run.version.format, tries)
    in_force = overrides[0] if overrides and overrides[0].value is not None else None
    return {
        "run": run,
        "judgement": judgement,
        "metric": metric,
        "view": view,
        "words": [
            (judge_request, html_of(judge_request.reply.content or "", budget, marks=judge_request.marks))
            for judge_request in view.requests
        ],
        "excerpt": EXCERPT,
        "value": _shown(judgement.value, metric),
        "order_verdict": order_verdict(judgement),
        "override": in_force,
        "overrides": len(overrides),
        "in_force": _shown(in_force.value, metric) if in_force else "",
        **_attempts(judgement, metric),
        "level": _level(judgement, metric, in_force),
        "others": [
            (
                other,
                _shown(other.value_in_force, MetricDefinition.from_json(other.definition))
                or order_verdict(other),
            )
            for other in selectors.other_runs(judgement)
        ],
        "flags": [(flag, FLAGS.get(flag, flag)) for flag in judgement.flags.split(",") if flag],
        "override_form": form if isinstance(form, OverrideForm) else override_form(judgement, seen=newest),
        "withdraw_form": form if isinstance(form, WithdrawForm) else _withdraw_form(seen=newest),
        "sent": type(form).__name__,
        "about": about,
        "people": said_of(about.seen),
    }


def _shown(stored: str | None, metric: MetricDefinition) -> str:
    """A stored value as the verdict that it stands for, or else as it is."""
    return metric.verdict_of(value_of(stored)) or stored_verdict_text(stored)


def order_verdict(judgement: Judgement) -> str:
    """What an imported judgement of one order of an unsettled pair says; '' for any other."""
    if judgement.state != JudgementState.UNSETTLED or judgement.shown_first is None:
        return ""
    return judgement.detail if judgement.detail in (*COMPARISON_CODES, BOTH_BAD) else ""


def _attempts(judgement: Judgement, metric: MetricDefinition) -> dict[str, Any]:
    """The number of attempts, the current one if it is not this judgement, and whether one is pending."""
    attempts = selectors.attempts(judgement)
    newest = next((attempt for attempt in attempts if attempt.current and attempt.pk != judgement.pk), None)
    value = _shown(newest.value_in_force, metric) if newest else ""
    return {"attempts": len(attempts), "newest": newest, "newest_value": value, "waits": _waits(attempts)}


def _level(judgement: Judgement, metric: MetricDefinition, override: Override | None) -> int | None:
    """Level of the value in force on the metric's scale, from 1; None if it has no number or scale."""
    value, score = (override.value, override.score) if override else (judgement.value, judgement.score)
    return metric.level(value, score)


def _other_answer(judgement: Judgement) -> dict[str, Any]:
    """The second answer of an imported comparison."""
    other = judgement.other_response
    return {"other": other, "other_html": html_of(selectors.answer_text(other.raw))} if other else {}


def _rendered(view: JudgementView, budget: MarkupBudget) -> dict[str, Any]:
    """Render the judged texts first, before the conversation uses up the budget."""
    answer, reference = html_of(view.answer, budget), html_of(view.reference, budget)

    def shown(part: Part) -> str:
        return html_of(part.text, budget) if part.kind == "text" else part.text

    return {
        "turns": [(turn, [(part, shown(part)) for part in turn.parts]) for turn in view.turns],
        "reference_html": reference,
        "answer_html": answer,
    }


def _tabs(filters: Filters, tab: str) -> list[dict[str, Any]]:
    names = (_("Rendered"), _("Raw"), _("Request"), _("Reply"), _("Script"), _("History"))
    return [
        {
            "name": name,
            "query": filters.query(tab=code if code != TABS[0] else "") or "?",
            "on": code == tab,
            "key": key,
        }
        for key, (code, name) in enumerate(zip(TABS, names, strict=True), 1)
    ]
