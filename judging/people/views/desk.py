"""The desk: one page on which raters work through their queue. Its script requests JSON; without it, forms are used.

Every JSON response contains the study's state and a fresh CSRF token: after signing in again, the page's own token
would be rejected, and pending submissions with it. The rater's progress comes with the next items, which the script
requests after each submission, so that storing a verdict does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any
from uuid import UUID, uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.timezone import is_aware
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import May, signed_in
from evalsite.web.numbers import whole
from judging.core.people.criteria import Criterion, ValuesRefused
from judging.core.people.parts import joined, parts_of
from judging.people import assignments, ratings, selectors
from judging.people.access import get_evaluation, get_own_assignment, own_part
from judging.people.guidelines.reading import guideline_texts, reading_due
from judging.people.item_criteria import asks_by_item, criteria_for, marks_spans
from judging.people.item_view import DeskItem, desk_item, differences, earlier, places_of
from judging.people.labels import SEVERITY_NAMES, choices_of, problems_of, refusal_sentence, saved_sentence
from judging.people.models import Assignment, Evaluation, EvaluationRater, Rating, SkipReason
from judging.people.qualification import queue
from judging.people.qualification.feedback import training_feedback
from judging.people.qualification.selectors import Entry
from judging.people.questions.selectors import answered_for, answers_for

View = Callable[..., HttpResponse]


def of_page_owner(view: View) -> View:
    """Refuse (412) what a page sends after somebody else has signed in over it, on a shared computer: claiming,
    releasing or undoing would act for that user. The page's script names its rater in `X-Rater`."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        owner = request.headers.get("X-Rater", "")
        if owner and owner != str(signed_in(request).pk):
            return JsonResponse({"code": "other_user"}, status=412)
        return view(request, *args, **kwargs)

    return guarded


AT_ONCE = 3
"""Items rendered with the page: the current one, and those that follow at once."""
BATCH = 8
"""Items per JSON response; the script requests more until none are available. Together with those of the page this
exceeds what a rater holds at first (FEWEST_AHEAD), so that a new page makes one request."""


