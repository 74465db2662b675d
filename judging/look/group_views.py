"""The page on which notes are put into groups, what it changes, and the export of notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import May, permissions, signed_in
from evalsite.templatetags.show import number
from evalsite.web.headers import download_headers, file_stem
from evalsite.web.numbers import whole
from judging.endpoints.selectors import endpoints_of
from judging.look import groups as services
from judging.look import proposals
from judging.look.access import get_group, get_look
from judging.look.export import FORMS, as_csv, as_jsonl
from judging.look.forms import GroupForm
from judging.look.models import GroupProposal, Look, NoteGroup
from judging.look.population import scored_metrics
from judging.look.results import LookResult, progress
from judging.messages import reason_sentence
from judging.metrics.model_drafts import CannotDraft, spent_on
from judging.metrics.models import DraftState


@login_required
@require_GET
def groups(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Groups by share, with their notes, and the notes that are in none."""
    return _page(request, get_look(request, slug, pk))


def _page(request: HttpRequest, look: Look, *, status: int = 200, **more: Any) -> HttpResponse:
    result = LookResult(look)
    may = permissions(request, look.project)
    tried = list(look.proposals.select_related("created_by").order_by("-pk"))
    context = {
        "look": look,
        "result": result,
        "progress": progress(look, signed_in(request)),
        "scored": bool(look.run and not look.weighted and scored_metrics(look.run)),
        "prices": proposals.prices(result, look.project) if May.METRICS in may and May.LOOK in may else [],
        "notes_sent": proposals.notes_sent(result),
        "proposals": tried,
        "drafts": [_draft(proposal, result) for proposal in tried if proposal.state == DraftState.DRAFT],
        "spent": spent_on(tried),
        "most_proposals": proposals.MOST_PROPOSALS,
        "changes": May.LOOK in may,
        **more,
    }
    return render(request, "look/groups.html", context, status=status)


def _draft(proposal: GroupProposal, result: LookResult) -> dict[str, Any]:
    """A draft for the page: its groups that are not taken yet, each note with its answer."""
    shown = []
    for place, group in enumerate(proposal.groups):
        if group["taken"]:
            continue
        notes = [(result.by_note[pk], note_of(result, pk)) for pk in group["notes"] if pk in result.by_note]
        shown.append(
            {"place": place, "name": group["name"], "definition": group["definition"], "notes": notes}
        )
    return {"proposal": proposal, "groups": shown}


def note_of(result: LookResult, pk: int) -> Any:
    """A note of the look by its id."""
    return next(note for note in result.by_note[pk].notes if note.pk == pk)


def refusal_sentence(code: str) -> str:
    """Why groups were not changed, and what to do."""
    sentences = {
        "name_missing": _("Give the group a name."),
        "name_taken": _("There is a group with this name already. Choose another name, or merge the two."),
        "gone": _("This group no longer exists; somebody deleted or merged it meanwhile."),
        "too_many": _("A look has at most 50 groups. Merge some first."),
        "nothing_chosen": _("Select at least one note or group first."),
        "changed": _("Somebody else changed this group meanwhile. Compare, then save again."),
    }
    return sentences[code]


def _act(request: HttpRequest, look: Look, act: Callable[[], object]) -> HttpResponse:
    """Do something with the look's groups; a refusal becomes a message."""
    try:
        act()
    except services.GroupRefused as refused:
        messages.error(request, refusal_sentence(refused.code))
    return redirect("look:groups", look.project.slug, look.pk)


