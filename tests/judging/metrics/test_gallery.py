"""The gallery's pages: choosing a metric, its columns guessed, and used in a new run."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.core.gallery import gallery
from judging.core.metric_definition import MetricDefinition
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.metrics.conftest import imported

NEW = "/p/physics/metrics/new/"


def card(name: str) -> str:
    return f"/p/physics/metrics/gallery/{name}/"


def row(question: str, answer: str, **fields: Any) -> dict[str, Any]:
    outputs = [{"model_name": "ant", "responses": [{"content": answer}]}]
    return {"messages": [{"role": "user", "content": question}], "model_outputs": outputs, **fields}


@pytest.fixture
def retrieved(project: Project) -> Version:
    """A RAG data set whose context is in a column of another name."""
    return imported(project, "RAG", [row("Open when?", "At 9.", passages=["We open at 9."], topic="hours")])


@pytest.fixture
def client(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def saved() -> MetricDefinition:
    return MetricDefinition.from_json(newest_version(Metric.objects.get()).definition)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("consistent_turns", ["I am a vegetarian.", "How about a risotto?", "Something quicker?"]),
        ("code_tests", ["Tests (Python)", "def add(a, b):\n    return a + b", "== 4\nassert twice("]),
        ("faithful", ["Retrieved context"]),
        ("correct", ["Reference"]),
        ("multi_turn_checklist", ["Rubric"]),
        ("reference_pair", ['<div class="small-text quiet-text">B</div>']),
    ],
)
def test_the_examples_of_a_card_are_shown_whole(
    name: str, texts: list[str], client: Client, project: Project
) -> None:
    examples = unescape(client.get(card(name)).text.partition("<h2>Examples</h2>")[2])
    assert [text for text in texts if text not in examples] == []


def test_the_gallery_shows_all_its_metrics(client: Client, project: Project) -> None:
    page = client.get(NEW).text
    assert all(card(name) in page for name in gallery())


@pytest.mark.parametrize(
    ("query", "there", "gone"),
    [
        ({"task": "rag"}, "faithful", "tone"),
        ({"gives": "candidates"}, "helpful_pair", "faithful"),
        ({"q": "planted"}, "planted_instruction", "faithful"),
        ({"task": "rag", "gives": "score"}, "context_relevant", "faithful"),
    ],
)
def test_the_gallery_is_filtered(
    query: dict[str, str], there: str, gone: str, client: Client, project: Project
) -> None:
    page = client.get(NEW, query).text
    assert card(there) in page
    assert card(gone) not in page


def test_a_search_without_a_match_says_so(client: Client, project: Project) -> None:
    assert "No metric matches" in client.get(NEW, {"q": "nonsense"}).text


def test_the_column_is_guessed_and_the_prompt_shown_on_a_row(
    client: Client, retrieved: Version, live: Endpoint
) -> None:
    page = client.get(card("faithful"))
    assert page.context["page"].mapping == {"context": "passages"}
    assert "We open at 9." in page.context["prompt"].text


def test_another_column_may_be_chosen(client: Client, retrieved: Version) -> None:
    page = client.post(card("faithful"), {"field-context": "topic"})
    assert "CONTEXT BEGINS -----\nhours\n" in page.context["prompt"].text
    assert not Metric.objects.exists()


def test_the_prompt_is_in_the_chosen_language(client: Client, retrieved: Version) -> None:
    assert "你是一名公正的评判者" in client.post(card("faithful"), {"in": "zh"}).context["prompt"].text


def test_a_metric_is_used_in_a_new_run(client: Client, retrieved: Version, live: Endpoint) -> None:
    to = client.post(card("faithful"), {"use": "1", "endpoint": live.pk, "in": "en"})
    metric = saved()
    assert metric.judges[0].endpoint == live.pk
    assert "data.passages" in metric.judges[0].template
    form = client.get(to["Location"])
    version = newest_version(Metric.objects.get())
    assert re.search(rf'name="metrics" value="{version.pk}"[^>]* checked', form.text)


def test_using_it_twice_makes_one_metric(client: Client, retrieved: Version, live: Endpoint) -> None:
    first, second = (client.post(card("faithful"), {"use": "1", "endpoint": live.pk}) for _ in range(2))
    assert first["Location"] == second["Location"]
    assert Metric.objects.count() == 1


def test_a_taken_name_gets_a_number(
    client: Client, retrieved: Version, live: Endpoint, project: Project
) -> None:
    for column in ("passages", "topic"):
        client.post(card("faithful"), {"use": "1", "endpoint": live.pk, "field-context": column})
    names = Metric.objects.order_by("pk").values_list("name", flat=True)
    assert list(names) == ["Faithful to the context", "Faithful to the context (2)"]


def test_without_the_column_that_it_needs_nothing_is_saved(
    client: Client, version: Version, live: Endpoint
) -> None:
    page = client.post(card("faithful"), {"use": "1", "endpoint": live.pk})
    assert page.context["page"].missing == ["context"]
    assert "No column has one of the usual names" in page.text
    assert not Metric.objects.exists()


def test_without_an_endpoint_nothing_is_saved(client: Client, retrieved: Version) -> None:
    page = client.post(card("faithful"), {"use": "1"})
    assert "This project has no judge endpoint." in page.text
    assert not Metric.objects.exists()


def test_an_endpoint_of_another_project_is_not_taken(
    client: Client, retrieved: Version, live: Endpoint, charlie: User
) -> None:
    elsewhere = Project.objects.get(slug="elsewhere")
    foreign = Endpoint.objects.create(project=elsewhere, name="X", url="http://127.0.0.1:9/v1", model="m")
    page = client.post(card("faithful"), {"use": "1", "endpoint": foreign.pk})
    assert page.status_code == 200
    assert not Metric.objects.exists()


def test_it_can_be_edited_first(client: Client, retrieved: Version) -> None:
    to = client.post(card("faithful"), {"edit": "1", "in": "en"})
    editor = client.get(to["Location"])
    assert "data.passages" in editor.context["form"].judges[0]["template"].value()
    assert editor.context["form"].metric["name"].value() == "Faithful to the context"


def test_a_template_takes_its_reference_from_another_column(client: Client, project: Project) -> None:
    imported(project, "rows", [row("Why?", "So.", standard="So.")])
    to = client.post(card("single_turn_reference"), {"edit": "1", "field-reference": "standard", "in": "en"})
    template = client.get(to["Location"]).context["form"].judges[0]["template"].value()
    assert "data.standard" in template


def test_a_category_starts_with_labels_of_its_own(client: Client, version: Version) -> None:
    page = client.get(card("single_turn_category"))
    assert 'name="use"' in page.text
    assert "partly answered" in page.text


def test_a_metric_without_a_judge_shows_what_it_returns_and_is_used(client: Client, project: Project) -> None:
    imported(project, "rows", [row("1+1?", "2", ref_answer="2")])
    page = client.get(card("exact_match"))
    assert page.context["page"].script_run.outcome.result is True
    client.post(card("exact_match"), {"use": "1"})
    assert saved().judges == ()
    assert client.get(f"/p/physics/metrics/{Metric.objects.get().pk}/").status_code == 200


def test_without_a_data_set_the_template_is_shown(client: Client, project: Project) -> None:
    page = client.get(card("correct"))
    assert "{{ data.question }}" in page.context["page"].definition.judges[0].template
    assert "no data set with usable rows" in page.text


def test_a_card_that_does_not_exist_is_not_found(client: Client, project: Project) -> None:
    assert client.get(card("nothing")).status_code == 404


def test_the_first_run_of_a_new_project_starts_within_eight_clicks(
    client: Client, retrieved: Version, live: Endpoint
) -> None:
    """Choosing the file and uploading it are the first two."""
    clicks = 2
    form = client.get(f"/p/physics/runs/new/?version={retrieved.pk}")  # 3: Use in a run
    assert f'href="{NEW}"' in form.text
    assert card("faithful") in client.get(NEW).text  # 4: Choose a metric
    page = client.get(card("faithful"))  # 5: the metric
    chosen = {
        "use": "1",
        "endpoint": live.pk,
        **{f"field-{k}": v for k, v in page.context["page"].mapping.items()},
    }
    form = client.get(client.post(card("faithful"), chosen)["Location"])  # 6: Use it in a new run
    fields = {field.html_name: field.value() for field in form.context["form"] if field.value() is not None}
    fields |= {"version": retrieved.pk}
    client.post("/p/physics/runs/new/", fields)  # 7: Start run
    assert clicks + 5 <= 8
    assert Run.objects.get().version == retrieved


def test_the_chosen_language_stays_chosen(client: Client, retrieved: Version) -> None:
    page = client.post(card("faithful"), {"in": "zh"}).text
    assert '<option value="zh" selected' in page


def test_a_metric_of_the_project_is_saved_to_its_gallery_and_used_on_other_columns(
    client: Client, retrieved: Version, live: Endpoint, project: Project
) -> None:
    client.post(card("faithful"), {"use": "1", "endpoint": live.pk, "in": "en"})
    metric = Metric.objects.get()
    keep = f"/p/physics/metrics/{metric.pk}/gallery/"
    assert "Save to the gallery" in client.get(f"/p/physics/metrics/{metric.pk}/").text
    client.post(keep, {"sentence": "For support tickets."})
    entry = metric.gallery_entry
    listed = client.get(NEW).text
    assert "For support tickets." in listed
    assert card(f"own-{entry.pk}") in listed
    imported(project, "Others", [row("Open when?", "At 9.", topic="hours")])
    page = client.get(card(f"own-{entry.pk}")).context["page"]
    assert page.missing == ["passages"]
    client.post(card(f"own-{entry.pk}"), {"use": "1", "endpoint": live.pk, "field-passages": "topic"})
    made = MetricDefinition.from_json(newest_version(Metric.objects.latest("pk")).definition)
    assert "data.topic" in made.judges[0].template
    client.post(f"{keep}remove/")
    assert card(f"own-{entry.pk}") not in client.get(NEW).text
    assert client.get(card(f"own-{entry.pk}")).status_code == 404


def test_a_metric_of_another_project_is_not_offered(
    client: Client, version: Version, live: Endpoint, client_of: ClientOf, charlie: User
) -> None:
    client.post(card("concise"), {"use": "1", "endpoint": live.pk})
    client.post(f"/p/physics/metrics/{Metric.objects.get().pk}/gallery/", {"sentence": ""})
    entry = Metric.objects.get().gallery_entry
    elsewhere = client_of(charlie)
    assert elsewhere.get(f"/p/elsewhere/metrics/gallery/own-{entry.pk}/").status_code == 404
    assert f"own-{entry.pk}" not in elsewhere.get("/p/elsewhere/metrics/new/").text


def test_a_metric_that_compares_with_a_reference_needs_one(
    client: Client, retrieved: Version, live: Endpoint
) -> None:
    page = client.post(card("correct"), {"use": "1", "endpoint": live.pk})
    assert page.context["page"].missing == ["reference"]
    assert not Metric.objects.exists()
    chosen = client.post(card("correct"), {"field-reference": "topic"}).context["page"]
    assert chosen.missing == []
