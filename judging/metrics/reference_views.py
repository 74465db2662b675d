"""The reference pages, which are files of docs/, in the app: rules, prompts and scripts, the files of metrics and
results."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from evalsite import access
from evalsite.access import May
from judging.markdown import html_of
from judging.rule_messages import spoken

PAGES = {
    name: {"en": f"{name}.md", "zh": f"{name}.zh.md"}
    for name in ("rules", "prompts", "metrics-file", "results")
}


@login_required
@require_GET
def reference(request: HttpRequest, slug: str, page: str) -> HttpResponse:
    """A page in the reader's language, or `in` another; links between the pages stay in the app."""
    access.get_project(request, slug, May.METRICS)
    if page not in PAGES:
        raise Http404
    wanted = request.GET.get("in", "")
    name = PAGES[page].get(wanted) or PAGES[page][spoken()]
    title, _newline, text = (settings.BASE_DIR / "docs" / name).read_text(encoding="utf-8").partition("\n")
    for other, files in PAGES.items():
        address = "" if other == page else reverse("metrics:reference", args=[slug, other])
        for language, file in files.items():
            text = text.replace(f"]({file})", f"]({address}?in={language})")
    context = {"title": title.removeprefix("# "), "html": html_of(text)}
    return render(request, "metrics/reference.html", context)
