"""Live preview and trial calls in the metric editor, with a real row, sandbox and server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Answer, ScriptedJudge, refusal
from judging.core.prompts import estimated_tokens
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from tests.conftest import ClientOf
from tests.judging.metrics.conftest import KEY, form_of, imported

METRICS = "/p/physics/metrics/"


class Typist:
    """Alice's session in the metric editor."""

    def __init__(self, client_of: ClientOf, alice: User, metric: Metric) -> None:
        self.client, self.metric = client_of(alice), metric

    def preview(self, template: str | None = None, **more: object) -> str:
        template_typed = {} if template is None else {"judge-0-template": template}
        typed = form_of(self.metric, **template_typed, **more)
        page = self.client.post(METRICS + "preview/", typed, headers={"HX-Request": "true"})
        assert page.status_code == 200
        return page.text

    def tries(self, template: str | None = None, **more: object) -> list[dict[str, Any]]:
        template_typed = {} if template is None else {"judge-0-template": template}
        answer = self.client.post(METRICS + "try/", form_of(self.metric, **template_typed, **more))
        body = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
        assert KEY.encode() not in body
        return [json.loads(line) for line in body.splitlines() if line]


@pytest.fixture
def typist(client_of: ClientOf, alice: User, metric: Metric, version: Version) -> Typist:
    return Typist(client_of, alice, metric)


def test_the_page_shows_the_first_row_s_prompt_without_scripts(typist: Typist) -> None:
    page = typist.client.get(f"{METRICS}{typist.metric.pk}/")
    assert "What is 1+1?" in page.text
    assert "ant says 1" in page.text


def test_what_was_put_in_is_marked_with_where_it_came_from(typist: Typist) -> None:
    shown = typist.preview("Q: {{ data.question }}")
    assert '<mark class="put-in" title="data.question&nbsp;· line 1">What is 1+1?</mark>' in shown
    assert "<html" not in shown


def test_texts_of_a_row_are_escaped(typist: Typist) -> None:
    shown = typist.preview("{{ data.question }}", row_line="2")
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; 你好" in shown


def test_an_undefined_name_is_named_with_its_line(typist: Typist) -> None:
    shown = typist.preview("one\n{{ data.nothing }}")
    assert '<span class="missing" title="data.nothing&nbsp;· line 2">data.nothing</span>' in shown
    assert 'data-goto="2"' in shown


def test_a_name_without_a_value_is_named(typist: Typist) -> None:
    shown = typist.preview("{{ data.ref_answer }}", row_line="2")
    assert "the prompt contains “None”" in shown
    assert "data-none" in shown


def test_a_syntax_error_is_reported_with_its_line(typist: Typist) -> None:
    shown = typist.preview("fine\n{% if %}")
    assert "The template renders an empty prompt" in shown
    assert "line 2" in shown


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ 'x' * 10**10 }}",
        "{% if false %}{{ 'a' * 10**9 }}{% endif %}{% for i in range(10**9) %}x{% endfor %}",
        "{{ ''.__class__.__mro__ }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)
def test_a_hostile_template_ends_with_an_error(template: str, typist: Typist) -> None:
    assert "The template renders an empty prompt" in typist.preview(template)


def test_after_a_hostile_template_the_next_one_is_shown(typist: Typist) -> None:
    typist.preview("{{ 'x' * 10**10 }}")
    assert "What is 1+1?" in typist.preview("{{ data.question }}")


@pytest.mark.parametrize(
    ("line", "go", "question"),
    [
        ("1", "next", "bold"),
        ("2", "previous", "1+1"),
        ("3", "next", "3+3"),
        ("2", "", "bold"),
        ("99", "", "1+1"),
    ],
)
def test_rows_are_turned_over(line: str, go: str, question: str, typist: Typist) -> None:
    assert question in typist.preview("{{ data.question }}", row_line=line, go=go)


def test_a_random_row_is_a_row(typist: Typist) -> None:
    assert "data.question&nbsp;· line 1" in typist.preview("{{ data.question }}", go="random")


@pytest.mark.parametrize("name", ["topic", "ref_answer"])
def test_a_row_where_a_name_is_missing_is_found(name: str, typist: Typist) -> None:
    assert "bold" in typist.preview("{{ data.question }}", row_line="3", go=f"missing:{name}")


