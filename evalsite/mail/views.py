"""Confirming a mail address, and resetting a password by mail."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from evalsite import access
from evalsite.accounts.forms import FirstPasswordForm
from evalsite.mail.forms import ResetRequestForm
from evalsite.mail.limits import is_too_often
from evalsite.mail.resets import reset_find, reset_request, reset_use, resets_by_mail
from evalsite.mail.services import address_confirm, to_confirm


@login_required
def confirm(request: HttpRequest, secret: str) -> HttpResponse:
    """Only a submitted form confirms the address: link previews send GET requests."""
    user = access.signed_in(request)
    if request.method == "POST" and address_confirm(user=user, secret=secret):
        messages.success(request, _("Mail address confirmed."))
        return redirect("accounts:account")
    row = to_confirm(user, secret)
    return render(request, "mail/confirm.html", {"row": row}, status=200 if row else 404)


def request_reset(request: HttpRequest) -> HttpResponse:
    """Ask for a link. The answer is the same for addresses that nobody confirmed."""
    if not resets_by_mail():
        raise Http404
    form = ResetRequestForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        address = form.cleaned_data["email"]
        if is_too_often(request, address):
            return render(request, "mail/too_often.html", status=429)
        reset_request(address=address)
        return render(request, "mail/reset_sent.html")
    return render(request, "mail/request_reset.html", {"form": form}, status=422 if form.errors else 200)


@sensitive_post_parameters()
def reset(request: HttpRequest, secret: str) -> HttpResponse:
    """Set a new password with a link."""
    link = reset_find(secret)
    if link is None or link.user is None:
        return render(request, "mail/no_reset.html", {"by_mail": resets_by_mail()}, status=404)
    form = FirstPasswordForm(link.user, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        if not reset_use(secret=secret, password=form.cleaned_data["new_password1"]):
            return render(request, "mail/no_reset.html", {"by_mail": resets_by_mail()}, status=404)
        messages.success(request, _("Password changed. Sign in with it."))
        return redirect("accounts:sign_in")
    context = {"form": form, "name": link.user.username}
    return render(request, "mail/reset.html", context, status=422 if form.errors else 200)