@login_required
@require_GET
def page(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The queue's next items; the first is shown."""
    evaluation = get_evaluation(request, slug, pk, May.RATE)
    rater = own_part(evaluation, signed_in(request))
    claimed, entry = queue.claim(rater=rater, count=AT_ONCE)
    return _page(request, rater, claimed, entry)


@login_required
@of_page_owner
@require_GET
def item(request: HttpRequest, slug: str, pk: int, token: UUID) -> HttpResponse:
    """One of the rater's own items, in any state, to view or change."""
    assignment = get_own_assignment(request, slug, pk, token, with_texts=True)
    evaluation, rater = assignment.evaluation, assignment.rater
    rater.evaluation = evaluation
    entry = queue.entry_for(rater)
    if _wants_json(request):
        fragment = _fragment(request, evaluation, assignment, entry)
        return JsonResponse({"items": [fragment], **_state_and_progress(request, rater, entry)})
    return _page(request, rater, [assignment], entry)


@login_required
@of_page_owner
@require_GET
def items(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The next items that the page does not have yet; renews all leases.

    `have`: items that the page shows or has prefetched; `given`: items whose verdicts are being sent (comma-separated
    tokens). The response also lists what the rater holds, and the latest end of these leases.
    """
    evaluation = get_evaluation(request, slug, pk, May.RATE)
    user = signed_in(request)
    loaded, submitting = (
        assignments.numbers_of(evaluation=evaluation, user=user, items=_items(request.GET.get(name, "")))
        for name in ("have", "given")
    )
    rater = own_part(evaluation, user)
    claimed, entry = queue.claim(rater=rater, count=BATCH, loaded=loaded, submitting=submitting)
    evaluation = rater.evaluation  # as it is now
    for assignment in claimed:
        assignment.evaluation = evaluation  # with its criteria, which are loaded once
    held = assignments.held_by(rater)
    content = {
        "items": [_fragment(request, evaluation, assignment, entry) for assignment in claimed],
        "more": len(claimed) == BATCH,
        "held": list(held),
        "until": max(held.values()).isoformat() if held else "",
    }
    return JsonResponse({**content, **_state_and_progress(request, rater, entry)})


@login_required
@of_page_owner
@require_POST
def give_back(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The page was closed: release its prefetched items, unless another page has renewed them since `until`."""
    evaluation = get_evaluation(request, slug, pk, May.RATE)
    until = _moment(request.POST.get("until", ""))
    if until is not None:
        user, items = signed_in(request), _items(request.POST.get("items", ""))
        numbers = assignments.numbers_of(evaluation=evaluation, user=user, items=items)
        assignments.give_back(evaluation=evaluation, user=user, items=numbers, until=until)
    return HttpResponse(status=204)


@login_required
@of_page_owner
@require_GET
def mine(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The rater's earlier items, newest first, paginated."""
    evaluation = get_evaluation(request, slug, pk, May.RATE)
    before = whole(request.GET.get("before", ""))
    handled, more = selectors.mine(evaluation=evaluation, user=signed_in(request), before=before)
    criteria = evaluation.criteria
    listed = [earlier(assignment, criteria) for assignment in handled]
    context = {"earlier": listed, "more": more, "project": evaluation.run.project, "run": evaluation.run}
    return render(request, "people/_mine.html", context)


@login_required
@of_page_owner
@require_GET
def difference(request: HttpRequest, slug: str, pk: int, token: UUID) -> HttpResponse:
    """Both answers with their differences marked."""
    both = differences(get_own_assignment(request, slug, pk, token, with_texts=True))
    return JsonResponse(
        {"sides": [render_to_string("people/_marked.html", {"pieces": pieces}) for pieces in both]}
    )


@login_required
@of_page_owner
@require_POST
def verdict(request: HttpRequest, slug: str, pk: int, token: UUID | int) -> HttpResponse:
    """Submit a verdict, or change the one numbered `attempt`."""
    assignment = get_own_assignment(request, slug, pk, token)
    arguments: dict[str, Any] = {
        "assignment": assignment,
        "values": values_from(request, criteria_for(assignment.evaluation, assignment.item)),
        "comment": request.POST.get("comment", ""),
        "seconds": _number(request.POST.get("seconds", "")),
        "shown": {"1": 1, "2": 2}.get(request.POST.get("shown", "")),  # from a page of an earlier release
        "guideline": whole(request.POST.get("guideline", "")),
    }
    if attempt := whole(request.POST.get("attempt", "")):
        return _done(request, assignment.evaluation, ratings.change, **arguments, attempt=attempt)
    return _done(request, assignment.evaluation, ratings.submit, **arguments)


@login_required
@of_page_owner
@require_POST
def skip(request: HttpRequest, slug: str, pk: int, token: UUID | int) -> HttpResponse:
    """Skip an item, with a reason."""
    assignment = get_own_assignment(request, slug, pk, token)
    return _done(
        request,
        assignment.evaluation,
        ratings.skip,
        assignment=assignment,
        reason=request.POST.get("reason", ""),
        values=values_from(request, criteria_for(assignment.evaluation, assignment.item)) or None,
        comment=request.POST.get("comment", ""),
        seconds=_number(request.POST.get("seconds", "")),
    )


@login_required
@of_page_owner
@require_POST
def undo(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Undo the last verdict or skip; the item is on the desk again."""
    evaluation = get_evaluation(request, slug, pk, May.RATE)
    return _done(request, evaluation, ratings.undo, evaluation=evaluation, user=signed_in(request))


@login_required
@of_page_owner
@require_POST
def draft(request: HttpRequest, slug: str, pk: int, token: UUID | int) -> HttpResponse:
    """Save a draft."""
    assignment = get_own_assignment(request, slug, pk, token)
    values = values_from(request, criteria_for(assignment.evaluation, assignment.item))
    comment, attempt = request.POST.get("comment", ""), whole(request.POST.get("attempt", "")) or 0
    ratings.draft_save(assignment=assignment, values=values, comment=comment, attempt=attempt)
    return JsonResponse(_state_now(request, assignment.evaluation))


def values_from(request: HttpRequest, criteria: dict[int, Criterion]) -> dict[int, Any]:
    """The form's values: `v0`, `v1.2` … are indices into a part's choices, or texts. Invalid input is passed on
    unchanged, so that it is rejected instead of counting as empty."""
    by_key: dict[str, Any] = {}
    for part in parts_of(criteria):
        text = request.POST.get(f"v{part.key}", "")
        place = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else -1
        chosen = part.criterion.choices
        by_key[part.key] = (
            text if part.criterion.is_written else chosen[place] if 0 <= place < len(chosen) else text
        )
    return joined(criteria, by_key)


def _done(
    request: HttpRequest, evaluation: Evaluation, service: Callable[..., Rating], /, **arguments: Any
) -> HttpResponse:
    """Call the service; return the result as JSON to the script, else redirect to the next page."""
    key = _key(request)
    try:
        rating = service(**arguments, key=key)
    except ValuesRefused as refused:
        errors = problems_of(refused)
        if _wants_json(request):
            content = {"code": "values", "errors": errors, **_state_now(request, evaluation)}
            return JsonResponse(content, status=422)
        rater, values = own_part(evaluation, signed_in(request)), arguments["values"]
        shown, entry = [arguments["assignment"]], queue.entry_for(rater)
        return _page(request, rater, shown, entry, values=values, errors=errors, status=422)
    except ratings.DeskRefused as refused:
        sentence = refusal_sentence(refused.code)
        if _wants_json(request):
            content = {"code": refused.code, "sentence": sentence, **_state_now(request, evaluation)}
            return JsonResponse(content, status=409)
        messages.error(request, sentence)
        return redirect("desk:page", evaluation.run.project.slug, evaluation.run_id)
    feedback = training_feedback(rating.assignment) if rating.kind in ("verdict", "change") else None
    if _wants_json(request):
        more = (
            {"feedback": render_to_string("people/_feedback.html", {"feedback": feedback})}
            if feedback
            else {}
        )
        entry = queue.entry_after(rating)
        undone = [rating.assignment] if rating.kind == "undo" else []
        back = [_fragment(request, evaluation, assignment, entry) for assignment in undone]
        content = {"sentence": saved_sentence(rating, key), **more, **({"items": back} if back else {})}
        return JsonResponse({**content, **_state(request, evaluation, entry, stopped=rating.rater.stopped)})
    if feedback:
        messages.info(request, render_to_string("people/_feedback.html", {"feedback": feedback}))
    messages.success(request, saved_sentence(rating, key) or _("Saved."))
    return redirect("desk:page", evaluation.run.project.slug, evaluation.run_id)


def _page(
    request: HttpRequest,
    rater: EvaluationRater,
    shown: list[Assignment],
    entry: Entry | None,
    *,
    values: dict[int, Any] | None = None,
    errors: dict[int, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The whole page; `values`: initial values instead of the first item's own."""
    evaluation = rater.evaluation
    criteria = evaluation.criteria
    progress = queue.desk_progress(rater, entry)
    shows = [_desk_item(assignment) for assignment in shown]
    of_item = asks_by_item(evaluation)
    first = values if values is not None else shows[0].values if shows else {}
    parts = parts_shown(shows[0].criteria if shows else criteria, first, errors)
    context = {
        "evaluation": evaluation,
        "project": evaluation.run.project,
        "run": evaluation.run,
        "shows": [(show, parts_shown(show.criteria, show.values) if of_item else []) for show in shows],
        "parts": parts,
        "texts": guideline_texts(evaluation),
        "answers": answered_for(evaluation, signed_in(request)),
        "reading": reading_due(evaluation, signed_in(request), opens=bool(shown)),
        "progress": progress,
        "state": _state_for_rater(evaluation, entry, stopped=progress.paused),
        "entry": entry,
        "skip_reasons": SkipReason.choices,
        "key": uuid4(),
        "compares": any(criterion.compares and not criterion.ranks for criterion in criteria.values()),
        "marks_spans": marks_spans(evaluation),
        "ranks": any(criterion.ranks for criterion in criteria.values()),
        "until": max(assignment.lease_until for assignment in shown).isoformat() if shown else "",
    }
    return render(request, "people/desk.html", context, status=status)


def _desk_item(assignment: Assignment) -> DeskItem:
    return desk_item(assignment, criteria_for(assignment.evaluation, assignment.item))


def parts_shown(
    criteria: dict[int, Criterion], values: dict[int, Any], errors: dict[int, str] | None = None
) -> list[dict[str, Any]]:
    """What the form asks for, part by part."""
    places = places_of(values, criteria)
    return [
        {
            "key": part.key,
            "letter": part.letter,
            "criterion": part.criterion,
            "choices": [
                (choice, choice.place == places.get(part.key)) for choice in choices_of(part.criterion)
            ],
            "text": places.get(part.key, ""),
            "severities": [(severity, *told) for severity, told in SEVERITY_NAMES.items()],
            "error": (errors or {}).get(part.number, ""),
        }
        for part in parts_of(criteria)
    ]


def _fragment(
    request: HttpRequest, evaluation: Evaluation, assignment: Assignment, entry: Entry | None
) -> dict[str, Any]:
    """An item as JSON for the page's script."""
    seen = _desk_item(assignment)
    context = {
        "show": seen,
        "item_parts": parts_shown(seen.criteria, seen.values) if asks_by_item(evaluation) else [],
        "evaluation": evaluation,
        "project": evaluation.run.project,
        "run": evaluation.run,
        "entry": entry,
    }
    return {"id": assignment.token, "html": render_to_string("people/_item.html", context, request)}


def _state_now(request: HttpRequest, evaluation: Evaluation) -> dict[str, Any]:
    rater = own_part(evaluation, signed_in(request))
    return _state(request, evaluation, queue.entry_for(rater), stopped=rater.stopped)


def _state_and_progress(request: HttpRequest, rater: EvaluationRater, entry: Entry | None) -> dict[str, Any]:
    evaluation, progress = rater.evaluation, queue.desk_progress(rater, entry)
    run = evaluation.run
    context = {"progress": progress, "project": run.project, "run": run}
    return {
        "progress": render_to_string("people/_desk_progress.html", context),
        "left": progress.left,
        "answers": answers_for(evaluation, signed_in(request)).count(),
        **_state(request, evaluation, entry, stopped=progress.paused),
    }


def _state(
    request: HttpRequest, evaluation: Evaluation, entry: Entry | None, *, stopped: bool
) -> dict[str, Any]:
    state = _state_for_rater(evaluation, entry, stopped=stopped)
    return {
        "open": state == "open",
        "state": state,
        "guideline": evaluation.guideline_version,
        "token": get_token(request),
    }


def _state_for_rater(evaluation: Evaluation, entry: Entry | None, *, stopped: bool) -> str:
    """The study's state, or why this rater has nothing to rate in an open one."""
    if not evaluation.open:
        return evaluation.state
    if stopped:
        return "paused"
    return {"failed": "not_passed", "waiting": "not_ready"}.get(entry.stage if entry else "", "open")


def _wants_json(request: HttpRequest) -> bool:
    return request.headers.get("Accept", "").startswith("application/json")


def _key(request: HttpRequest) -> UUID:
    """The client's idempotency key. A request without one gets a new key, and no protection against its own retries."""
    return _token(request.POST.get("key", "")) or uuid4()


def _items(text: str) -> set[UUID | int]:
    """Comma-separated tokens of items, or ids from a page of an earlier release; anything else is left out."""
    return {item for part in text.split(",") if (item := _token(part) or whole(part)) is not None}


def _token(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if is_aware(moment) else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
