"""The pages of data sets: guard, form, service, render."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render


def json_wanted(request: HttpRequest) -> bool:
    """Whether the request was sent by static/js/upload.js, which shows progress; the plain form works too."""
    return request.headers.get("Accept") == "application/json"


def uploaded(request: HttpRequest, address: str) -> HttpResponse:
    """Redirect to the page of the upload."""
    return JsonResponse({"address": address}) if json_wanted(request) else redirect(address)


def upload_refused(
    request: HttpRequest, form: BaseForm, template: str, context: Mapping[str, Any]
) -> HttpResponse:
    """The form again, with its errors."""
    if json_wanted(request):
        sentences = [text for errors in form.errors.values() for text in errors]
        return JsonResponse({"errors": sentences}, status=422)
    return render(request, template, context, status=422)


def number_asked(request: HttpRequest, name: str) -> int | None:
    """A query parameter as an integer, at most the largest line number; None if it is missing or invalid."""
    text = request.GET.get(name, "")
    return min(int(text[:12]), 2**31 - 1) if text.isdecimal() else None
