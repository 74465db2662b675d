"""Endpoint pages: administrators manage endpoints, analysts use them, and secrets are never shown."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone

from evalsite.accounts.models import Project, User
from evalsite.secrets import decrypt
from judging.core.judges.protocols import PROTOCOLS
from judging.core.judges.scripted import ScriptedJudge, refusal
from judging.endpoints.fields import json_object
from judging.endpoints.models import Endpoint
from judging.endpoints.presets import PRESETS, Preset
from judging.endpoints.selectors import endpoints_of
from tests.conftest import ClientOf
from tests.full_and_locked import full_database, locked_database
from tests.judging.endpoints.make import FORM
from tests.judging.metrics.conftest import KEY

ENDPOINTS = "/p/physics/endpoints/"
SECRETS = (KEY, "hidden-header-value", "proxy-password")


def page_of(endpoint: Endpoint, what: str = "") -> str:
    return f"{ENDPOINTS}{endpoint.pk}/{what}"


@pytest.mark.parametrize(
    ("name", "status"),
    [("alice", 200), ("adam", 200), ("olga", 200), ("bob", 403), ("rita", 403), ("charlie", 404)],
)
def test_endpoints_are_seen_by_who_uses_them(
    name: str, status: int, cast: dict[str, User], client_of: ClientOf, endpoint: Endpoint
) -> None:
    client = client_of(cast[name])
    assert client.get(ENDPOINTS).status_code == status
    assert client.get(page_of(endpoint)).status_code == status


@pytest.mark.parametrize(
    ("name", "status"), [("adam", 200), ("olga", 200), ("alice", 403), ("bob", 403), ("charlie", 404)]
)
@pytest.mark.parametrize("what", ["new/", "1/edit/", "address/"])
def test_only_administrators_change_endpoints(
    what: str, name: str, status: int, cast: dict[str, User], client_of: ClientOf, endpoint: Endpoint
) -> None:
    what = what.replace("1/", f"{endpoint.pk}/")
    assert client_of(cast[name]).get(ENDPOINTS + what).status_code == status


@pytest.mark.parametrize("what", ["archive/", "restore/"])
def test_an_analyst_archives_no_endpoint(
    what: str, client_of: ClientOf, alice: User, endpoint: Endpoint
) -> None:
    assert client_of(alice).post(page_of(endpoint, what)).status_code == 403


def test_an_endpoint_of_another_project_is_not_found(
    client_of: ClientOf, charlie: User, endpoint: Endpoint
) -> None:
    assert client_of(charlie).get(f"/p/elsewhere/endpoints/{endpoint.pk}/").status_code == 404


@pytest.mark.parametrize("what", ["", "edit/"])
def test_no_page_shows_a_secret(what: str, client_of: ClientOf, adam: User, endpoint: Endpoint) -> None:
    text = client_of(adam).get(page_of(endpoint, what)).text
    assert not [secret for secret in SECRETS if secret in text]
    assert "stored" in text


def test_a_form_with_errors_does_not_send_secrets_back(
    client_of: ClientOf, adam: User, project: Project
) -> None:
    secrets = {"key": KEY, "headers": "X-Team: hidden-header-value", "proxy": "http://u:proxy-password@h:1"}
    page = client_of(adam).post(ENDPOINTS + "new/", {**FORM, **secrets, "model": ""})
    assert page.status_code == 422
    assert not [secret for secret in SECRETS if secret in page.text]


def test_an_endpoint_is_made_with_its_secrets_encrypted(
    client_of: ClientOf, adam: User, project: Project
) -> None:
    client_of(adam).post(ENDPOINTS + "new/", {**FORM, "key": f" {KEY} ", "headers": "X-A: b\n\nX-C: d: e"})
    made = Endpoint.objects.get()
    assert KEY not in made.key_encrypted
    assert decrypt(made.key_encrypted) == KEY
    assert decrypt(made.headers_encrypted) == '{"X-A": "b", "X-C": "d: e"}'


def test_prices_carry_the_day_on_which_they_changed(
    client_of: ClientOf, adam: User, endpoint: Endpoint
) -> None:
    Endpoint.objects.update(input_price=Decimal("0.5"), currency="USD", priced_on=date(2026, 1, 2))
    edit = page_of(endpoint, "edit/")
    client_of(adam).post(edit, FORM | {"name": "Renamed"})
    assert Endpoint.objects.get().priced_on == date(2026, 1, 2)
    client_of(adam).post(edit, FORM | {"name": "Renamed", "output_price": "2"})
    assert Endpoint.objects.get().priced_on == timezone.localdate()
    client_of(adam).post(edit, FORM | {"name": "Renamed", "input_price": "", "currency": ""})
    assert Endpoint.objects.get().priced_on is None


def test_an_empty_key_keeps_the_stored_one(client_of: ClientOf, adam: User, endpoint: Endpoint) -> None:
    client_of(adam).post(page_of(endpoint, "edit/"), {**FORM, "name": "Other"})
    endpoint.refresh_from_db()
    assert (endpoint.name, decrypt(endpoint.key_encrypted)) == ("Other", KEY)


def test_a_stored_key_can_be_removed(client_of: ClientOf, adam: User, endpoint: Endpoint) -> None:
    client_of(adam).post(page_of(endpoint, "edit/"), {**FORM, "remove_key": "on"})
    endpoint.refresh_from_db()
    assert (endpoint.key_encrypted, bool(endpoint.proxy_encrypted)) == ("", True)


@pytest.mark.parametrize("change", [{"url": "http://127.0.0.1:10/v1"}, {"proxy": "http://elsewhere:3128"}])
def test_a_stored_key_is_not_sent_to_another_server_unasked(
    change: dict[str, str], client_of: ClientOf, adam: User, endpoint: Endpoint
) -> None:
    page = client_of(adam).post(page_of(endpoint, "edit/"), {**FORM, **change})
    endpoint.refresh_from_db()
    assert page.status_code == 422
    assert endpoint.url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"url": "ftp://h"}, "Not a valid http or https URL"),
        ({"url": "http://u:p@h/v1"}, "Not a valid http or https URL"),
        ({"params": "{"}, "line 1, column 2"),
        ({"params": '{\n "a": 1,\n "a": 2}'}, "duplicate name"),
        ({"params": "[1]"}, "Enter a JSON object"),
        ({"params": '{"a": NaN}'}, "NaN is not a JSON value"),
        ({"params": '{"model": "x"}'}, "comes from the endpoint"),
        ({"headers": "X-A: b\nnonsense"}, "Line 2"),
        ({"headers": "X-A: ü"}, "contains an invalid character"),
        ({"key": "schlüssel"}, "contains an invalid character"),
        ({"proxy": "socks5://h:1"}, "http://host:port"),
        ({"ca_pem": "-----BEGIN"}, "not valid PEM"),
        ({"first_byte_seconds": "600"}, "must not be shorter than"),
        ({"concurrency": "0"}, "greater than or equal to 1"),
        ({"requests_per_minute": "0"}, "greater than or equal to 1"),
        ({"currency": ""}, "Enter the currency"),
    ],
)
def test_a_wrong_setting_is_reported(
    change: dict[str, str], says: str, client_of: ClientOf, adam: User, project: Project
) -> None:
    page = client_of(adam).post(ENDPOINTS + "new/", {**FORM, **change})
    assert page.status_code == 422
    assert says in page.text
    assert not Endpoint.objects.exists()


def test_a_name_is_taken_once(client_of: ClientOf, adam: User, endpoint: Endpoint) -> None:
    page = client_of(adam).post(ENDPOINTS + "new/", FORM)
    assert page.status_code == 422
    assert "named “Judge” already exists" in page.text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("api.example.com", "https://api.example.com/v1/chat/completions"),
        ("ftp://h", "Not a valid http or https URL"),
    ],
)
def test_the_final_address_is_shown_while_typing(
    url: str, shown: str, client_of: ClientOf, adam: User, project: Project
) -> None:
    assert shown in client_of(adam).get(ENDPOINTS + "address/", {"url": url}).text


def test_archiving_takes_it_from_the_list_and_can_be_undone(
    client_of: ClientOf, adam: User, endpoint: Endpoint
) -> None:
    client = client_of(adam)
    client.post(page_of(endpoint, "archive/"))
    assert page_of(endpoint) not in client.get(ENDPOINTS).text
    client.post(page_of(endpoint, "restore/"))
    assert page_of(endpoint) in client.get(ENDPOINTS).text


def test_an_analyst_tests_a_connection_that_works(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    page = client_of(alice).post(page_of(live, "test/"), headers={"HX-Request": "true"})
    assert "Connected" in page.text
    assert "<html" not in page.text
    assert KEY not in page.text


def test_a_connection_that_works_names_the_next_step(
    client_of: ClientOf, alice: User, live: Endpoint
) -> None:
    page = client_of(alice).post(page_of(live, "test/"), headers={"HX-Request": "true"})
    assert '<div id="next" hx-swap-oob="true">' in page.text
    assert "Choose a metric" in page.text


def test_what_the_server_refuses_is_said_and_remembered(
    client_of: ClientOf, alice: User, live: Endpoint, server: ScriptedJudge
) -> None:
    server.server.refuses = frozenset({"separate_reasoning", "max_tokens"})
    page = client_of(alice).post(page_of(live, "test/"), follow=True)
    live.refresh_from_db()
    assert "separate_reasoning is not supported" in page.text
    assert "max_completion_tokens" in page.text
    assert live.rejected_params == ["max_tokens", "separate_reasoning"]


def test_a_wrong_key_is_reported_without_repeating_it(
    client_of: ClientOf, alice: User, live: Endpoint, server: ScriptedJudge
) -> None:
    server.server.api_key = "another"
    page = client_of(alice).post(page_of(live, "test/"), follow=True)
    live.refresh_from_db()
    assert "Invalid API key" in page.text
    assert KEY not in page.text + str(live.probe)


def test_a_server_that_is_not_there_is_reported(client_of: ClientOf, alice: User, endpoint: Endpoint) -> None:
    Endpoint.objects.update(proxy_encrypted="")
    assert "t connect to the endpoint" in client_of(alice).post(page_of(endpoint, "test/"), follow=True).text


def test_a_model_that_the_server_does_not_offer_is_reported(
    client_of: ClientOf, alice: User, live: Endpoint, server: ScriptedJudge
) -> None:
    server.server.models = ("other-model",)
    assert "other-model" in client_of(alice).post(page_of(live, "test/"), follow=True).text


def test_a_server_error_is_reported(
    client_of: ClientOf, alice: User, live: Endpoint, server: ScriptedJudge
) -> None:
    server.server.script = lambda _: refusal(403, "not for you")
    assert "not for you" in client_of(alice).post(page_of(live, "test/"), follow=True).text


def test_a_key_that_cannot_be_decrypted_is_reported(
    client_of: ClientOf, alice: User, endpoint: Endpoint
) -> None:
    Endpoint.objects.update(key_encrypted="gibberish")
    assert "be decrypted" in client_of(alice).post(page_of(endpoint, "test/"), follow=True).text


def test_a_new_key_makes_an_old_test_void(client_of: ClientOf, adam: User, endpoint: Endpoint) -> None:
    Endpoint.objects.update(probe={"ok": True, "refuses": []}, rejected_params=["stream"])
    client_of(adam).post(page_of(endpoint, "edit/"), {**FORM, "key": "another"})
    endpoint.refresh_from_db()
    assert (endpoint.probe, endpoint.rejected_params) == ({}, ["stream"])


def test_saving_can_test_at_once(
    client_of: ClientOf, adam: User, server: ScriptedJudge, project: Project
) -> None:
    page = client_of(adam).post(
        ENDPOINTS + "new/", {**FORM, "url": server.url, "key": KEY, "test": "1"}, follow=True
    )
    assert "Connected" in page.text


UNREACHABLE = {**FORM, "test": "1", "connect_seconds": "1"}


def test_an_endpoint_whose_first_test_fails_is_kept_as_a_draft(
    client_of: ClientOf, adam: User, project: Project
) -> None:
    client = client_of(adam)
    page = client.post(ENDPOINTS + "new/", UNREACHABLE, follow=True)
    made = Endpoint.objects.get()
    assert made.draft
    assert "Use anyway" in page.text
    assert not endpoints_of(project).exists()
    assert page_of(made) in client.get(ENDPOINTS).text


@pytest.mark.parametrize(("what", "sent"), [("edit/", FORM), ("publish/", {})])
def test_a_draft_is_used_all_the_same_where_its_administrator_says_so(
    what: str, sent: dict[str, str], client_of: ClientOf, adam: User, project: Project
) -> None:
    client_of(adam).post(ENDPOINTS + "new/", UNREACHABLE)
    client_of(adam).post(page_of(Endpoint.objects.get(), what), sent)
    assert list(endpoints_of(project)) == [Endpoint.objects.get()]


def test_a_draft_whose_test_succeeds_is_none_any_more(
    client_of: ClientOf, adam: User, project: Project, server: ScriptedJudge
) -> None:
    client_of(adam).post(ENDPOINTS + "new/", UNREACHABLE)
    client_of(adam).post(
        page_of(Endpoint.objects.get(), "edit/"), {**UNREACHABLE, "url": server.url, "key": KEY}
    )
    assert list(endpoints_of(project)) == [Endpoint.objects.get()]


def test_an_endpoint_in_use_whose_later_test_fails_is_no_draft(
    client_of: ClientOf, adam: User, project: Project, endpoint: Endpoint
) -> None:
    client_of(adam).post(
        page_of(endpoint, "edit/"), {**UNREACHABLE, "confirm_elsewhere": "on", "remove_key": "on"}
    )
    assert list(endpoints_of(project)) == [endpoint]


def test_parameters_that_are_nested_too_deeply_are_an_error_of_the_field() -> None:
    with pytest.raises(ValidationError, match="nested too deeply"):
        json_object('{"a":' * 900 + "1" + "}" * 900)


on_sqlite = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="SQLite's own errors, on this database only"
)


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_test_while_the_database_is_locked_is_answered_with_a_sentence(
    client_of: ClientOf, alice: User, live: Endpoint
) -> None:
    visitor = client_of(alice)
    with locked_database():
        answer = visitor.post(page_of(live, "test/"), headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "The database is busy" in answer.headers["HX-Trigger"]


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_test_on_a_full_disk_is_answered_with_a_sentence(
    client_of: ClientOf, alice: User, live: Endpoint, server: ScriptedJudge
) -> None:
    server.server.models = tuple(
        f"model-{'x' * 100}-{n}" for n in range(200)
    )  # stored with the test result: needs new database pages
    visitor = client_of(alice)
    with full_database():
        answer = visitor.post(page_of(live, "test/"), headers={"HX-Request": "true"})
    assert answer.status_code == 507
    assert "The server's disk is full" in answer.headers["HX-Trigger"]
    assert visitor.post(page_of(live, "test/"), follow=True).status_code == 200


def typed(server: ScriptedJudge, **more: str) -> dict[str, str]:
    return FORM | {"url": server.url, "key": KEY, "name": ""} | more


def test_what_is_typed_is_tested_before_it_is_saved(
    adam: User, server: ScriptedJudge, client_of: ClientOf
) -> None:
    page = client_of(adam).post(ENDPOINTS + "try/", typed(server))
    assert "Connected" in page.text
    assert len(server.requests) > 0
    assert not Endpoint.objects.exists()


def test_a_test_before_saving_counts_for_what_is_saved(
    adam: User, server: ScriptedJudge, client_of: ClientOf
) -> None:
    client, values = client_of(adam), typed(server)
    client.post(ENDPOINTS + "try/", values)
    client.post(ENDPOINTS + "new/", values)
    saved = Endpoint.objects.get(model=values["model"])
    assert (saved.works, saved.draft) == (True, False)
    assert saved.probed_at is not None


@pytest.mark.parametrize(
    "changed", [{"key": "another-key-0815"}, {"model": "another"}, {"params": '{"seed": 1}'}]
)
def test_a_test_of_other_values_does_not_count(
    changed: dict[str, str], adam: User, server: ScriptedJudge, client_of: ClientOf
) -> None:
    client = client_of(adam)
    client.post(ENDPOINTS + "try/", typed(server))
    client.post(ENDPOINTS + "new/", typed(server, **changed))
    assert Endpoint.objects.get().probed_at is None


def test_the_session_holds_no_secret_of_a_test(
    adam: User, server: ScriptedJudge, client_of: ClientOf
) -> None:
    client = client_of(adam)
    client.post(ENDPOINTS + "try/", typed(server))
    assert KEY not in str(dict(client.session))


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("en", ("Volcengine Ark", "Hunyuan", "Zhipu", "Qwen (DashScope)", "llama.cpp")),
        ("zh-hans", ("火山方舟", "腾讯混元", "智谱", "通义千问（阿里云百炼）", "llama.cpp")),
    ],
)
def test_the_servers_of_both_platforms_are_offered_by_name(
    language: str, names: tuple[str, ...], adam: User, client_of: ClientOf, project: Project
) -> None:
    page = client_of(adam).get(ENDPOINTS + "new/", headers={"Accept-Language": language}).text
    assert [name for name in names if f">{name}</button>" not in page] == []


def test_a_preset_chosen_for_an_endpoint_with_a_key_asks_for_the_key_again(
    adam: User, client_of: ClientOf, endpoint: Endpoint
) -> None:
    preset, client = next(preset for preset in PRESETS if preset.name == "Anthropic"), client_of(adam)
    assert f'data-with="{preset.url}"' in client.get(page_of(endpoint, "edit/")).text
    chosen = {"url": preset.url, "protocol": preset.protocol}
    page = client.post(page_of(endpoint, "edit/"), {**FORM, **chosen})
    assert "key" in page.context["form"].errors


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_leads_to_the_calls_of_its_protocol(preset: Preset) -> None:
    address = preset.url if preset.protocol != "azure" else f"{preset.url}/openai/deployments/m"
    assert PROTOCOLS[preset.protocol].url(preset.url, {"model": "m"}).startswith(f"{address}/")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_endpoint_is_tested_in_its_protocol(
    protocol: str, adam: User, server: ScriptedJudge, client_of: ClientOf, project: Project
) -> None:
    client_of(adam).post(ENDPOINTS + "new/", typed(server, protocol=protocol, test="1"))
    endpoint = Endpoint.objects.get(project=project)
    assert (endpoint.protocol, endpoint.works, endpoint.draft) == (protocol, True, False)


def test_another_protocol_discards_what_the_last_test_found(
    adam: User, server: ScriptedJudge, client_of: ClientOf, project: Project
) -> None:
    client = client_of(adam)
    client.post(ENDPOINTS + "new/", typed(server, test="1"))
    endpoint = Endpoint.objects.get(project=project)
    client.post(f"{ENDPOINTS}{endpoint.pk}/edit/", typed(server, protocol="anthropic"))
    endpoint.refresh_from_db()
    assert (endpoint.protocol, endpoint.probe, endpoint.structured) == ("anthropic", {}, "")


def test_the_address_of_the_calls_follows_the_protocol(adam: User, client_of: ClientOf) -> None:
    typed_address = {"url": "https://api.example", "protocol": "anthropic", "model": "m"}
    page = client_of(adam).get(ENDPOINTS + "address/", typed_address)
    assert "https://api.example/v1/messages" in page.text


def test_the_form_says_what_of_a_preset_was_not_checked(adam: User, client_of: ClientOf) -> None:
    page = client_of(adam).get(ENDPOINTS + "new/").text
    for preset in PRESETS:
        row = page.partition(f'<th scope="row">{preset.label}')[2].partition("</tr>")[0]
        assert preset.protocol_name in row
        assert (preset.source or "not checked") in row
    assert "2026-11-27" in page


CLAUDE = {"url": "https://api.anthropic.com/v1", "protocol": "anthropic", "model": "claude-haiku-4-5"}
UNPRICED = {"input_price": "", "currency": ""}


@pytest.mark.parametrize(
    ("entered", "stored"),
    [
        ({}, ["1", "5", "USD"]),
        ({"model": "claude-of-tomorrow"}, [None, None, ""]),
        ({"url": "https://proxy.example/v1"}, [None, None, ""]),
        ({"input_price": "2", "currency": "eur"}, ["2", None, "EUR"]),
    ],
)
def test_a_new_endpoint_starts_with_the_list_price_of_its_model(
    entered: dict[str, str], stored: list[str | None], adam: User, server: ScriptedJudge, client_of: ClientOf,
    project: Project,
) -> None:  # fmt: skip
    client_of(adam).post(ENDPOINTS + "new/", typed(server, **(CLAUDE | UNPRICED | entered)))
    endpoint = Endpoint.objects.get(project=project)
    prices = [price and f"{price.normalize():f}" for price in (endpoint.input_price, endpoint.output_price)]
    assert [*prices, endpoint.currency] == stored
    assert (endpoint.priced_on == date(2026, 6, 24)) == (stored[2] == "USD")


def test_a_list_price_is_shown_with_its_date_before_it_is_stored(adam: User, client_of: ClientOf) -> None:
    page = client_of(adam).get(ENDPOINTS + "address/", CLAUDE).text
    assert "List price of Anthropic, 2026-06-24: 1 USD per million input tokens, 5 USD" in page
    assert "List price" not in client_of(adam).get(ENDPOINTS + "address/", CLAUDE | {"model": "m"}).text


def test_a_price_that_was_removed_stays_unknown(
    adam: User, server: ScriptedJudge, client_of: ClientOf, project: Project
) -> None:
    client = client_of(adam)
    client.post(ENDPOINTS + "new/", typed(server, **CLAUDE, **UNPRICED))
    endpoint = Endpoint.objects.get(project=project)
    client.post(f"{ENDPOINTS}{endpoint.pk}/edit/", typed(server, **CLAUDE, **UNPRICED))
    endpoint.refresh_from_db()
    assert (endpoint.is_priced, endpoint.priced_on) == (False, None)


def test_models_are_loaded_before_one_is_named(
    adam: User, server: ScriptedJudge, client_of: ClientOf
) -> None:
    page = client_of(adam).post(ENDPOINTS + "try/", typed(server, model="", load="1"))
    assert "model loaded" in page.text
    assert '<datalist id="models" hx-swap-oob="true">' in page.text
    assert 'data-fill="#id_model"' in page.text


def test_a_trial_uses_the_stored_key_and_keeps_what_is_stored(
    adam: User, live: Endpoint, server: ScriptedJudge, client_of: ClientOf
) -> None:
    data = typed(server, key="", endpoint=str(live.pk), model="another")
    assert "Connected" in client_of(adam).post(ENDPOINTS + "try/", data).text
    live.refresh_from_db()
    assert (live.model, live.probe) == ("scripted", {})


def test_a_stored_key_is_not_sent_to_another_server(
    adam: User, live: Endpoint, server: ScriptedJudge, client_of: ClientOf
) -> None:
    data = FORM | {"endpoint": str(live.pk), "url": "http://127.0.0.1:1/v1"}
    assert "Enter this again" in client_of(adam).post(ENDPOINTS + "try/", data).text
    assert not server.requests


def test_a_trial_of_an_unfinished_form_says_what_is_missing(adam: User, client_of: ClientOf) -> None:
    page = client_of(adam).post(ENDPOINTS + "try/", FORM | {"url": ""})
    assert "Address: This field is required." in page.text


def test_an_endpoint_without_a_name_is_called_by_its_model(adam: User, client_of: ClientOf) -> None:
    client_of(adam).post(ENDPOINTS + "new/", FORM | {"name": ""})
    assert Endpoint.objects.get().name == FORM["model"]
