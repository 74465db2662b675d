"""All routes of the URL configuration."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver


def routes() -> dict[str, str]:
    """{"namespace:name": "p/<slug:slug>/…"} for every named route."""
    return {namespace + pattern.name: route for namespace, route, pattern in _found() if pattern.name}


def patterns() -> list[URLPattern]:
    return [pattern for _namespace, _route, pattern in _found()]


def _found() -> Iterator[tuple[str, str, URLPattern]]:
    return _below(get_resolver().url_patterns, "", "")


def _below(
    patterns: list[URLPattern | URLResolver], namespace: str, before: str
) -> Iterator[tuple[str, str, URLPattern]]:
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else ""
            yield from _below(pattern.url_patterns, namespace + inner, route)
        else:
            yield namespace, route, pattern
