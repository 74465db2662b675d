"""The page of a row's rubric: its criteria, drafts by models, and the decision on each line."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from datasets.access import get_ready_version
from datasets.models import Row
from datasets.selectors import line_after, row_values
from datasets.versions.row_edits import EditConflict, can_edit, open_edits
from evalsite.access import May, get_project, signed_in
from evalsite.names import join_sentences
from evalsite.templatetags.show import number as shown_number
from evalsite.web.numbers import whole
from judging.endpoints.selectors import endpoints_of
from judging.messages import reason_sentence
from judging.metrics.model_drafts import CannotDraft, prices, spent_on
from judging.metrics.models import DraftState
from judging.rubrics import drafts
from judging.rubrics.drafts import ACCEPTED, DISCARDED, DecisionRefused, RowRubric
from judging.rubrics.models import RubricDraft


def _get_rubric(request: HttpRequest, slug: str, dataset: int, number: int, line: int) -> RowRubric:
    """A row of a version that can be edited. Raises Http404 or PermissionDenied, ValidationError if it is too long."""
    version = get_ready_version(request, slug, dataset, number, May.UPLOAD)
    if not can_edit(version):
        raise Http404
    try:
        return drafts.row_rubric(version, line)
    except Row.DoesNotExist:
        raise Http404 from None


@login_required
@require_GET
def rubric(request: HttpRequest, slug: str, dataset: int, number: int, line: int) -> HttpResponse:
    """The row's question and reference, its rubric, drafts, and what another one would cost."""
    try:
        row = _get_rubric(request, slug, dataset, number, line)
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
        return redirect("datasets:row", slug, dataset, number, line)
    version = row.row.version
    requests = list(drafts.drafts_of(version, line))
    obstacle = drafts.obstacle_of(row)
    values = row_values(row.row)
    context = {
        "version": version,
        "line": line,
        "rubric": row,
        "question": values["question"],
        "next_line": line_after(version, line, valid=True),
        "drafts": requests,
        "open_drafts": [_open_lines(draft) for draft in requests if draft.state == DraftState.DRAFT],
        "obstacle": obstacle,
        "obstacle_text": draft_sentence(obstacle) if obstacle else "",
        "prices": [] if obstacle else prices(drafts.prompt_of(row), version.dataset.project),
        "spent": spent_on(requests),
        "most_drafts": drafts.MOST_DRAFTS,
        "edits_open": open_edits(version).count(),
    }
    return render(request, "rubrics/row.html", context)


def _open_lines(draft: RubricDraft) -> dict[str, Any]:
    """A draft for the page: its lines that are not decided yet, with their places."""
    lines = [{"place": place, **line} for place, line in enumerate(draft.lines) if not line["decision"]]
    return {"draft": draft, "lines": lines}


@login_required
@require_POST
def draft(request: HttpRequest, slug: str, dataset: int, number: int, line: int) -> HttpResponse:
    """Ask a model of the project for criteria; its reply is shown as a draft."""
    project = get_project(request, slug, May.USE_ENDPOINTS)
    address = reverse("rubrics:row", args=[slug, dataset, number, line])
    try:
        row = _get_rubric(request, slug, dataset, number, line)
        endpoint = get_object_or_404(endpoints_of(project), pk=whole(request.POST.get("endpoint", "")) or 0)
        stored = drafts.rubric_draft(rubric=row, endpoint=endpoint, user=signed_in(request))
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
        return redirect("datasets:row", slug, dataset, number, line)
    except CannotDraft as refusal:
        messages.error(request, draft_sentence(refusal.code, refusal.detail))
        return redirect(address)
    if stored.state == DraftState.FAILED:
        messages.error(request, draft_sentence(stored.problem, stored.problem_detail))
        return redirect(address)
    return redirect(f"{address}#draft-{stored.pk}")


def draft_sentence(code: str, detail: str = "") -> str:
    """Why no model is asked, or why its reply was no draft, and what to do."""
    own = {
        "table": _(
            "This row is part of a CSV file, which holds no list of criteria. Convert the data set to JSON Lines."
        ),
        "set_aside": _(
            "This row is set aside for tests of judges, so it is never sent to a model. Write its criteria in the row "
            "editor."
        ),
        "sealed": _(
            "This row is in a sealed test, so it is never sent to a model. Write its criteria in the row editor."
        ),
        "too_many": _("10 drafts were requested for this row. Write the rest in the row editor."),
        "no_criteria": _(
            "The model's reply names no new criteria. Try another model, or write them in the row editor."
        ),
    }
    return own.get(code) or reason_sentence(code, detail, "prompt")


@login_required
@require_POST
def decide(request: HttpRequest, slug: str, dataset: int, number: int, line: int, pk: int) -> HttpResponse:
    """Accept or discard lines of a draft: `line-<place>` is `accepted`, `discarded` or absent."""
    version = get_ready_version(request, slug, dataset, number, May.UPLOAD)
    row = get_object_or_404(RubricDraft, version=version, line=line, pk=pk)
    decisions = {
        place: decision
        for place in range(len(row.lines))
        if (decision := request.POST.get(f"line-{place}", "")) in (ACCEPTED, DISCARDED)
    }
    try:
        accepted = drafts.rubric_decide(draft=row, decisions=decisions, user=signed_in(request))
    except DecisionRefused as refusal:
        messages.error(request, _refusals()[refusal.code])
    except EditConflict:
        messages.error(request, _("Someone else edited this row in the meantime. Nothing was changed."))
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
    else:
        messages.success(request, _decided(accepted, len(decisions) - accepted))
    return redirect("rubrics:row", slug, dataset, number, line)


def _decided(accepted: int, discarded: int) -> str:
    if not accepted:
        text = ngettext("%(n)s line was discarded.", "%(n)s lines were discarded.", discarded)
        return text % {"n": shown_number(discarded)}
    text = ngettext(
        "%(n)s criterion was added to the draft of the next version.",
        "%(n)s criteria were added to the draft of the next version.",
        accepted,
    )
    return text % {"n": shown_number(accepted)}


def _refusals() -> dict[str, str]:
    return {
        "nothing_chosen": _("Choose “Accept” or “Discard” for at least one line."),
        "decided": _("Somebody decided on these lines in the meantime. Nothing was changed."),
        "row_deleted": _("The next version leaves this row out. Restore it first."),
        "not_list": _("The row's rubric is no list of criteria. Repair it in the row editor first."),
    }
