"""Inviting raters: a pasted list, links, groups, all raters of the project; and how many items each gets at most."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May
from evalsite.accounts.invitations import invitation_revoke
from evalsite.accounts.models import Membership, Project, Role
from evalsite.links import link_to_copy
from evalsite.mail.resets import resets_by_mail
from evalsite.secrets import hashed
from evalsite.templatetags.show import number
from evalsite.web.numbers import whole
from judging.people.access import get_evaluation
from judging.people.change_effects import quota_effects
from judging.people.inviting.groups import group_add, groups_of
from judging.people.inviting.links import (
    MOST_DAYS,
    MOST_USES,
    facts_of,
    people_needed,
    study_link_create,
    study_links,
    work_sentence,
)
from judging.people.inviting.lists import ListPreview, list_apply, list_preview
from judging.people.inviting.offers import offer_join, offer_set
from judging.people.inviting.quota_change import promise_agree, quota_change
from judging.people.models import Evaluation, EvaluationRater
from judging.people.progress import overall
from judging.people.quota import most_items, raised_to, seconds_an_item, uncovered

LONGEST_LIST = 100_000  # characters


class ListForm(forms.Form):
    """A pasted list, and how long its links are valid."""

    text = forms.CharField(
        label=gettext_lazy("Names, with mail addresses if you have them"),
        max_length=LONGEST_LIST,
        widget=forms.Textarea(attrs={"rows": 8, "class": "input", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "One person a line, “Name <mail>”, separated by commas or tabs, or columns copied from a spreadsheet."
        ),
    )
    days = forms.IntegerField(
        label=gettext_lazy("Links expire after, days"), min_value=1, max_value=MOST_DAYS, initial=14
    )


class LinkForm(forms.Form):
    """How many people may use a link, and for how long."""

    most_uses = forms.IntegerField(
        label=gettext_lazy("People who can use it"), min_value=1, max_value=MOST_USES
    )
    days = forms.IntegerField(
        label=gettext_lazy("Expires after, days"), min_value=1, max_value=MOST_DAYS, initial=14
    )


class QuotaForm(forms.Form):
    """How many items a rater gets at most."""

    quota = forms.IntegerField(
        label=gettext_lazy("Items per rater, at most"),
        min_value=1,
        max_value=200_000,
        required=False,
        help_text=gettext_lazy("Gold items, repeats and skipped items count too. Leave empty for no limit."),
    )


@login_required
def inviting(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """All ways to invite raters, and the quota."""
    return _page(request, get_evaluation(request, slug, pk, May.RUN))


@login_required
@require_POST
def read_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show what a pasted list would do; with `make`, do it and show the links, which are stored nowhere. A list
    that was changed after it was shown is shown first."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    form = ListForm(request.POST)
    if not form.is_valid():
        return _page(request, evaluation, list_form=form)
    text, manages = form.cleaned_data["text"], _manages(request, evaluation)
    preview = list_preview(evaluation, text)
    makes = "make" in request.POST and request.POST.get("seen") == hashed(text) and not preview.too_many
    if not makes or evaluation.state == "closed":
        return _preview(request, evaluation, form, preview)
    result = list_apply(
        evaluation=evaluation,
        text=text,
        days=form.cleaned_data["days"],
        makes_links=manages,
        by=access.signed_in(request),
    )
    if not result.links:
        messages.success(request, _added(len(result.added)))
        return redirect("people:inviting", slug, pk)
    links = [(link.invitation, link_to_copy(request, "accounts:join", link.secret)) for link in result.links]
    context = {
        "evaluation": evaluation,
        "links": links,
        "added": _added(len(result.added)) if result.added else "",
    }
    context["facts"] = facts_of(evaluation)
    return render(request, "people/inviting/sheet.html", context)


def _preview(
    request: HttpRequest, evaluation: Evaluation, form: ListForm, preview: ListPreview
) -> HttpResponse:
    manages = _manages(request, evaluation)
    counts = preview.counts
    makes = counts["member"] + (counts["new"] + counts["again"] if manages else 0)
    context = {"evaluation": evaluation, "form": form, "preview": preview, "manages": manages, "makes": makes}
    context |= {"seen": hashed(form.cleaned_data["text"]), "changed": "make" in request.POST}
    context |= {"managers": _managers(evaluation.run.project), "links": counts["new"] + counts["again"]}
    status = 422 if preview.too_many or evaluation.state == "closed" else 200
    return render(request, "people/inviting/preview.html", context, status=status)


@login_required
@require_POST
def create_link(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Create a link that many can use. It is shown only in this response, so there is no redirect."""
    evaluation = get_evaluation(request, slug, pk, May.MANAGE)
    form = LinkForm(request.POST, prefix="link")
    if form.is_valid() and evaluation.state == "closed":
        form.add_error(None, _("This evaluation is closed. Reopen it first."))
    if not form.is_valid():
        return _page(request, evaluation, link_form=form)
    invitation, secret = study_link_create(
        evaluation=evaluation, by=access.signed_in(request), **form.cleaned_data
    )
    link = link_to_copy(request, "accounts:join", secret)
    return _page(request, evaluation, link=link, invitation=invitation)


