"""The page of the rules that send answers to people when a run has ended."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project, User
from judging.people.asking.models import SendingRule
from judging.people.asking.rules import (
    can_receive,
    rule_create,
    rule_end,
    rule_pause,
    rule_resume,
    rules_of,
    sent_today,
)
from judging.review.saved_views import views_for

LATEST = 10  # sendings shown


class RuleForm(forms.Form):
    """A saved view as the filter, the evaluation that receives, and the limit."""

    view = forms.ChoiceField(
        label=gettext_lazy("Filter"),
        help_text=gettext_lazy(
            "A saved view of the list of judgements. The rule keeps the filter as it is now."
        ),
    )
    evaluation = forms.ChoiceField(
        label=gettext_lazy("Send to"),
        help_text=gettext_lazy(
            "Runs over the same version of the data send to it when they have ended: single answers, or pairs where it "
            "compares them."
        ),
    )
    a_day = forms.IntegerField(
        label=gettext_lazy("Items a day, at most"), min_value=1, max_value=10_000, initial=20
    )

    def __init__(self, data: Any, project: Project, user: User) -> None:
        super().__init__(data)
        self.views = {str(view.pk): view for view in views_for(project, user) if view.query}
        self.evaluations = {str(each.run_id): each for each in can_receive(project)}
        names = [(pk, view.name) for pk, view in self.views.items()]
        self.fields["view"].choices = names  # type: ignore[attr-defined]
        self.fields["evaluation"].choices = [  # type: ignore[attr-defined]
            (pk, f"{each.run.name} · {each.run.version.dataset.name} v{each.run.version.number}")
            for pk, each in self.evaluations.items()
        ]


@login_required
def rules(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's rules with what they sent, and the form for a new one."""
    project = access.get_project(request, slug, May.RUN)
    user = access.signed_in(request)
    form = RuleForm(request.POST if request.method == "POST" else None, project, user)
    if request.method == "POST" and form.is_valid():
        view = form.views[form.cleaned_data["view"]]
        evaluation = form.evaluations[form.cleaned_data["evaluation"]]
        evaluation.run.project = project
        rule_create(
            evaluation=evaluation,
            name=view.name,
            query=view.query,
            a_day=form.cleaned_data["a_day"],
            user=user,
        )
        messages.success(request, _("Rule created. It acts when the next run ends."))
        return redirect("runs:sending_rules", slug)
    listed = [(rule, sent_today(rule), _sendings(rule)) for rule in rules_of(project)]
    context = {
        "rules": listed,
        "form": form,
        "possible": bool(form.views and form.evaluations),
        "section": "people",
    }
    return render(request, "review/sending_rules.html", context, status=422 if form.errors else 200)


def _sendings(rule: SendingRule) -> list[Any]:
    return list(rule.sendings.exclude(sent=None).select_related("run").order_by("-pk")[:LATEST])


_ACTS = {"pause": rule_pause, "resume": rule_resume, "end": rule_end}


@login_required
@require_POST
def act(request: HttpRequest, slug: str, rule: int, action: str) -> HttpResponse:
    """Pause, resume or end a rule."""
    project = access.get_project(request, slug, May.RUN)
    loaded = get_object_or_404(rules_of(project), pk=rule)
    if not _ACTS[action](rule=loaded, by=access.signed_in(request)):
        messages.info(request, _("The rule was changed meanwhile. Its state is shown below."))
    return redirect("runs:sending_rules", slug)
