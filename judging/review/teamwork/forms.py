"""Forms for comments, tags, flags, assignments and exclusions."""

from __future__ import annotations

import unicodedata
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from evalsite.accounts.models import Project, User
from judging.teamwork.inbox import reviewers_of
from judging.teamwork.marks import Change, Kind
from judging.teamwork.models import FLAG, Mark

LONGEST_COMMENT = 10_000
_TAG = Mark._meta.get_field("name").max_length


class TagForm(forms.Form):
    name = forms.CharField(
        label=_("Tag"),
        max_length=_TAG,
        widget=forms.TextInput(attrs={"list": "tag-names", "autocomplete": "off"}),
    )

    def clean_name(self) -> str:
        return " ".join(unicodedata.normalize("NFC", self.cleaned_data["name"]).split())


class UserChoice(forms.ModelChoiceField[User]):
    """A user by username, as in addresses and mentions."""

    def label_from_instance(self, obj: User) -> str:
        name = obj.get_full_name()
        return f"{name} ({obj.username})" if name else obj.username


class AssignForm(forms.Form):
    def __init__(self, data: Any = None, *, project: Project, **options: Any) -> None:
        super().__init__(data, **options)
        reviewers = reviewers_of(project)
        self.fields["user"] = UserChoice(reviewers, label=_("Reviewer"), to_field_name="username")


class ReasonForm(forms.Form):
    reason = forms.CharField(label=_("Reason"), max_length=4000, widget=forms.Textarea(attrs={"rows": 2}))


class CommentForm(forms.Form):
    """`version`: of the edited comment when the page was opened."""

    text = forms.CharField(
        label=pgettext_lazy("review", "Comment"),
        max_length=LONGEST_COMMENT,
        widget=forms.Textarea(attrs={"rows": 3, "data-mentions": "mention-names", "data-key": "c"}),
    )
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)


FLAG_KINDS = {"flag": Kind.TAG, "unflag": Kind.UNTAG}
"""The flag is a tag without a name; its forms are only buttons."""


def form_for(kind: str, project: Project, data: Any = None) -> forms.Form:
    """The form for a change of marks: a tag's name, a reviewer, a reason, or only the button."""
    if kind in (Kind.TAG, Kind.UNTAG):
        return TagForm(data)
    if kind == Kind.ASSIGN:
        return AssignForm(data, project=project)
    return ReasonForm(data) if kind == Kind.EXCLUDE else forms.Form(data)


def change_of(kind: str, form: forms.Form) -> Change:
    """The change that a valid form requests."""
    if kind in FLAG_KINDS:
        return Change(FLAG_KINDS[kind], FLAG)
    return Change(kind, **form.cleaned_data)
