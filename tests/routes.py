"""Every address of the URL configuration."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver


def routes() -> dict[str, str]:
    """{"namespace:name": "p/<slug:slug>/…"} of every named address."""
    return dict(_routes(get_resolver().url_patterns, "", ""))


def _routes(
    patterns: list[URLPattern | URLResolver], namespace: str, before: str
) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else ""
            yield from _routes(pattern.url_patterns, namespace + inner, route)
        elif pattern.name:
            yield namespace + pattern.name, route
