"""A client of the API with an access token, in this process."""

from __future__ import annotations

from typing import Any

from django.test import Client

from evalsite.accounts.models import Project, User
from evalsite.accounts.tokens import token_create

WRITE, READ = "write", "read"


class Api:
    """Requests below /api/v1/, with a token of `user`; without a user, without a token."""

    def __init__(self, user: User | None, *, scope: str = WRITE, project: Project | None = None) -> None:
        self.client = Client(raise_request_exception=False)
        self.headers: dict[str, str] = {}
        if user is not None:
            _token, secret = token_create(user=user, name="nightly", days=None, scope=scope, project=project)
            self.headers = {"Authorization": f"Bearer {secret}"}

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/api/v1/{path}", query or None, headers=self.headers)

    def figures(self) -> Any:
        """The figures for Prometheus."""
        return self.client.get("/metrics", headers=self.headers)

    def post(self, path: str, body: Any = None, *, key: str = "") -> Any:
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        return self.client.post(
            f"/api/v1/{path}", {} if body is None else body, "application/json", headers=headers
        )

    def delete(self, path: str) -> Any:
        return self.client.delete(f"/api/v1/{path}", headers=self.headers)

    def upload(self, path: str, *, key: str = "", **fields: Any) -> Any:
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        return self.client.post(f"/api/v1/{path}", fields, headers=headers)


def pages_of(api: Api, path: str, limit: int) -> list[list[dict[str, Any]]]:
    """The items of each page of a list."""
    pages, cursor = [], ""
    while True:
        page = api.get(path, limit=limit, cursor=cursor).json()
        pages.append(page["items"])
        if page["next"] is None:
            return pages
        cursor = page["next"]


def code_of(response: Any) -> tuple[int, str]:
    """The status and code of an error response, which has a sentence too."""
    error = response.json()["error"]
    assert error["message"]
    return response.status_code, error["code"]
