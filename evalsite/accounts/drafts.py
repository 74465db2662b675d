"""Drafts of long forms: saved while the user types, restored on return, deleted once the form is saved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May, signed_in
from evalsite.accounts.models import Draft, Project, User
from evalsite.accounts.views import back

FORMS = {
    "metric": May.METRICS,
    "rules": May.METRICS,
    "endpoint": May.MANAGE,
    "run": May.RUN,
    "evaluation": May.RUN,
}
NEVER_KEPT = ("csrfmiddlewaretoken", "key", "headers", "proxy")  # secrets of endpoints
MOST = 50  # per user and project; the oldest are deleted beyond that


@dataclass(frozen=True, slots=True)
class FormDraft:
    """The draft of a form; `data` is None if there is none to show."""

    project: Project
    user: User
    form: str
    key: str
    data: QueryDict | None
    saved_at: datetime | None
    sent: bool  # the form was submitted, so drafts are not applied

    @property
    def address(self) -> str:
        return reverse("accounts:draft", args=[self.project.slug, self.form, self.key])

    def delete(self) -> None:
        """Delete the draft because the form was saved."""
        _drafts_of(self.user, self.project, self.form).filter(key=self.key).delete()


def form_draft(request: HttpRequest, project: Project, form: str, key: str = "new") -> FormDraft:
    """The draft for this page's form; partial pages and submitted forms get none."""
    user, sent = signed_in(request), request.method == "POST"
    draft = None
    if not sent and "part" not in request.GET:
        draft = _drafts_of(user, project, form).filter(key=key).first()
    data = QueryDict(draft.data) if draft else None
    return FormDraft(project, user, form, key, data, draft.saved_at if draft else None, sent)


def stored_draft(user: User, project: Project, form: str, key: str) -> QueryDict | None:
    """What a user typed into a form and has not saved, if anything."""
    draft = _drafts_of(user, project, form).filter(key=key).first()
    return QueryDict(draft.data) if draft else None


def newest_draft(user: User, project: Project, form: str) -> Draft | None:
    """The latest draft of a form, whatever object it is for."""
    return _drafts_of(user, project, form).order_by("-saved_at", "-pk").first()


def drafts_of_new(user: User, project: Project, form: str) -> list[Draft]:
    """Drafts of things that do not exist yet, newest first."""
    return list(_drafts_of(user, project, form).filter(key__startswith="new").order_by("-saved_at", "-pk"))


def draft_save(*, user: User, project: Project, form: str, key: str, typed: QueryDict) -> None:
    """Save the input without secrets, replacing an earlier draft."""
    values = typed.copy()
    for name in NEVER_KEPT:
        values.pop(name, None)
    if "@" in values.get("url", ""):
        values.pop("url")  # it may contain a password
    Draft.objects.update_or_create(
        user=user, project=project, form=form, key=key, defaults={"data": values.urlencode()}
    )
    oldest = Draft.objects.filter(user=user, project=project).order_by("-saved_at", "-pk")[MOST:]
    Draft.objects.filter(pk__in=list(oldest.values_list("pk", flat=True))).delete()


@login_required
@sensitive_post_parameters()
@require_POST
def draft(request: HttpRequest, slug: str, form: str, key: str) -> HttpResponse:
    """Save the input; with `discard`, delete the draft and redirect back."""
    if form not in FORMS or len(key) > 100:
        raise Http404
    project = access.get_project(request, slug, FORMS[form])
    user = signed_in(request)
    if "discard" in request.GET:
        _drafts_of(user, project, form).filter(key=key).delete()
        return back(request)
    draft_save(user=user, project=project, form=form, key=key, typed=request.POST)
    return HttpResponse(status=204)


def _drafts_of(user: User, project: Project, form: str) -> QuerySet[Draft]:
    return Draft.objects.filter(user=user, project=project, form=form)
