"""Serves the site below a path (BASE_PATH), behind a proxy that may pass the path on or remove it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def below(application: Application, base_path: str) -> Application:
    """The application for requests whose path may begin with `base_path`, which Django adds to all addresses."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == base_path or path.startswith(f"{base_path}/"):
            environ["PATH_INFO"] = path.removeprefix(base_path)
        return application(environ, start_response)

    return serve if base_path else application