def test_that_no_row_lacks_a_name_is_reported(typist: Typist) -> None:
    assert "No row without “question” found" in typist.preview("t", go="missing:question")


def test_the_answer_is_chosen_and_its_candidate_kept_on_the_next_row(
    typist: Typist, version: Version
) -> None:
    bee = version.candidates.get(name="bee")
    shown = typist.preview("{{ response.content }}", row_response=f"{bee.pk}:1", go="next")
    assert "bee says 2" in shown


def test_names_are_offered_with_the_rows_that_have_them(typist: Typist) -> None:
    shown = typist.preview("t")
    assert 'data-insert="{{ data.topic }}"' in shown
    assert '<td class="num">2</td>' in shown


def test_preprocess_runs_before_and_shows_what_it_did(typist: Typist) -> None:
    script = "def preprocess(data, resp):\n    print('seen')\n    data['twice'] = data['question'] * 2\n    return 7\n"
    shown = typist.preview("{{ data.twice }} {{ preprocess_result }}", preprocess=script)
    assert "What is 1+1?What is 1+1?" in shown
    assert "data.twice" in shown
    assert "seen" in shown


def test_a_preprocess_that_fails_is_reported(typist: Typist) -> None:
    shown = typist.preview("t", preprocess="def preprocess(data, resp):\n    return 1 / 0\n")
    assert "preprocess failed on this row" in shown
    assert "ZeroDivisionError" in shown


@pytest.fixture
def without_answers(typist: Typist, project: Project) -> Version:
    """The newest version, which has no answers."""
    return imported(project, "asked", [{"messages": [{"role": "user", "content": "Unanswered?"}]}])


def test_the_preview_begins_with_the_newest_version_with_answers(
    typist: Typist, version: Version, without_answers: Version
) -> None:
    assert "What is 1+1?" in typist.preview("{{ data.question }}")


@pytest.mark.parametrize("address", ["new/?start=", "{}/", "rules/new/"])
def test_a_newer_version_of_the_same_data_set_without_answers_is_not_previewed(
    typist: Typist, version: Version, without_answers: Version, address: str
) -> None:
    Version.objects.filter(pk=without_answers.pk).update(dataset=version.dataset, number=2)
    page = typist.client.get(METRICS + address.format(typist.metric.pk))
    assert f'<option value="{version.pk}" selected>' in page.text
    assert f'<option value="{without_answers.pk}">' in page.text


def test_a_version_without_answers_says_so(typist: Typist, without_answers: Version) -> None:
    shown = typist.preview("{{ data.question }}", row_version=str(without_answers.pk))
    assert "Unanswered?" in shown
    assert "This version has no answers" in shown


def test_a_version_with_answers_does_not(typist: Typist, version: Version) -> None:
    assert "This version has no answers" not in typist.preview("t", row_version=str(version.pk))


def test_the_version_previewed_last_is_remembered(typist: Typist, without_answers: Version) -> None:
    typist.preview("t", row_version=str(without_answers.pk))
    page = typist.client.get(f"{METRICS}{typist.metric.pk}/")
    assert "Unanswered?" in page.text


def test_placeholders_of_other_tools_are_named_and_changed_with_one_click(typist: Typist) -> None:
    shown = typist.preview("${question}\n{topic} {{ response.content }}")
    assert "“${question}” stays as it is in the prompt. Write “{{ data.question }}”." in shown
    assert 'data-source="{{ data.question }}\n{{ data.topic }} {{ response.content }}"' in shown
    assert 'data-into="id_judge-0-template"' in shown


def test_a_name_of_other_tools_says_what_to_write_beside_a_syntax_error(typist: Typist) -> None:
    shown = typist.preview("{{output}} {% if %}")
    assert "Write “{{ response.content }}” instead of “{{output}}”." in shown
    assert "stays as it is" not in shown


def test_a_template_without_placeholders_has_nothing_to_change(typist: Typist) -> None:
    assert 'data-source="{{' not in typist.preview("{{ data.question }} {{ response.content }}")


def test_a_script_that_does_not_load_says_why_once(typist: Typist) -> None:
    shown = typist.preview("t", preprocess="def preprocess(data, response):\n    pass\n")
    assert shown.count("did you mean") == 1


