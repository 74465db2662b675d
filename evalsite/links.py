"""Absolute addresses of pages. Their only source is SITE_URL: the host that a request names may be forged."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.urls import get_script_prefix, reverse


def absolute_url(name: str, *args: object) -> str:
    """The address of a named page, for whoever reads it elsewhere; '' if SITE_URL is not set."""
    site: str = settings.CONFIG.site_url
    if not site:
        return ""
    # SITE_URL ends with BASE_PATH, which is the script prefix in requests and '/' in workers' threads.
    path = reverse(name, args=args)[len(get_script_prefix()) :]
    return f"{site}/{path}"


def link_to_copy(request: HttpRequest, name: str, *args: object) -> str:
    """A link shown on a page to somebody who will pass it on; without SITE_URL, at the address of that page."""
    return absolute_url(name, *args) or request.build_absolute_uri(reverse(name, args=args))
