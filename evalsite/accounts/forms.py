"""Forms about people and projects."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from evalsite.accounts.models import Role, User

ROLE_HELP = _(
    "Analysts upload, write metrics and run. Raters score. Reviewers read and override. "
    "Administrators do all of it, and look after endpoints and people."
)


class RolesField(forms.TypedMultipleChoiceField):
    """One or more roles, as check boxes."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self) -> None:
        super().__init__(choices=Role.choices, label=_("Roles"), help_text=ROLE_HELP)


class ProjectForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=200)


class AddMemberForm(forms.Form):
    """Somebody who has an account already."""

    username = forms.CharField(label=_("User name"), max_length=150)
    roles = RolesField()

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"].strip()
        if not User.objects.filter(username=name, is_active=True).exists():
            raise forms.ValidationError(
                _("Nobody here is called %(name)s. Look at the spelling, or create the account."),
                params={"name": name},
            )
        return name


class CreateMemberForm(forms.Form):
    """Somebody new: the account is made together with the membership."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[User.username_validator],
        help_text=_("Used to sign in."),
    )
    name = forms.CharField(label=_("Name shown to others"), max_length=150, required=False)
    roles = RolesField()

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError(
                _("This user name is taken. Choose another, or add the account that exists.")
            )
        return name


class RolesForm(forms.Form):
    roles = RolesField()