def test_what_a_metric_being_written_shows_needs_no_stored_metric(
    typist: Typist, client_of: ClientOf, alice: User
) -> None:
    typed = form_of(None, **{"judge-0-template": "{{ data.question }}"})
    assert "What is 1+1?" in typist.client.post(METRICS + "preview/", typed).text


def test_without_a_data_set_there_is_an_invitation(client_of: ClientOf, alice: User, metric: Metric) -> None:
    assert "No row to preview on" in Typist(client_of, alice, metric).preview("t")


def test_a_trial_streams_the_reply_and_ends_with_the_score(typist: Typist, server: ScriptedJudge) -> None:
    server.server.script = lambda _: Answer(content="Well. Score: [[7]]", reasoning="let me think")
    events = typist.tries("Judge {{ response.content }}")
    assert "".join(event["text"] for event in events if event["kind"] == "content") == "Well. Score: [[7]]"
    assert '<span class="score">7</span>' in events[-1]["html"]
    assert "let me think" in events[-1]["html"]
    assert server.requests[0].body["messages"][0]["content"] == "Judge ant says 1"


def test_a_trial_says_what_it_cost_by_the_endpoints_prices(
    typist: Typist, live: Endpoint, server: ScriptedJudge
) -> None:
    Endpoint.objects.filter(pk=live.pk).update(input_price=2000, output_price=0, currency="CNY")
    server.server.script = lambda _: Answer(content="[[7]]", tokens=(5, 3))
    assert "0.01 CNY" in typist.tries("t")[-1]["html"]


def test_a_trial_stores_nothing(typist: Typist) -> None:
    typist.tries("new text")
    assert newest_version(typist.metric).number == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(content="no idea"), "Ask for a fixed output format in the template"),
        (Answer(content="no", finish_reason="length"), "Raise max_tokens in the generation parameters"),
        (Answer(content="[[99]]"), "outside the scale"),
        (refusal(401, "no"), "Invalid API key"),
        (refusal(400, "maximum context length is 10"), "exceeds the model"),
    ],
)
def test_a_trial_says_why_there_is_no_score(
    answer: Answer, says: str, typist: Typist, server: ScriptedJudge
) -> None:
    server.server.script = lambda _: answer
    assert says in typist.tries("t")[-1]["html"]


def test_a_regular_expression_is_searched_for_in_the_sandbox(typist: Typist, server: ScriptedJudge) -> None:
    more = {"judge-0-parse": "regex", "judge-0-pattern": r"mark (\d+)"}
    server.server.script = lambda _: "mark 4"
    assert '<span class="score">4</span>' in typist.tries("t", **more)[-1]["html"]


def test_a_hostile_regular_expression_ends(typist: Typist, server: ScriptedJudge) -> None:
    more = {"judge-0-parse": "regex", "judge-0-pattern": "(a+)+$"}
    server.server.script = lambda _: "a" * 40 + "!"
    assert "timed out" in typist.tries("t", **more)[-1]["html"]


def test_the_typed_parameters_are_sent(typist: Typist, server: ScriptedJudge) -> None:
    typist.tries("t", **{"judge-0-params": '{"temperature": 0.3}', "judge-0-system_prompt": "Be strict."})
    assert server.requests[0].body["temperature"] == 0.3
    assert server.requests[0].body["messages"][0] == {"role": "system", "content": "Be strict."}


@pytest.mark.parametrize(
    "change", [{"judge-0-endpoint": ""}, {"judge-0-params": "{"}, {"judge-0-template": "{% if %}"}]
)
def test_what_cannot_be_asked_is_reported_and_not_asked(
    change: dict[str, str], typist: Typist, server: ScriptedJudge
) -> None:
    (event,) = typist.tries(**change)
    assert event["kind"] == "end"
    assert server.requests == []


def test_without_scripts_a_trial_is_a_page(typist: Typist) -> None:
    page = typist.client.post(f"{METRICS}{typist.metric.pk}/", form_of(typist.metric, **{"try": "1"}))
    assert '<span class="score">7</span>' in page.text


@pytest.mark.parametrize(
    ("text", "least", "most"), [("", 0, 0), ("a", 1, 1), ("word " * 100, 100, 150), ("你好" * 100, 120, 200)]
)
def test_tokens_are_guessed(text: str, least: int, most: int) -> None:
    assert least <= estimated_tokens(text) <= most
