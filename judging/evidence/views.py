"""The page that writes a run's evidence file, and the project's rules for such files."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May, signed_in
from evalsite.web.headers import file_stem
from judging.evidence.services import evidence_file, rules_change, rules_of, signing_key, why_not
from judging.people.access import rates_here
from judging.records.access import get_run


class RulesForm(forms.Form):
    """What later files hold."""

    hashes_only = forms.BooleanField(
        label=gettext_lazy("Only hashes of rows, answers and requests"),
        required=False,
        help_text=gettext_lazy(
            "Raw replies, prompt templates and the criteria of checklists stay, and may quote them."
        ),
    )
    host_names = forms.BooleanField(
        label=gettext_lazy("Name the hosts of the judges' endpoints"), required=False
    )


@login_required
def evidence(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """What the file holds and who signs it; a POST downloads it."""
    access.get_project(request, slug, May.RUN)
    run = get_run(request, slug, pk)
    if rates_here(request, run):
        return render(request, "reports/hidden.html", {"run": run})
    problem = why_not(run)
    if request.method == "POST" and not problem:
        try:
            only = "hashes_only" in request.POST
            file = evidence_file(run=run, hashes_only=only, user=signed_in(request))
        except ValidationError as error:
            problem = error.messages[0]
        else:
            name = f"{file_stem(run.name) or run.pk}-evidence.zip"
            return FileResponse(file, as_attachment=True, filename=name, content_type="application/zip")
    rules = rules_of(run.project)
    context = {
        "run": run,
        "problem": problem,
        "signing": signing_key(),
        "rules": rules,
        "form": RulesForm(initial={"hashes_only": rules.hashes_only, "host_names": rules.host_names}),
    }
    return render(request, "evidence/evidence.html", context, status=422 if request.method == "POST" else 200)


@login_required
@require_POST
def rules(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Change the project's rules."""
    project = access.get_project(request, slug, May.MANAGE)
    run = get_run(request, slug, pk)
    form = RulesForm(request.POST)
    if form.is_valid():
        rules_change(project=project, user=signed_in(request), **form.cleaned_data)
        messages.success(request, _("Saved."))
    return redirect("runs:evidence", slug, run.pk)
