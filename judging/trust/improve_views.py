"""Improve a judge: agreement of its versions with people on dev, and the disagreements one by one."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import May, signed_in
from evalsite.accounts.models import User
from evalsite.web.numbers import whole
from judging.core.worked_examples import with_example
from judging.metrics.editor.prompt_draft import drafted_prompts, template_draft
from judging.metrics.models import Metric
from judging.records.models import RunMetric
from judging.trust.access import ACT, READ, get_judge, get_judged, get_test, is_program, rated_by
from judging.trust.dev import dev_agreements
from judging.trust.disagreement_page import Disagreements
from judging.trust.doubts import label_doubt
from judging.trust.models import SealedTest
from judging.trust.progress import tests_of


@login_required
@require_GET
def versions(request: HttpRequest, slug: str, split: int) -> HttpResponse:
    """Dev agreement of the metric's versions, as a fragment."""
    test = get_test(request, slug, split)
    return render(request, "trust/_versions.html", _agreement(request, test))


@login_required
@require_GET
def agreement(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Dev agreement of the metric's versions on each data set with a test, as a fragment beside the prompt editor."""
    judge = get_judge(request, slug, metric)
    tests = [_agreement(request, test) for test in tests_of(judge)]
    return render(request, "trust/_agreement.html", {"metric": judge, "tests": tests})


def _agreement(request: HttpRequest, test: SealedTest) -> dict[str, object]:
    hidden = rated_by(request, test) is not None
    agreements = [] if hidden else dev_agreements(test.split)
    return {"test": test, "metric": test.split.metric, "hidden": hidden, "agreements": agreements}


@login_required
@require_GET
def disagreements(request: HttpRequest, slug: str, split: int, run_metric: int) -> HttpResponse:
    """An answer of a dev or train row on which a version and people differ, with both reasons."""
    test, chosen = get_judged(request, slug, split, run_metric, READ)
    if run := rated_by(request, test):
        return render(request, "reports/hidden.html", {"run": run})
    metric = test.split.metric
    page = Disagreements(test.split, chosen).page(whole(request.GET.get("judgement", "")))
    context = {"metric": metric, "test": test, "run_metric": chosen, "page": page}
    context["suggests"] = not is_program(test)
    if page.shown and page.shown.example and context["suggests"]:
        context |= _prompts_for(page.shown.example, metric, signed_in(request))
    return render(request, "trust/disagreements.html", context)


def _prompts_for(example: str, metric: Metric, user: User) -> dict[str, object]:
    """Whether all the user's drafted prompts hold an example, and {place, name} of the judges whose prompt does not."""
    prompts = drafted_prompts(metric=metric, user=user)
    lacking = [
        {"place": place, "name": prompt.name or f"#{place + 1}"}
        for place, prompt in enumerate(prompts)
        if example.strip() not in prompt.template
    ]
    return {"takes": True, "taken": not lacking, "lacking": lacking, "several": len(prompts) > 1}


@login_required
@require_POST
def take_example(
    request: HttpRequest, slug: str, split: int, run_metric: int, judgement: int
) -> HttpResponse:
    """Put a train row's answer into the user's draft of the prompt, as a worked example: of the judge with the place
    that is sent, or of every judge."""
    test, chosen = get_judged(request, slug, split, run_metric, May.METRICS)
    differing = _in_judgement(request, test, chosen, judgement)
    shown = differing.shown(judgement)
    if not shown.example or is_program(test):
        raise Http404
    metric, user = test.split.metric, signed_in(request)
    sent = whole(request.POST.get("judge", ""))
    places = range(len(drafted_prompts(metric=metric, user=user))) if sent is None else [sent]
    for place in places:
        template_draft(
            metric=metric,
            user=user,
            change=lambda template: with_example(template, shown.example),
            judge=place,
        )
    messages.success(request, _("Taken into your draft of the prompt. Edit and save it there."))
    return _to(slug, split, run_metric, judgement)


@login_required
@require_POST
def doubt(request: HttpRequest, slug: str, split: int, run_metric: int, judgement: int) -> HttpResponse:
    """Send an answer to those who adjudicate: people were wrong."""
    test, chosen = get_judged(request, slug, split, run_metric, ACT)
    differing = _in_judgement(request, test, chosen, judgement)
    following = differing.page(judgement).following
    try:
        label_doubt(
            split=test.split,
            run_metric=chosen,
            answer=differing.by_judgement[judgement].answer,
            user=signed_in(request),
        )
    except ValidationError as error:
        messages.error(request, error.messages[0])
        return _to(slug, split, run_metric, judgement)
    messages.success(
        request,
        _(
            "Sent to adjudicators, with a random agreeing answer. Until both are decided the earlier labels count."
        ),
    )
    return _to(slug, split, run_metric, following or judgement)


def _in_judgement(request: HttpRequest, test: SealedTest, chosen: RunMetric, judgement: int) -> Disagreements:
    """The disagreements, one of which is in this judgement. Raises Http404, also for those who rate the answers."""
    differing = Disagreements(test.split, chosen)
    if rated_by(request, test) or judgement not in differing.by_judgement:
        raise Http404
    return differing


def _to(slug: str, split: int, run_metric: int, judgement: int) -> HttpResponse:
    address = reverse("trust:disagreements", args=[slug, split, run_metric])
    return redirect(f"{address}?{urlencode({'judgement': judgement})}")
