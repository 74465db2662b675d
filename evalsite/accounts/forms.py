"""Forms for users and projects, and a password validator."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import BaseUserCreationForm, PasswordChangeForm, SetPasswordForm
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evalsite.access import open_projects_of
from evalsite.accounts.models import ApiToken, Project, Role, User

ROLE_HELP = _(
    "Analysts upload data, create metrics and start runs. Raters score. Reviewers inspect and override "
    "scores. Administrators can do all of this and manage endpoints and members."
)
FEWEST_OTHER_LETTERS = 3  # letters that a password must have in addition to the user's names
_NO_LETTER = re.compile(r"[\W\d_]+")


class RolesField(forms.MultipleChoiceField):
    """One or more roles, as check boxes."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self) -> None:
        super().__init__(choices=Role.choices, label=_("Roles"), help_text=ROLE_HELP)


class ProjectForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=200)


class AddMemberForm(forms.Form):
    """Add a user with an existing account."""

    username = forms.CharField(label=_("Username"), max_length=150)
    roles = RolesField()

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"].strip()
        if not User.objects.filter(username=name, is_active=True).exists():
            raise ValidationError(
                _("No user named %(name)s. Check the spelling, or create the account."),
                params={"name": name},
            )
        return name


class CreateMemberForm(forms.Form):
    """Add a new user: creates the account and the membership."""

    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        validators=[User.username_validator],
        help_text=_("Used to sign in."),
    )
    name = forms.CharField(label=_("Display name"), max_length=150, required=False)
    roles = RolesField()

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=name).exists():
            raise ValidationError(
                _("This username is taken. Choose another one, or add the existing account.")
            )
        return name


class RolesForm(forms.Form):
    roles = RolesField()


class InvitationForm(forms.Form):
    """Roles of the invited person, and how long the link is valid."""

    note = forms.CharField(
        label=_("Invitee"), max_length=200, help_text=_("A name or email address, for your reference.")
    )
    days = forms.TypedChoiceField(
        label=_("Expires in"),
        coerce=int,
        choices=[(1, _("1 day")), (7, _("7 days")), (30, _("30 days"))],
        initial=7,
    )
    roles = RolesField()


class JoinForm(BaseUserCreationForm):  # type: ignore[type-arg]  # not generic at run time
    """An account for the holder of an invitation; its password must satisfy the site's rules."""

    class Meta:
        model = User
        fields = ("username", "first_name")
        labels = {"username": _("Username"), "first_name": _("Display name")}
        help_texts = {"username": _("Used to sign in."), "first_name": ""}

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=name).exists():
            raise ValidationError(_("This username is taken. Choose another one."))
        return name


class FirstPasswordForm(SetPasswordForm):  # type: ignore[type-arg]  # Django's own takes no parameters
    """Set a password without the old one: the user has none, or has just signed in with a one-time password."""

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if self.user.check_password(values.get("new_password1", "")):
            self.add_error("new_password2", _("This is your current password. Choose another one."))
        return values


class OwnPasswordForm(FirstPasswordForm, PasswordChangeForm):
    """Change the user's own password; the new one must be different."""


class AccountForm(forms.Form):
    name = forms.CharField(label=_("Display name"), max_length=150, required=False)
    language = forms.ChoiceField(
        label=_("Language"), choices=[("", _("Browser default")), *settings.LANGUAGES], required=False
    )


class TokenForm(forms.Form):
    """An API token; the shortest lifetime is the default."""

    name = forms.CharField(
        label=_("Purpose"), max_length=100, help_text=_("For example: nightly export from CI.")
    )
    days = forms.TypedChoiceField(
        label=_("Expires in"),
        coerce=int,
        choices=[(30, _("30 days")), (90, _("90 days")), (365, _("1 year")), (0, _("No expiration"))],
        initial=90,
    )
    scope = forms.ChoiceField(label=_("Access"), choices=ApiToken.Scope.choices, required=False)
    project = forms.ModelChoiceField(
        Project.objects.none(), label=_("Project"), required=False, empty_label=_("All projects")
    )

    def __init__(self, *args: Any, user: User, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["project"].queryset = open_projects_of(user)  # type: ignore[attr-defined]
        self.fields["project"].label_from_instance = lambda project: project.name  # type: ignore[attr-defined]


class NameAndDigitsValidator:
    """Rejects a password that is the user's name, possibly repeated, plus digits or punctuation."""

    def validate(self, password: str, user: object = None) -> None:
        if not isinstance(user, User):
            return
        rest = _NO_LETTER.sub("", password.casefold())
        names = {_NO_LETTER.sub("", name.casefold()) for name in _names(user)} - {""}
        left = rest
        for name in sorted(names, key=len, reverse=True):
            left = left.replace(name, "")
        if left != rest and len(left) < FEWEST_OTHER_LETTERS:
            raise ValidationError(self.get_help_text(), code="password_is_name")

    def get_help_text(self) -> str:
        return gettext("The password can’t be your username with digits or punctuation added.")


def _names(user: User) -> list[str]:
    return [
        user.username,
        user.email.partition("@")[0],
        *(f"{user.first_name} {user.last_name}".split()),
        user.get_full_name(),
    ]
