"""Requests made from the description, by schemathesis: no address fails, and replies are as described."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
import schemathesis
from django.conf import LazySettings
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from evalsite.accounts.models import User
from evalsite.api.same_process import wsgi_answer
from tests.api import Api
from tests.datasets.conftest import upload
from tests.evalsite.api.test_every_address import places

__all__ = ["places", "upload"]  # fixtures
EXAMPLES = 8 if os.environ.get("EVALSITE_CI") == "1" else 2  # for each address
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


def test_replies_are_as_described(
    cast: dict[str, User], places: dict[str, Any], settings: LazySettings
) -> None:
    settings.CONFIG = replace(settings.CONFIG, api_requests_per_minute=10**9)
    headers = Api(cast["olga"]).headers | {"Accept-Encoding": "identity"}
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", wsgi_answer)
    problems = []
    for result in schema.get_all_operations():
        try:
            requests_to(result.ok(), headers, places)()
        except FailureGroup as failures:
            problems += [f"{result.ok().label}: {failure}" for failure in failures.exceptions]
    assert problems == []


def requests_to(operation: Any, headers: dict[str, str], places: dict[str, Any]) -> Any:
    """A test of one address, on existing objects half of the time. Nothing is waited for."""

    @seed(1)
    @hypothesis_settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), exists=st.booleans())
    def requests(case: Any, exists: bool) -> None:
        if exists:
            case.path_parameters = {name: places[name] for name in case.path_parameters}
        case.query = {name: value for name, value in (case.query or {}).items() if name != "wait"}
        case.call_and_validate(headers=headers, checks=CHECKS)

    return requests


def test_without_a_token_every_address_is_closed(db: None) -> None:
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", wsgi_answer)
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) > 40
    open_addresses = [
        operation.label
        for operation in operations
        if operation.Case(path_parameters=dict.fromkeys(names_of(operation), "1")).call().status_code != 401
    ]
    assert open_addresses == []


def names_of(operation: Any) -> list[str]:
    return [parameter.name for parameter in operation.path_parameters]


@pytest.fixture(autouse=True)
def _no_local_mode(settings: LazySettings) -> None:
    settings.LOCAL_MODE = False
