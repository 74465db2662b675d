"""The site below a path: which path a request has, however the proxy passes it on."""

from __future__ import annotations

from typing import Any

import pytest

from evalsite.web.base_path import below


def path_of(base_path: str, requested: str) -> str:
    paths: list[str] = []

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        paths.append(environ["PATH_INFO"])
        return []

    below(application, base_path)({"PATH_INFO": requested}, lambda *_: None)
    return paths[0]


@pytest.mark.parametrize(
    ("requested", "path"),
    [
        ("/evals/p/x/", "/p/x/"),
        ("/evals/", "/"),
        ("/evals", ""),
        ("/p/x/", "/p/x/"),
        ("/evalsx/", "/evalsx/"),
    ],
)
def test_the_path_is_removed_if_the_proxy_has_not_done_it(requested: str, path: str) -> None:
    assert path_of("/evals", requested) == path


def test_without_a_base_path_nothing_is_removed() -> None:
    assert path_of("", "/evals/") == "/evals/"
