import pytest

from judging.core.builtin import NAMES, builtin
from judging.core.placeholders import hints, with_suggestions

FIELDS = ("topic", "my-field", "my")


def changed(template: str, fields: tuple[str, ...] = FIELDS) -> str:
    return with_suggestions(template, hints(template, fields))


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("${question}", "{{ data.question }}"),
        ("${ topic }", "{{ data.topic }}"),
        ("Q: {input}\nA: {output}", "Q: {{ data.question }}\nA: {{ response.content }}"),
        ("{topic}", "{{ data.topic }}"),
        ("{response} ${response}", "{{ response.content }} {{ response.content }}"),
        ("{{output}}", "{{ response.content }}"),
        ("{{ input }} {{expected_output}}", "{{ data.question }} {{ data.ref_answer }}"),
        ("{{topic}}", "{{ data.topic }}"),
        ("｛｛ data.question ｝｝", "{{ data.question }}"),
        ("｛｛data.topic｝｝", "{{ data.topic }}"),
        ("{{ data.my-field }}", "{{ data['my-field'] }}"),
        ("{% if data.other-field %}x{% endif %}", "{% if data['other-field'] %}x{% endif %}"),
        ('{{"score": 1}}', '{"score": 1}'),
        (r"{{ '<|im_start|>' + data.question + '\\n' }}", r"{{ '<|im_start|>' + data.question + '\n' }}"),
        (r'{% set end = "\\n\\t" %}', r'{% set end = "\n\t" %}'),
        ('Reply: {{ "a": {{"b": 2}}, \'c\': 3 }}.', 'Reply: { "a": {"b": 2}, \'c\': 3 }.'),
        ('{{\n  "answer": "{{ response.content }}"\n}}', '{\n  "answer": "{{ response.content }}"\n}'),
    ],
)
def test_what_was_meant_is_suggested(template: str, wanted: str) -> None:
    assert changed(template) == wanted
    assert changed(wanted) == wanted


@pytest.mark.parametrize(
    "template",
    [
        "{{ data.question }} {{ response.content }} {{ min_score }}",
        "Write {q} or {score} or {}, {1}, $5 and ${HOME}.",
        'Reply with {"score": 1} or {"a": {"b": 1}}',
        "{{ data.a - data.b }} {{ data.my - 1 }} {{ data.x-1 if false }}{{ 'a-b' }}",
        "{# ${question} #}{% raw %}{{output}} {input}{% endraw %}",
        "{{ {'a': 1}['a'] }} {{ data }} {{ response }}",
        "[[n]] {{ data['my-field'] }}",
        "{% set reference = data.gt %}{{ reference }}",
        "{% for answer in data.answers %}{{answer}}{% endfor %}{% macro f(input) %}{{ input }}{% endmacro %}",
    ],
)
def test_what_jinja_fills_in_or_is_plain_text_stays(template: str) -> None:
    assert [hint.text for hint in hints(template, ("a", "b", "my", "x"))] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_built_in_templates_have_nothing_to_change(name: str) -> None:
    assert hints(builtin(name).source, ("reference", "answer", "given")) == []


def test_a_difference_of_two_fields_stays() -> None:
    assert hints("{{ data.my-other }}", ("my", "other")) == []


def test_a_hint_names_its_kind_line_and_text() -> None:
    (hint,) = hints("one\ntwo ${question}")
    assert (hint.kind, hint.line, hint.text) == ("placeholder", 2, "${question}")


@pytest.mark.parametrize("piece", ["{{", "}}", "{", "｛｛", "${", '{{"a":', "{#", "{% raw %}"])
def test_a_long_text_of_unfinished_pieces_gives_no_hint(piece: str) -> None:
    assert hints(piece * (200_000 // len(piece))) == []
