"""Import of human annotations from Label Studio and Argilla exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from datasets.core.imports import label_studio
from datasets.core.imports.model import Options
from tests.datasets.core.imports.reading import files, lines, taken


def annotation(*results: dict[str, Any], **changes: Any) -> dict[str, Any]:
    given = {
        **{"id": 1, "completed_by": {"email": "ann@example.org"}, "was_cancelled": False, "lead_time": 2.5},
        **{"created_at": "2026-01-01T10:00:00Z", "result": list(results)},
    }
    return given | changes


def chosen(kind: str, value: Any, name: str = "quality", to_name: str = "response") -> dict[str, Any]:
    return {
        **{"id": "x", "from_name": name, "to_name": to_name, "type": kind},
        **{"value": value, "origin": "manual"},
    }


def task(*annotations: dict[str, Any], **data: str) -> dict[str, Any]:
    given = data or {"prompt": "Why?", "response": "So.", "topic": "physics"}
    counts = {"total_annotations": len(annotations), "cancelled_annotations": 0, "total_predictions": 0}
    whole = {
        "id": 7,
        "annotations": list(annotations),
        "file_upload": "x.json",
        "drafts": [],
        "predictions": [],
    }
    return whole | {"data": given, "meta": {}, "inner_id": 1, "project": 1, "updated_by": 1, **counts}


def test_label_studio_s_task_is_a_row_and_its_annotations_are_people_s_verdicts(tmp_path: Path) -> None:
    rating, choice = chosen("rating", {"rating": 4}), chosen("choices", {"choices": ["Good"]}, "label")
    text = chosen("textarea", {"text": ["Short but right."]}, "comment")
    found = taken(tmp_path, export__json=json.dumps([task(annotation(rating, choice, text))]))
    assert found.source == "label_studio"
    assert (found.rows[0]["id"], found.rows[0]["topic"], found.answers) == (7, "physics", {"model": ["So."]})
    assert found.said("metric", "value", "rater", "reasoning", "seconds") == [
        ("quality", 4, "ann@example.org", "Short but right.", 2.5),
        ("label", "Good", "ann@example.org", "Short but right.", 2.5),
    ]


def test_a_chat_that_was_held_in_an_annotation_is_a_row_whose_last_reply_is_the_answer(
    tmp_path: Path,
) -> None:
    def spoken(role: str, content: str) -> dict[str, Any]:
        return chosen("chatmessage", {"chatmessage": {"role": role, "content": content}}, "chat", "chat")

    held = [spoken("user", "Hi"), spoken("assistant", "Hello!"), spoken("user", "Why?")]
    whole = annotation(*held, spoken("assistant", "So."), chosen("rating", {"rating": 4}, to_name="chat"))
    tasks = [task(whole, annotation(*held[:1]), scenario="a crisis"), task(scenario="nobody chatted")]
    found = taken(tmp_path, export__json=json.dumps(tasks))
    (row,) = found.rows
    assert [one["content"] for one in row["messages"]] == ["Hi", "Hello!", "Why?"]
    assert (row["scenario"], found.answers) == ("a crisis", {"model": ["So."]})
    assert found.said("metric", "value") == [("quality", 4)]
    assert found.left_out == {"no_answer": 1, "row_without_answer": 1, "no_question": 1}


def test_the_notes_name_the_fields_of_the_tasks(tmp_path: Path) -> None:
    (file,) = files(tmp_path, export__json=json.dumps([task()]))
    notes = label_studio.SOURCE.read([file], Options()).notes
    assert [(one.becomes, one.origin) for one in notes][:3] == [
        ("question", "data.prompt"),
        ("answer", "data.response"),
        ("field", "data.topic"),
    ]


def test_a_number_in_the_data_that_is_named_like_a_score_stays_a_field(tmp_path: Path) -> None:
    given = {
        **task(annotation(chosen("rating", {"rating": 4}))),
        "data": {"prompt": "Why?", "response": "So.", "score": 2},
    }
    assert taken(tmp_path, export__json=json.dumps([given])).rows[0]["score"] == 2


def test_label_studio_s_pairwise_choice_is_a_comparison(tmp_path: Path) -> None:
    pick = chosen("pairwise", {"selected": "right"}, "pw", "answer1,answer2")
    given = task(annotation(pick), prompt="Why?", answer1="So.", answer2="Because.")
    found = taken(tmp_path, export__json=json.dumps([given]))
    assert found.said("model", "other_model", "value") == [("answer1", "answer2", "B>A")]


def test_of_two_answers_a_rating_is_about_the_one_that_it_names(tmp_path: Path) -> None:
    named = chosen("rating", {"rating": 2}, "quality_b", "response_b")
    lost = chosen("rating", {"rating": 3}, "overall", "prompt")
    given = task(annotation(named, lost), prompt="Why?", response_a="So.", response_b="No.")
    found = taken(tmp_path, export__json=json.dumps([given]))
    assert found.said("model", "value") == [("response_b", 2)]
    assert found.left_out == {"answer_not_known": 1}


def test_cancelled_annotations_are_left_out_and_predictions_are_a_judge_s(tmp_path: Path) -> None:
    given = task(annotation(chosen("rating", {"rating": 1}), was_cancelled=True))
    given["predictions"] = [{"model_version": "gpt-x", "result": [chosen("rating", {"rating": 5})]}]
    found = taken(tmp_path, export__json=json.dumps([given]))
    assert found.said("judge", "rater", "value") == [("gpt-x", None, 5)]
    assert found.left_out == {"cancelled": 1}


def test_an_annotation_that_is_no_judgement_is_named(tmp_path: Path) -> None:
    span = chosen("labels", {"start": 0, "end": 2, "labels": ["X"]})
    found = taken(tmp_path, export__json=json.dumps([task(annotation(span))]))
    assert (found.verdicts, found.left_out) == ([], {"no_value": 1})


ARGILLA = {
    **{"id": "r1", "fields": {"prompt": "Why?", "response": "So."}, "metadata": {"topic": "physics"}},
    "suggestions": {"quality": {"value": 3, "score": 0.9, "agent": "gpt-x"}},
    "responses": {
        "quality": [{"value": 4, "user_id": "u1"}, {"value": 2, "user_id": "u2"}],
        "comment": [{"value": "Fine.", "user_id": "u1"}],
    },
    **{"vectors": {}, "_server_id": "5f0b6f1e-0000-0000-0000-000000000000"},
}


def test_argilla_s_record_is_a_row_and_its_responses_are_people_s_verdicts(tmp_path: Path) -> None:
    found = taken(tmp_path, records__json=json.dumps([ARGILLA]))
    assert found.source == "argilla"
    assert (found.rows[0]["topic"], found.answers) == ("physics", {"model": ["So."]})
    assert found.said("metric", "value", "rater", "judge", "reasoning") == [
        ("quality", 4, "u1", None, "Fine."),
        ("quality", 2, "u2", None, None),
        ("quality", 3, None, "gpt-x", None),
    ]


def test_argilla_s_older_records_are_read_without_drafts(tmp_path: Path) -> None:
    responses = [
        {"user_id": "u1", "status": "submitted", "values": {"label": {"value": "good"}}},
        {"user_id": "u2", "status": "discarded", "values": {}},
    ]
    given = {"fields": {"instruction": "Why?", "output": "So."}, "responses": responses, "external_id": "e1"}
    found = taken(tmp_path, records__jsonl=lines(given))
    assert (found.rows[0]["id"], found.said("metric", "value", "rater")) == ("e1", [("label", "good", "u1")])
    assert found.left_out == {"cancelled": 1}


@pytest.mark.parametrize(
    "ranks",
    [
        ["response_b", "response_a"],
        [{"value": "response_b", "rank": 1}, {"value": "response_a", "rank": 2}],
    ],
)
def test_argilla_s_ranking_of_two_answers_is_a_comparison(tmp_path: Path, ranks: list[Any]) -> None:
    given = ARGILLA | {
        "fields": {"prompt": "Why?", "response_a": "So.", "response_b": "Because."},
        "responses": {"better": [{"value": ranks, "user_id": "u1"}]},
        "suggestions": {},
    }
    found = taken(tmp_path, records__json=json.dumps([given]))
    assert found.said("model", "other_model", "value") == [("response_a", "response_b", "B>A")]


def minimal(task: int = 7, annotator: int = 1, **said: Any) -> dict[str, Any]:
    """A Label Studio JSON-MIN record with the key order of its export."""
    about = {"annotator": annotator, "annotation_id": 3, "created_at": "2026-01-01T10:00:00Z"}
    data = {"prompt": "Why?", "response": "So.", "topic": "physics", "id": task}
    return data | said | about | {"updated_at": "2026-01-01T10:00:05Z", "lead_time": 4.5}


def test_json_min_is_the_same_as_the_full_export(tmp_path: Path) -> None:
    said = {"quality": [{"rating": 4}], "label": "Good", "comment": "Short but right."}
    found = taken(tmp_path, min__json=json.dumps([minimal(**said)]))
    assert found.source == "label_studio"
    assert (found.rows[0]["id"], found.rows[0]["topic"], found.answers) == (7, "physics", {"model": ["So."]})
    assert found.said("metric", "value", "rater", "reasoning", "seconds") == [
        ("quality", 4, "annotator 1", "Short but right.", 4.5),
        ("label", "Good", "annotator 1", "Short but right.", 4.5),
    ]


def test_json_min_s_annotations_of_one_task_are_about_one_answer(tmp_path: Path) -> None:
    given = [minimal(annotator=who, quality=[{"rating": stars}]) for who, stars in [(1, 4), (2, 2), (2, 3)]]
    found = taken(tmp_path, min__json=json.dumps(given))
    assert (len(found.rows), found.answers) == (1, {"model": ["So."]})
    assert found.said("rater", "value", "repeat", "response") == [
        ("annotator 1", 4, 1, 1),
        ("annotator 2", 2, 1, 1),
        ("annotator 2", 3, 2, 1),
    ]


def test_several_choices_and_a_marked_part_of_json_min(tmp_path: Path) -> None:
    said = {"flaws": {"choices": ["Wrong", "Rude"]}, "parts": [{"start": 0, "end": 2, "labels": ["X"]}]}
    found = taken(tmp_path, min__json=json.dumps([minimal(**said)]))
    assert found.said("metric", "value") == [("flaws", "Wrong, Rude")]
    assert found.left_out == {"no_value": 1}


def test_json_min_s_pairwise_choice_is_a_comparison(tmp_path: Path) -> None:
    given = minimal(pw=[{"selected": "left"}])
    given = {"answer1": "So.", "answer2": "No.", **{k: v for k, v in given.items() if k != "response"}}
    found = taken(tmp_path, min__json=json.dumps([given]))
    assert found.said("model", "other_model", "value") == [("answer1", "answer2", "A>B")]


def test_json_min_whose_data_have_an_id_keeps_their_texts(tmp_path: Path) -> None:
    given = {"id": 7, **{k: v for k, v in minimal(quality=[{"rating": 4}]).items() if k != "id"}}
    found = taken(tmp_path, min__json=json.dumps([given]))
    assert (found.rows[0]["topic"], found.answers) == ("physics", {"model": ["So."]})
    assert found.said("metric", "value") == [("quality", 4)]


def test_json_min_s_tasks_that_nobody_annotated_are_rows(tmp_path: Path) -> None:
    bare = minimal(task=8) | {"prompt": "How?", "annotator": "", "annotation_id": None, "lead_time": None}
    found = taken(tmp_path, min__json=json.dumps([minimal(quality=[{"rating": 4}]), bare]))
    assert [row["id"] for row in found.rows] == [7, 8]
    assert (len(found.verdicts), found.left_out) == (1, {})


def test_the_notes_of_json_min_name_what_was_said(tmp_path: Path) -> None:
    said = {"quality": [{"rating": 4}], "comment": "Fine."}
    (file,) = files(tmp_path, min__json=json.dumps([minimal(**said)]))
    notes = label_studio.SOURCE.read([file], Options()).notes
    assert [(one.becomes, one.origin) for one in notes][:5] == [
        ("question", "prompt"),
        ("answer", "response"),
        ("field", "topic"),
        ("verdict", "quality"),
        ("comment", "comment"),
    ]


def test_argilla_s_flat_records_are_the_same_as_nested_ones(tmp_path: Path) -> None:
    given = {
        **{"id": "r1", "status": "completed", "_server_id": "5f0b", "prompt": "Why?", "response": "So."},
        **{"topic": "physics", "quality.responses": [4, 2], "quality.responses.users": ["u1", "u2"]},
        **{"quality.responses.status": ["submitted", "draft"], "comment.responses": ["Fine."]},
        **{"comment.responses.users": ["u1"], "comment.responses.status": ["submitted"]},
        **{"quality.suggestion": 3, "quality.suggestion.score": 0.9, "quality.suggestion.agent": "gpt-x"},
    }
    found = taken(tmp_path, records__json=json.dumps([given]))
    assert (found.source, found.left_out) == ("argilla", {"cancelled": 1})
    assert (found.rows[0]["id"], found.rows[0]["topic"], found.answers) == (
        "r1",
        "physics",
        {"model": ["So."]},
    )
    assert found.said("metric", "value", "rater", "judge", "reasoning") == [
        ("quality", 4, "u1", None, "Fine."),
        ("quality", 3, None, "gpt-x", None),
    ]


@pytest.mark.parametrize(
    "responses",
    [
        [{"user_id": "u1", "value": 4, "status": "submitted"}],
        {"user_id": ["u1"], "value": [4], "status": ["submitted"]},
    ],
)
def test_argilla_s_published_older_records_are_read(tmp_path: Path, responses: Any) -> None:
    given = {
        **{"prompt": "Why?", "response": "So.", "quality": responses, "quality-suggestion": 3},
        **{"quality-suggestion-metadata": {"type": None, "score": None, "agent": "gpt-x"}},
        **{"external_id": "e1", "metadata": '{"topic": "physics"}'},
    }
    found = taken(tmp_path, records__jsonl=lines(given))
    assert (found.source, found.rows[0]["id"], found.rows[0]["topic"]) == ("argilla", "e1", "physics")
    assert found.said("metric", "value", "rater", "judge") == [
        ("quality", 4, "u1", None),
        ("quality", 3, None, "gpt-x"),
    ]


def test_what_argilla_s_annotators_marked_in_a_text_is_named(tmp_path: Path) -> None:
    spans = [{"label": "insult", "start": 0, "end": 3, "score": 0.6}]
    given = ARGILLA | {"responses": {}, "suggestions": {"spans": {"value": spans, "agent": None}}}
    found = taken(tmp_path, records__json=json.dumps([given]))
    assert (found.verdicts, found.left_out) == ([], {"no_value": 1})


def test_argilla_s_rating_is_about_the_answer_of_its_number(tmp_path: Path) -> None:
    fields = {"input": "Why?", "generations-1": "So.", "generations-2": "No."}
    given = {
        **{"fields": fields, "metadata": {}, "responses": [], "external_id": None},
        "suggestions": [
            {"question_name": "generations-1-rating", "value": 9},
            {"question_name": "rating_2", "value": 3},
            {"question_name": "ratings-rationale", "value": "The second is curt."},
        ],
    }
    found = taken(tmp_path, records__jsonl=lines(given))
    assert found.answers == {"generations-1": ["So."], "generations-2": ["No."]}
    assert found.said("model", "metric", "value", "reasoning") == [
        ("generations-1", "generations-1-rating", 9, "The second is curt."),
        ("generations-2", "rating_2", 3, "The second is curt."),
    ]


def test_argilla_s_ranking_of_three_answers_compares_each_two(tmp_path: Path) -> None:
    ranks = [
        {"value": "response-1", "rank": 2},
        {"value": "response-2", "rank": 1},
        {"value": "response-3", "rank": 2},
    ]
    fields = {"prompt": "Why?", "response-1": "So.", "response-2": "No.", "response-3": "Hm."}
    responses = {"best": [{"value": ranks, "user_id": "u1"}]}
    given = ARGILLA | {"fields": fields, "responses": responses, "suggestions": {}}
    found = taken(tmp_path, records__json=json.dumps([given]))
    assert found.said("model", "other_model", "value") == [
        ("response-1", "response-2", "B>A"),
        ("response-1", "response-3", "A=B"),
        ("response-2", "response-3", "A>B"),
    ]
