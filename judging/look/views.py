"""Looks at answers: the list, a new draw, and the page on which one answer is read and noted."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from datasets.models import Version
from datasets.selectors import usable_versions
from evalsite import access
from evalsite.access import May, signed_in
from evalsite.accounts.models import Project
from evalsite.web.numbers import whole
from judging.filters.filter_form import form_in
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.look import results, services
from judging.look.access import get_answer, get_look
from judging.look.forms import LookForm, NoteForm
from judging.look.models import LookAnswer, Note
from judging.look.population import scored_metrics
from judging.people.access import rates_here
from judging.people.item_view import ItemView, conversation_of, shown
from judging.people.models import Item
from judging.records.access import get_run
from judging.records.models import Run

LISTED = 50
SOURCES = 30


@login_required
@require_GET
def looks(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's looks, newest first."""
    project = access.get_project(request, slug, May.READ_JUDGEMENTS)
    visible = [look for look in results.looks_of(project)[:LISTED] if not _hidden(request, project, look.run)]
    return render(request, "look/list.html", {"looks": visible})


def _hidden(request: HttpRequest, project: Project, run: Run | None) -> bool:
    if run is None:
        return False
    run.project = project
    return rates_here(request, run)


@login_required
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """Draw answers of a run (`run`, with a `filter` of its judgements as query string), or of a version (`version`).

    Without either, the page offers the project's runs and data sets.
    """
    project = access.get_project(request, slug, May.LOOK)
    if not request.GET.get("run") and not request.GET.get("version"):
        return render(request, "look/sources.html", _sources(request, project))
    version, run, filters = _source(request, project)
    if run is not None and rates_here(request, run):
        return render(request, "reports/hidden.html", {"run": run})
    metrics = scored_metrics(run) if run else []
    by_score = request.GET.get("draw") == "score" and metrics
    form = LookForm(request.POST or None, metrics, {"by_score_of": metrics[0].pk} if by_score else {})
    problem = ""
    if request.method == "POST" and form.is_valid():
        try:
            look = services.look_create(
                project=project,
                version=version,
                run=run,
                filters=filters,
                user=signed_in(request),
                size=form.cleaned_data["size"],
                by_score_of=form.cleaned_data.get("by_score_of"),
            )
            return redirect("look:answer", slug, look.pk, 1)
        except services.NothingToLookAt as nothing:
            problem = nothing_sentence(nothing.code)
    available = services.population_of(version, run, filters).answers.count()
    aside = services.rows_to_set_aside(version, run)
    context = {
        "version": version,
        "run": run,
        "filters": filters,
        "filtered": filters != ANYTHING,
        "form": form,
        "problem": problem,
        "available": available,
        "aside": aside,
        "fewest": services.FEWEST,
        "earlier": results.looks_of(project).filter(version=version, run=run)[:LISTED],
    }
    return render(request, "look/new.html", context, status=422 if request.method == "POST" else 200)


def nothing_sentence(code: str) -> str:
    """Why there was nothing to draw, and what to do."""
    sentences = {
        "no_answers": _(
            "There is no answer to look at yet. Wait until the run has judged some, or attach answers."
        ),
        "no_match": _(
            "No answer matches the filter, apart from rows that are set aside for tests. Use a wider filter."
        ),
        "equal_scores": _("All scores of this metric are equal, so they cannot find failures. Draw evenly."),
    }
    return sentences[code]


def _source(request: HttpRequest, project: Project) -> tuple[Version, Run | None, Filters]:
    if run_pk := request.GET.get("run"):
        run = get_run(request, project.slug, whole(run_pk) or 0)
        query = QueryDict(request.GET.get("filter", ""))
        return run.version, run, form_in(request, run, query).filters.without("sort")
    versions = Version.objects.select_related("dataset").filter(dataset__project=project, number__gt=0)
    version = get_object_or_404(
        versions.filter(dataset__deleted_at=None), pk=whole(request.GET["version"]) or 0
    )
    return version, None, ANYTHING