@login_required
@require_POST
def create(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A new group, with the selected notes if any."""
    look = get_look(request, slug, pk, May.LOOK)
    form = GroupForm(request.POST)
    if not form.is_valid():
        return _page(request, look, new_form=form, status=422)
    try:
        services.group_create(
            look=look,
            user=signed_in(request),
            name=form.cleaned_data["name"],
            definition=form.cleaned_data["definition"],
            notes=[note for note, _group in _chosen(request)],
        )
    except services.GroupRefused as refused:
        form.add_error("name", refusal_sentence(refused.code))
        return _page(request, look, new_form=form, status=422)
    return redirect("look:groups", slug, pk)


@login_required
@require_POST
def change(request: HttpRequest, slug: str, pk: int, group: int) -> HttpResponse:
    """Rename and define a group. What was typed stays on the page if it cannot be stored."""
    look = get_look(request, slug, pk, May.LOOK)
    form = GroupForm(request.POST)
    row = NoteGroup.objects.filter(look=look, pk=group).first()
    if not form.is_valid():
        return _page(request, look, bad_form=form, bad_group=group, status=422)
    try:
        if row is None:
            raise services.GroupRefused("gone")
        row.look = look
        values = form.cleaned_data
        services.group_change(
            group=row,
            user=signed_in(request),
            name=values["name"],
            definition=values["definition"],
            seen=values["seen"] or 0,
        )
    except services.GroupRefused as refused:
        form.add_error(None, refusal_sentence(refused.code))
        newest = row.edits if row else 0
        return _page(request, look, bad_form=form, bad_group=group, bad_seen=newest, status=409)
    return redirect("look:groups", slug, pk)


@login_required
@require_POST
def delete(request: HttpRequest, slug: str, pk: int, group: int) -> HttpResponse:
    """Delete a group; its notes stay."""
    row = get_group(request, slug, pk, group, May.LOOK)
    services.group_delete(group=row, user=signed_in(request))
    text = _("The group “%(name)s” was deleted. Its notes are still there.")
    messages.success(request, text % {"name": row.name})
    return redirect("look:groups", slug, pk)


@login_required
@require_POST
def merge(request: HttpRequest, slug: str, pk: int, group: int) -> HttpResponse:
    """Put a group's notes into another one and delete it."""
    row = get_group(request, slug, pk, group, May.LOOK)
    into = NoteGroup.objects.filter(look=row.look, pk=whole(request.POST.get("into", "")) or 0).first()

    def act() -> None:
        if into is None:
            raise services.GroupRefused("nothing_chosen")
        services.group_merge(group=row, into=into, user=signed_in(request))

    return _act(request, row.look, act)


@login_required
@require_POST
def move(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Put the selected notes into a group (`into`: its id, or `new` with `name`), or take them out of theirs (`out`).

    `act`: move, add (they stay in the groups they are in) or out. Moving some notes of a group to a new one splits it.
    """
    look, user = get_look(request, slug, pk, May.LOOK), signed_in(request)
    chosen, what = _chosen(request), request.POST.get("act", "move")

    def act() -> None:
        into = None if what == "out" else _target(request, look, has_notes=bool(chosen))
        services.notes_put(look=look, user=user, chosen=chosen, into=into, keep=what == "add")
        count = len({note for note, _group in chosen})
        moved = ngettext("%(n)s note moved.", "%(n)s notes moved.", count)
        messages.success(request, moved % {"n": number(count)})

    return _act(request, look, act)


def _target(request: HttpRequest, look: Look, *, has_notes: bool) -> NoteGroup:
    if not has_notes:
        raise services.GroupRefused("nothing_chosen")
    into = request.POST.get("into", "")
    if into == "new":
        return services.group_create(look=look, user=signed_in(request), name=request.POST.get("name", ""))
    group = NoteGroup.objects.filter(look=look, pk=whole(into) or 0).first()
    if group is None:
        raise services.GroupRefused("gone")
    return group


def _chosen(request: HttpRequest) -> list[tuple[int, int]]:
    """The selected notes as (note, the group in which it was selected, or 0): `<note>-<group>`."""
    chosen = []
    for text in request.POST.getlist("chosen"):
        note, _dash, group = text.partition("-")
        if (pk := whole(note)) is not None:
            chosen.append((pk, whole(group) or 0))
    return chosen


@login_required
@require_POST
def propose(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Ask a model of the project for groups; its reply is shown as a draft."""
    look = get_look(request, slug, pk, May.LOOK)
    get_look(request, slug, pk, May.METRICS)
    endpoint = get_object_or_404(endpoints_of(look.project), pk=whole(request.POST.get("endpoint", "")) or 0)
    try:
        proposal = proposals.propose(look=look, endpoint=endpoint, user=signed_in(request))
    except CannotDraft as refusal:
        messages.error(request, proposal_sentence(refusal.code, refusal.detail))
        return redirect("look:groups", slug, pk)
    if proposal.state == DraftState.FAILED:
        messages.error(request, proposal_sentence(proposal.problem, proposal.problem_detail))
        return redirect("look:groups", slug, pk)
    return redirect(reverse("look:groups", args=[slug, pk]) + "#proposal")


def proposal_sentence(code: str, detail: str) -> str:
    """Why a model proposed no groups, and what to do."""
    own = {
        "no_notes": _(
            "There is no note on a failing answer yet, so nothing was sent. Write some notes first."
        ),
        "too_many": _("20 proposals were made for this look. Group the rest by hand."),
        "no_groups": _("The model's reply names no groups. Try another model, or group by hand."),
    }
    return own.get(code) or reason_sentence(code, detail, "prompt")


@login_required
@require_POST
def take(request: HttpRequest, slug: str, pk: int, proposal: int) -> HttpResponse:
    """Take the selected groups of a draft (`take`: their places), or close it (`discard`)."""
    look = get_look(request, slug, pk, May.LOOK)
    draft = GroupProposal.objects.filter(look=look, pk=proposal, state=DraftState.DRAFT).first()
    if draft is None:
        raise Http404
    if "discard" in request.POST:
        proposals.proposal_discard(proposal=draft)
        return redirect("look:groups", slug, pk)
    places = [place for text in request.POST.getlist("take") if (place := whole(text)) is not None]
    return _act(
        request,
        look,
        lambda: proposals.proposal_take(proposal=draft, places=places, user=signed_in(request)),
    )


@login_required
@require_GET
def export(request: HttpRequest, slug: str, pk: int, form: str) -> HttpResponse | StreamingHttpResponse:
    """All notes of the look as a file."""
    return notes_file(get_look(request, slug, pk), form)


def notes_file(look: Look, form: str) -> StreamingHttpResponse:
    """All notes of a look as JSON Lines or CSV. Raises Http404 for another form."""
    if form not in FORMS:
        raise Http404
    name = f"{file_stem(look.name) or 'look'}-notes.{form}"
    content, kind = (as_csv(look), "text/csv") if form == "csv" else (as_jsonl(look), "application/x-ndjson")
    return StreamingHttpResponse(
        content, content_type=f"{kind}; charset=utf-8", headers=download_headers(name)
    )
