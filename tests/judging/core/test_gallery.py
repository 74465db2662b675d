"""Every metric of the gallery renders, asks for a readable form, and gives the verdicts of its examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from datasets.core.kinds import CATEGORY, CHECKLIST, COMPARISON, PASS_FAIL
from judging.core.answer_format import Language, answer_format
from judging.core.builtin import BUILTINS
from judging.core.checklists import criterion_variables, judged, rubric_of
from judging.core.gallery import FOLDER, LANGUAGES, TASKS, Card, Example, gallery, searched, start_of
from judging.core.gallery.columns import columns_named
from judging.core.gallery.fields import FIELDS, guessed_fields, unmapped
from judging.core.lint import says_how_to_answer
from judging.core.metric_definition import MetricDefinition
from judging.core.metrics_file import read_metrics_file
from judging.core.reading.reader import read_reply
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import load_failure, run_script
from tests.judging.core.builtin_prompts import ENVIRONMENT

CARDS = list(gallery().values())
JUDGED = [card for card in CARDS if card.asks_judge]
SCRIPTED = [card for card in CARDS if card.metrics["en"].scripts]
by_id = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def metric_of(card: Card, example: Example) -> MetricDefinition:
    return card.definition(example.language, card.example_mapping([example]))


def answers_of(card: Card, example: Example) -> dict[str, Any]:
    item = card.item(example)
    return {"a": item.response, "b": item.other} if item.other else {"response": item.response}


def rendered(card: Card, example: Example, criterion: int = 0) -> str:
    metric, item = metric_of(card, example), card.item(example)
    return ENVIRONMENT.from_string(metric.judges[0].template).render(
        data=item.data,
        **answers_of(card, example),
        **criterion_variables(rubric_of(item.data), criterion),
        min_score=metric.min_score,
        max_score=metric.max_score,
        answer_format=answer_format(metric, example.language),
    )


def reply_to(metric: MetricDefinition, example: Example) -> str:
    """What a judge that knows the verdict replies, in the form that it was asked for."""
    if example.reply:
        return example.reply
    *_before, first, last = answer_format(metric, example.language).splitlines()
    line = last.replace("[[n]]", f"[[{example.verdict}]]")
    if metric.gives == PASS_FAIL:
        line = first if example.verdict == "pass" else last
    if metric.gives in (CATEGORY, COMPARISON):
        line = f"[[{example.verdict}]]"
    return f"{example.why}\n{line}"


def checklist_value(metric: MetricDefinition, example: Example) -> float:
    """The value from a judge that is asked about one criterion after the other."""
    rubric = rubric_of(example.data)
    assert rubric is not None
    met, not_met = answer_format(metric, example.language).splitlines()[-2:]
    reading = metric.reading_of(metric.judges[0])
    verdicts = [read_reply(met if is_met else not_met, reading).value for is_met in example.met]
    return judged(rubric, [value is True for value in verdicts]).low


def script_result(sandbox: Sandbox, metric: MetricDefinition, example: Example, reply: str = "") -> Any:
    item: dict[str, Any] = {"data": example.data, "resp": {"content": example.answer}}
    if metric.judges:
        item |= {"judge_reqs": [{}], "judge_resps": [{"content": reply}], "judge_models": [{"name": "j"}]}
    (outcome,) = run_script(sandbox, metric.scripts[0].kind, metric.scripts[0].source, [item])
    assert outcome.failure is None, outcome.failure
    return outcome.result


def test_there_are_at_least_24_besides_the_templates_and_some_for_each_task() -> None:
    assert len([card for card in CARDS if card.task not in ("platform", "template")]) >= 24
    assert {card.task for card in CARDS} == set(TASKS)


def test_the_six_templates_of_the_platform_stand_first_with_their_own_names() -> None:
    names = ["单轮对话打分法", "单轮对话对比打分法", "单轮对话参考打分法"]
    names += [name.replace("单轮", "多轮") for name in names]
    assert [(card.task, card.name.zh) for card in CARDS[:6]] == [("platform", name) for name in names]


def test_every_built_in_template_is_in_the_gallery() -> None:
    shown = {judge.template for card in JUDGED for metric in card.metrics.values() for judge in metric.judges}
    assert {builtin.source for builtin in BUILTINS.values()} <= shown


@by_id
@pytest.mark.parametrize("language", LANGUAGES)
def test_its_file_is_a_metrics_file_with_its_name(card: Card, language: Language) -> None:
    folder = FOLDER / card.id
    file = read_metrics_file((folder / f"metric.{language}.yaml").read_text(encoding="utf-8"), folder)
    assert [metric.name for metric in file.metrics] == [card.name.text(language)]
    assert card.metrics[language].kind == card.gives


@by_id
def test_a_prompt_of_its_own_says_what_is_material_as_all_others_do(card: Card) -> None:
    paragraphs = {"en": "Everything between a BEGINS line", "zh": "“开始”行与对应的“结束”行之间的全部内容"}
    for language in LANGUAGES if card.asks_judge else ():
        assert paragraphs[language] in card.template(language, {})


@by_id
def test_it_needs_what_its_prompts_and_scripts_name(card: Card) -> None:
    assert set(card.needs) <= set(FIELDS)
    columns = {"ref_answer" if name == "reference" else name for name in card.needs}
    for metric in card.metrics.values():
        texts = [judge.template for judge in metric.judges] + [script.source for script in metric.scripts]
        assert all(any(f"data.{name}" in text or f'"{name}"' in text for text in texts) for name in columns)
        assert set(columns_named(metric)) <= columns | {"entry_point"}


@by_id
def test_names_and_sentences_are_in_both_languages(card: Card) -> None:
    for text in (card.name, card.sentence):
        assert text.en.strip()
        assert text.zh.strip()
    assert not any("\u4e00" <= char <= "\u9fff" for char in card.name.en + card.sentence.en)


@by_id
def test_it_has_6_to_10_examples(card: Card) -> None:
    assert 6 <= len(card.examples) <= 10


@by_id
def test_it_has_right_and_wrong_examples_in_both_languages(card: Card) -> None:
    for language in LANGUAGES:
        assert len({example.verdict for example in card.examples if example.language == language}) >= 2


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("card", JUDGED, ids=lambda card: card.id)
def test_its_prompt_asks_for_a_form_that_is_read(card: Card, language: Any) -> None:
    template = card.template(language, {})
    assert says_how_to_answer(template) or '"errors"' in template


@by_id
def test_its_prompt_shows_its_examples(card: Card) -> None:
    for example in card.examples if card.asks_judge else ():
        text = rendered(card, example)
        texts = [example.question, *example.turns, example.other]
        if "response.content" in card.template("en", {}):
            texts.append(example.answer)
        assert all(shown in text for shown in texts)
        assert all(value in text for value in example.row.values() if isinstance(value, str))


@by_id
def test_a_judge_that_knows_the_verdicts_is_read_so(card: Card, sandbox: Sandbox) -> None:
    for example in card.examples:
        metric = metric_of(card, example)
        if card.gives == CHECKLIST:
            assert checklist_value(metric, example) == example.value
            continue
        reply = reply_to(metric, example) if metric.judges else ""
        if metric.scripts:
            assert script_result(sandbox, metric, example, reply) == pytest.approx(example.value)
        else:
            value = read_reply(reply, metric.reading_of(metric.judges[0])).value
            assert value == (metric.verdict_of(example.value) or example.value)


@pytest.mark.parametrize("card", SCRIPTED, ids=lambda card: card.id)
def test_its_script_loads_with_any_column_s_name(card: Card, sandbox: Sandbox) -> None:
    columns = dict.fromkeys(card.needs, "标准 'x\"\\ }}")
    (script,) = card.definition("en", columns).scripts
    assert load_failure(sandbox, script.kind, script.source) is None
    assert not card.needs or card.asks_judge or repr("标准 'x\"\\ }}") in script.source


@pytest.mark.parametrize(("body", "passes"), [("a + b", True), ("a - b", False)])
def test_tests_that_are_a_function_are_called(body: str, passes: bool, sandbox: Sandbox) -> None:
    tests = "def check(candidate):\n    assert candidate(1, 2) == 3\n"
    row = {"tests": tests, "entry_point": "add"}
    answer = f"def add(a, b):\n    return {body}"
    example = Example(language="en", verdict="pass", row=row, answer=answer)
    card = gallery()["code_tests"]
    assert script_result(sandbox, metric_of(card, example), example) is passes


def test_a_list_of_errors_that_can_t_be_read_gives_no_score(sandbox: Sandbox) -> None:
    card = gallery()["mqm"]
    for reply in ("no errors", '{"errors": [{"severity": "huge"}]}', '{"errors": 3}'):
        example = card.examples[0]
        assert script_result(sandbox, metric_of(card, example), example, reply) is None


@pytest.mark.parametrize("column", ["passages", "检索 内容", "a'b", 'a"b}} {{ "'])
def test_a_prompt_takes_a_field_from_any_column(column: str) -> None:
    template = gallery()["faithful"].template("en", {"context": column})
    text = ENVIRONMENT.from_string(template).render(
        data={"question": "q", column: ["one", "二"]}, response={"content": "a"}, answer_format=""
    )
    assert '["one", "二"]' in text or '["one", "\\u4e8c"]' in text


@pytest.mark.parametrize(
    ("columns", "mapping"),
    [
        (["id", "Retrieved-Contexts"], {"context": "Retrieved-Contexts"}),
        (["docs", "context"], {"context": "context"}),
        (["上下文", "标准答案"], {"context": "上下文", "reference": "标准答案"}),
        (
            ["retrieved_passages", "source_url", "answer"],
            {"context": "retrieved_passages", "reference": "answer"},
        ),
        (["goldContext", "model_answer"], {"context": "goldContext"}),
        (["原文", "译文"], {"reference": "译文"}),
        (["topic"], {}),
    ],
)
def test_columns_are_guessed_by_common_names(columns: list[str], mapping: dict[str, str]) -> None:
    assert guessed_fields(["context", "reference"], columns) == mapping


def test_only_a_field_without_a_substitute_has_to_be_mapped() -> None:
    assert unmapped(FIELDS, {"context": "docs"}) == ["tests", "pattern", "schema"]


@pytest.mark.parametrize(
    "text", ["faithful.en", "faithful.zh:context=%E6%96%87+%3D%26", "single_turn_score.en"]
)
def test_a_start_says_all_that_a_metric_starts_from(text: str) -> None:
    start = start_of(text)
    assert start is not None
    assert start.text == text


@pytest.mark.parametrize("text", ["", "nothing.en", "faithful", "faithful.fr"])
def test_other_texts_name_no_start(text: str) -> None:
    assert start_of(text) is None


def test_a_start_leaves_out_fields_that_the_metric_does_not_read() -> None:
    start = start_of("faithful.en:tests=x&context=y")
    assert start is not None
    assert start.mapping == {"context": "y"}


def test_cards_are_searched_in_both_languages() -> None:
    assert [card.id for card in searched("忠于 上下文")] == ["faithful"]
    assert "faithful" in [card.id for card in searched("CONTEXT supports")]


@pytest.mark.parametrize(
    ("name", "answer", "reference", "value"),
    [  # by sacrebleu 2.6.0 (13a or zh, effective order) and rouge-score 0.1.2
        ("bleu", "The cat sat on the mat", "The cat is on the mat", 37.99178428257963),
        ("bleu", "the the the the", "the cat", 15.97357760615681),
        ("bleu", "one two three four five", "one two three four five six seven", 67.03200460356396),
        ("bleu", "今天天气真好", "今天天气很好。", 45.48019047027906),
        ("chrf", "The cat sat on the mat", "The cat is on the mat", 64.5779420625287),
        ("chrf", "hello there", "hello world", 31.197089947089946),
        ("chrf", "我喜欢吃苹果和梨", "我喜欢苹果", 36.502849002849004),
        ("rouge_l", "The cat sat on the mat", "The cat is on the mat", 0.8333333333333334),
        ("rouge_l", "the the the the", "the cat", 0.3333333333333333),
        ("rouge_l", "a", "b c d", 0.0),
    ],
)
def test_overlap_with_the_reference_is_that_of_the_usual_libraries(
    name: str, answer: str, reference: str, value: float, sandbox: Sandbox
) -> None:
    example = Example(language="en", verdict=0, answer=answer, row={"ref_answer": reference})
    assert script_result(sandbox, metric_of(gallery()[name], example), example) == pytest.approx(value)