@login_required
@require_POST
def revoke_link(request: HttpRequest, slug: str, pk: int, link: int) -> HttpResponse:
    """Revoke a link; who has used it stays."""
    evaluation = get_evaluation(request, slug, pk, May.MANAGE)
    if invitation_revoke(invitation=get_object_or_404(study_links(evaluation), pk=link)):
        messages.success(request, _("Link revoked. Raters who used it stay."))
    return redirect("people:inviting", slug, pk)


@login_required
@require_POST
def add_group(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Add the people of a group."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    group = get_object_or_404(groups_of(evaluation.run.project), pk=whole(request.POST.get("group", "")) or 0)
    added, unable = group_add(evaluation=evaluation, group=group, by=access.signed_in(request))
    messages.success(request, _added(len(added)))
    if unable:
        text = ngettext(
            "%(n)s person of this group can't rate in the project any more and was left out.",
            "%(n)s people of this group can't rate in the project any more and were left out.",
            unable,
        )
        messages.warning(request, text % {"n": unable})
    return redirect("people:inviting", slug, pk)


@login_required
@require_POST
def change_quota(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Change how many items a rater gets at most; while raters rate, after what it does was confirmed."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    form = QuotaForm(request.POST, prefix="quota")
    if not form.is_valid():
        return _page(request, evaluation, quota_form=form)
    effects = quota_effects(evaluation, form.cleaned_data["quota"])
    if effects and "confirmed" not in request.POST:
        return _page(request, evaluation, quota_form=form, quota_effects=effects)
    quota_change(evaluation=evaluation, quota=form.cleaned_data["quota"], by=access.signed_in(request))
    messages.success(request, _("Saved."))
    return redirect("people:inviting", slug, pk)


@login_required
@require_POST
def offer(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Offer the evaluation to all raters of the project, or no longer."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    to_all = request.POST.get("to_all") == "1"
    if offer_set(evaluation=evaluation, to_all=to_all, by=access.signed_in(request)):
        yes, no = _("All raters of the project can join now."), _("No longer offered. Who joined stays.")
        messages.success(request, yes if to_all else no)
    return redirect("people:inviting", slug, pk)


@login_required
@require_POST
def join(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A rater joins an evaluation that is open to all raters of the project."""
    project = access.get_project(request, slug, May.RATE)
    evaluation = get_object_or_404(
        Evaluation.objects.select_related("run__project"), run=pk, run__project=project
    )
    if not offer_join(evaluation=evaluation, user=access.signed_in(request)):
        messages.error(request, _("This evaluation is not offered any more."))
        return redirect("rating:queue", slug)
    return redirect("desk:page", slug, pk)


@login_required
def more(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """More items than the rater was told: they may go on, or stop at the old number."""
    evaluation = get_evaluation(request, slug, pk, May.RATE)
    user = access.signed_in(request)
    if request.method == "POST":
        promise_agree(evaluation=evaluation, user=user)
        return redirect("desk:page", slug, pk)
    rater = get_object_or_404(EvaluationRater, evaluation=evaluation, user=user)
    number = raised_to(evaluation, rater)
    if number is None or rater.promised is None:
        return redirect("desk:page", slug, pk)
    further = number - rater.promised
    work = work_sentence(further, further * seconds_an_item(evaluation))
    context = {
        "evaluation": evaluation,
        "run": evaluation.run,
        "rater": rater,
        "number": number,
        "work": work,
    }
    return render(request, "people/inviting/more.html", context)


def _added(count: int) -> str:
    return ngettext("%(n)s rater added.", "%(n)s raters added.", count) % {"n": number(count)}


def _manages(request: HttpRequest, evaluation: Evaluation) -> bool:
    return May.MANAGE in access.permissions(request, evaluation.run.project)


def _managers(project: Project) -> str:
    """The names of those who manage the project; '' if only site administrators do."""
    rows = Membership.objects.filter(project=project, role=Role.ADMIN, user__is_active=True)
    names = [
        row.user.get_full_name() or row.user.username
        for row in rows.select_related("user").order_by("pk")[:5]
    ]
    return _(", ").join(names)


def _page(request: HttpRequest, evaluation: Evaluation, **more: Any) -> HttpResponse:
    wrong = any(more[name].errors for name in ("list_form", "link_form", "quota_form") if name in more)
    items = evaluation.share if evaluation.share is not None else most_items(evaluation)
    raters = evaluation.raters.filter(left_at=None, paused_at=None).count()
    all_of = overall(evaluation)
    context = {
        "evaluation": evaluation,
        "list_form": ListForm(),
        "link_form": LinkForm(prefix="link", initial={"most_uses": people_needed(evaluation), "days": 14}),
        "quota_form": QuotaForm(prefix="quota", initial={"quota": evaluation.quota}),
        "groups": groups_of(evaluation.run.project),
        "links": study_links(evaluation),
        "manages": _manages(request, evaluation),
        "managers": _managers(evaluation.run.project),
        "mailed": resets_by_mail(),
        "work": work_sentence(items, items * seconds_an_item(evaluation)) if items else "",
        "raters": raters,
        "ratings": all_of.needed,
        "uncovered": uncovered(evaluation, all_of.left) if raters else 0,
        **more,
    }
    return render(request, "people/inviting/inviting.html", context, status=422 if wrong else 200)
