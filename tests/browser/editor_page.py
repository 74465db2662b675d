"""URL conf of the site plus a page with one code editor, for the editor's own tests."""

from django.http import HttpRequest, HttpResponse
from django.template import engines
from django.urls import path

from evalsite.urls import urlpatterns as site

PAGE = """{% extends "base.html" %}
{% block styles %}{% include "components/editor_assets.html" %}{% endblock %}
{% block content %}
  <form method="post">{% csrf_token %}
    <label for="prompt">Prompt</label>
    <code-editor language="jinja">
      <textarea id="prompt" name="prompt" hx-post="/editor/" hx-trigger="input changed delay:50ms"
        hx-target="#preview" hx-swap="textContent">{{ text }}</textarea>
    </code-editor>
    <button id="send">Send</button>
  </form>
  <div id="preview">{{ sent }}</div>
{% endblock %}"""


def editor(request: HttpRequest) -> HttpResponse:
    """Show an editor, and what was submitted; to htmx, return the submitted text in upper case."""
    sent = request.POST.get("prompt", "")
    if request.headers.get("HX-Request"):
        return HttpResponse(sent.upper())
    context = {"text": "Judge {% raw %}{{ resp.content }}{% endraw %}", "sent": sent}
    return HttpResponse(engines["django"].from_string(PAGE).render(context, request))


urlpatterns = [path("editor/", editor), *site]
