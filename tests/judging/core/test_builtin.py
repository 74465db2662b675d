import re
from urllib.parse import urlencode

import pytest

from judging.core.answer_format import answer_format
from judging.core.builtin import BUILTINS, NAMES, builtin
from judging.core.gallery import start_of
from judging.core.injection_check import holds_verdict
from judging.core.lint import says_how_to_answer
from judging.core.metric_definition import JudgeModel, Label, MetricDefinition
from judging.core.reading.reader import read_reply
from tests.judging.core.builtin_prompts import CRITERIA, ENVIRONMENT, names_of, rendered

OWN_FORM = ("checklist",)  # a template for one criterion or all at once, which says itself how to answer
FORMATTED = [name for name in NAMES if BUILTINS[name].kind not in OWN_FORM]


def test_each_is_there_in_both_languages() -> None:
    stems = [{name.split(".")[0] for name in NAMES if name.endswith(language)} for language in (".zh", ".en")]
    assert stems[0] == stems[1]


@pytest.mark.parametrize("name", FORMATTED)
def test_the_way_to_answer_is_made_from_the_metric_s_kind(name: str) -> None:
    assert "{{ answer_format }}" in BUILTINS[name].source


@pytest.mark.parametrize("name", NAMES)
def test_every_template_asks_for_a_form_that_is_read(name: str) -> None:
    assert says_how_to_answer(BUILTINS[name].source)


@pytest.mark.parametrize("name", FORMATTED)
def test_an_answer_in_the_form_that_is_asked_for_is_read(name: str) -> None:
    metric = MetricDefinition(
        name="m", gives=BUILTINS[name].gives, labels=(Label(label="good"), Label(label="bad"))
    )
    last = answer_format(metric, BUILTINS[name].language).splitlines()[-1].split("]]")[0] + "]]"
    gives = metric.reading_of(JudgeModel(name="j", template=""))
    assert read_reply(f"Some reasons.\n\n{last.replace('[[n]]', '[[3]]')}", gives).value is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_blank_stands_between_chinese_and_a_number(name: str) -> None:
    assert re.findall(r"[\u4e00-\u9fff]\d|\d[\u4e00-\u9fff]", rendered(name, content="")) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_row_with_nothing_but_a_question_renders(name: str) -> None:
    text = rendered(name, content="")
    assert "the question" in text
    assert "None" not in text


@pytest.mark.parametrize("name", names_of("reference", "comparison"))
def test_the_reference_is_the_uploaded_one_or_else_the_last_message(name: str) -> None:
    assert "uploaded" in rendered(name, ref_answer="uploaded", gt="last")
    assert "last" in rendered(name, gt="last")


@pytest.mark.parametrize("field", ["standard", "标准 答案"])
@pytest.mark.parametrize("name", names_of("reference", "comparison"))
def test_the_reference_may_be_another_field(name: str, field: str) -> None:
    start = start_of(f"{name}:{urlencode({'reference': field})}")
    assert start is not None
    template = start.definition.judges[0].template
    assert "other" in rendered(name, source=template, **{field: "other"}, ref_answer="uploaded")
    text = rendered(name, source=template, ref_answer="uploaded", gt="last")
    assert "uploaded" not in text
    assert "last" in text


@pytest.mark.parametrize("name", names_of("reference", "comparison"))
def test_without_a_reference_no_verdict_is_asked_for(name: str) -> None:
    assert "[[" not in rendered(name)


@pytest.mark.parametrize("name", names_of("reference", "comparison"))
@pytest.mark.parametrize(("reference", "shown"), [(0, "\n0\n"), (False, "\nfalse\n"), (0.0, "\n0.0\n")])
def test_zero_and_false_are_references(name: str, reference: object, shown: str) -> None:
    text = rendered(name, ref_answer=reference, gt="last")
    assert shown in text
    assert "last" not in text


@pytest.mark.parametrize("name", names_of("reference", "comparison"))
def test_a_reference_that_is_no_text_is_shown_as_json(name: str) -> None:
    text = rendered(name, ref_answer={"city": "Paris", "true": True, "none": None})
    assert '\n{"city": "Paris", "none": null, "true": true}\n' in text


@pytest.mark.parametrize("name", names_of("reference", "comparison"))
@pytest.mark.parametrize("blank", ["", " \n", "\u3000"])
def test_a_blank_reference_is_none(name: str, blank: str) -> None:
    assert "last" in rendered(name, ref_answer=blank, gt="last")
    assert "[[" not in rendered(name, ref_answer=blank, gt=blank)


@pytest.mark.parametrize("name", names_of("score", "reference"))
def test_a_scoring_prompt_asks_for_a_number_on_the_scale(name: str) -> None:
    text = rendered(name, ref_answer="r", max_score=5)
    assert ("评分:[[n]]" if name.endswith(".zh") else "Score: [[n]]") in text
    assert (" 1（" in text and "到 5（" in text) or ("from 1 (" in text and "to 5 (" in text)


@pytest.mark.parametrize("name", names_of("comparison", "pair"))
def test_a_comparison_asks_for_one_of_five_verdicts(name: str) -> None:
    text = rendered(name, ref_answer="r")
    assert all(f"[[{verdict}]]" in text for verdict in ("A>>B", "A>B", "A=B", "B>A", "B>>A"))


@pytest.mark.parametrize("name", names_of("comparison"))
def test_the_reference_is_a_and_the_response_b(name: str) -> None:
    text = rendered(name, "response", ref_answer="ref")
    assert text.index("\nref\n") < text.index("\nresponse\n")


@pytest.mark.parametrize("name", NAMES)
def test_the_conversation_is_shown_only_in_several_turns(name: str) -> None:
    assert ("[USER] hello" in rendered(name, history="[USER] hello")) == name.startswith("multi_turn")


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_between_fences(name: str) -> None:
    before, after = rendered(name, ref_answer="r").split("the answer\n-----")
    assert before.endswith("-----\n")
    assert "ENDS" in after or "结束" in after


@pytest.mark.parametrize("name", names_of("score", "reference"))
def test_the_prompt_itself_holds_no_number_as_verdict(name: str) -> None:
    assert not holds_verdict(rendered(name, ref_answer="r"))


@pytest.mark.parametrize("name", names_of("pair"))
def test_two_candidates_answers_are_shown_without_a_model_s_name(name: str) -> None:
    text = rendered(name, "first")
    assert text.index("\nfirst\n") < text.index("\nthe other\n")
    assert "model" not in builtin(name).source


@pytest.mark.parametrize("name", names_of("pair"))
def test_a_pair_is_compared_by_the_reference_where_the_template_shows_it(name: str) -> None:
    assert ("uploaded" in rendered(name, ref_answer="uploaded")) == name.startswith("reference")


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        builtin("nothing.en")


@pytest.mark.parametrize("name", names_of("checklist"))
def test_a_checklist_asks_about_one_criterion_or_all_by_number(name: str) -> None:
    one = ENVIRONMENT.from_string(builtin(name).source).render(
        data={"question": "q", "history": None}, response={"content": "a"}, criterion=CRITERIA[0]
    )
    every = rendered(name)
    assert ("names a dose" in one, '{"criteria"' in one) == (True, False)
    assert ("1. names a dose\n" in every, '{"criteria": [{"id": "1"' in every) == (True, True)
