"""The HTTP API: tokens, errors, lists and repeated requests. Knows no service.

Its addresses stand in `api.py` of each package, beside the views that they mirror, and are registered in
`AppConfig.ready` by module path, so that only processes that answer requests import them.
"""

from __future__ import annotations

from django.http import HttpRequest

PREFIX = "/api/"
MCP, METRICS = "/mcp", "/metrics"
modules: list[str] = []
"""Modules with a `router` (ninja.Router), in the order of the description."""
takes_files: set[str] = set()
"""Names of addresses that accept files. Their views check permission and size before they read the body."""


def is_api(request: HttpRequest) -> bool:
    """Whether a request is for the API or the MCP server, whose answers are JSON."""
    return answers_json(request.path_info)


def answers_json(path: str) -> bool:
    """Whether every answer at this path is JSON."""
    return path == MCP or path.startswith((PREFIX, f"{MCP}/"))


def takes_tokens(request: HttpRequest) -> bool:
    """Whether access tokens work at this address. Cookies don't count there, and there is no local user."""
    return is_api(request) or request.path_info == METRICS