def _sources(request: HttpRequest, project: Project) -> dict[str, Any]:
    runs = Run.objects.filter(project=project, archived_at=None, total__gt=0).select_related(
        "version__dataset"
    )
    offered = [run for run in runs.order_by("-pk")[:SOURCES] if not _hidden(request, project, run)]
    versions = [version for version in usable_versions(project)[:SOURCES] if version.models_found]
    return {"runs": offered, "versions": versions}


@login_required
def answer(request: HttpRequest, slug: str, pk: int, place: int) -> HttpResponse:
    """One answer without name or score, and the person's note on it; a POST stores the note and leads on."""
    drawn = get_answer(request, slug, pk, place, May.LOOK)
    look, user = drawn.look, signed_in(request)
    if drawn.row_id in services.all_set_aside(look.version):
        raise Http404
    if request.method == "POST":
        form = NoteForm(request.POST)
        if not form.is_valid():
            return _page(request, drawn, form, status=422)
        try:
            _save(drawn, request, form)
        except services.NoteChanged as changed:
            return _page(request, drawn, form, changed=changed.note, status=409)
        if form.cleaned_data["passed"] is None:
            form.add_error("passed", _("Please choose."))
            return _page(request, drawn, form, status=422)
        following = results.next_place(look, user, place)
        if following is None:
            messages.success(request, _("You have looked at all answers. Put the notes into groups now."))
            return redirect("look:groups", slug, pk)
        return redirect("look:answer", slug, pk, following)
    return _page(request, drawn)


@login_required
@require_POST
def note(request: HttpRequest, slug: str, pk: int, place: int) -> HttpResponse:
    """Store a note while it is written."""
    drawn = get_answer(request, slug, pk, place, May.LOOK)
    form = NoteForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"sentence": _("The note is too long; at most 20,000 characters.")}, status=422)
    try:
        stored = _save(drawn, request, form)
    except services.NoteChanged as changed:
        sentence = _("This note was changed in another window, where it says: “%(text)s”")
        content = {"sentence": sentence % {"text": changed.note.text}, "seen": changed.note.edits}
        return JsonResponse(content, status=409)
    return JsonResponse({"seen": stored.edits})


def _save(drawn: LookAnswer, request: HttpRequest, form: NoteForm) -> Note:
    values = form.cleaned_data
    return services.note_save(
        answer=drawn,
        user=signed_in(request),
        text=values["text"],
        passed=values["passed"],
        new_kind=values["new_kind"],
        seen=values["seen"] or 0,
        page=values["page"],
    )


def _page(
    request: HttpRequest,
    drawn: LookAnswer,
    form: NoteForm | None = None,
    *,
    changed: Note | None = None,
    status: int = 200,
) -> HttpResponse:
    look, user = drawn.look, signed_in(request)
    own = Note.objects.filter(answer=drawn, author=user).first()
    own_values = {"text": own.text, "passed": own.passed, "new_kind": own.new_kind} if own else {}
    values = form.cleaned_data if form is not None and hasattr(form, "cleaned_data") else own_values
    text = form.data.get("text", "") if form is not None else own_values.get("text", "")
    context = {
        "look": look,
        "drawn": drawn,
        "item": shown_of(drawn),
        "text": text,
        "passed": values.get("passed"),
        "new_kind": values.get("new_kind"),
        "seen": own.edits if own else 0,
        "page_id": uuid4(),
        "changed": changed,
        "errors": form.errors if form is not None else {},
        "progress": results.progress(look, user),
        "scored": bool(look.run and not look.weighted and scored_metrics(look.run)),
        "following": drawn.place + 1 if drawn.place < look.size else None,
        "previous": drawn.place - 1 if drawn.place > 1 else None,
    }
    return render(request, "look/answer.html", context, status=status)


def shown_of(drawn: LookAnswer) -> ItemView:
    """The conversation, the reference and the answer, as raters see them: without names and scores."""
    messages_before, reference = conversation_of(drawn.row, drawn.look.version.format)
    return shown(Item(row=drawn.row, response=drawn.response), messages_before, (), reference)


@login_required
@require_GET
def go_on(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Lead to the first answer that the person has not decided; to the groups if there is none."""
    look = get_look(request, slug, pk, May.LOOK)
    place = results.next_place(look, signed_in(request), 0)
    return redirect("look:groups", slug, pk) if place is None else redirect("look:answer", slug, pk, place)
