"""What a template can access, sentence by sentence of the docs, and the limits of rendering."""

from collections.abc import Iterator
from typing import Any

import pytest

from judging.core.prompts import NameAt, Rendered, RenderItem, names_of, render
from judging.core.sandbox.job import SandboxLimits
from judging.core.sandbox.pool import Sandbox

MESSAGES = [{"role": "user", "content": "北京的气候如何?"}]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxLimits(seconds=0.3, memory_mb=128, output_kb=16)) as sandbox:
        yield sandbox


def rendered(
    sandbox: Sandbox,
    template: str,
    data: dict[str, Any] | None = None,
    response: dict[str, Any] | None = None,
    **more: Any,
) -> Rendered:
    item = RenderItem({"messages": MESSAGES} | (data or {}), response, **more)
    return render(sandbox, template, [item])[0]


def text_of(sandbox: Sandbox, template: str, *given: Any, **more: Any) -> str:
    made = rendered(sandbox, template, *given, **more)
    assert made.text is not None, made.error
    return made.text


@pytest.mark.parametrize("name", ["question", "gt", "history", "ref_answer"])
def test_standard_fields_of_data_are_none_when_absent(name: str, sandbox: Sandbox) -> None:
    assert text_of(sandbox, f"{{{{ data.{name} }}}} {{{{ data['{name}'] }}}}") == "None None"


def test_messages_are_a_list_to_walk(sandbox: Sandbox) -> None:
    assert (
        text_of(sandbox, "{% for m in data.messages %}{{ m.role }}:{{ m['content'] }}{% endfor %}")
        == "user:北京的气候如何?"
    )


@pytest.mark.parametrize(
    "expression", ["data.meta.tag", "data['meta'].tag", "data.meta['tag']", "data['meta']['tag']"]
)
def test_fields_answer_to_attribute_and_item(expression: str, sandbox: Sandbox) -> None:
    assert text_of(sandbox, f"{{{{ {expression} }}}}", {"meta": {"tag": "x"}}) == "x"


@pytest.mark.parametrize("name", ["items", "keys", "values", "get", "pop", "update", "copy"])
def test_a_field_named_like_a_method_is_still_the_field(name: str, sandbox: Sandbox) -> None:
    template = f"{{{{ data.{name} }}}} {{{{ response.{name} }}}} {{{{ data.deep.{name} }}}}"
    assert text_of(sandbox, template, {name: 1, "deep": {name: 3}}, {name: 2}) == "1 2 3"


def test_without_that_field_it_is_the_method(sandbox: Sandbox) -> None:
    assert (
        text_of(
            sandbox, "{% for k, v in data.meta.items() %}{{ k }}={{ v }};{% endfor %}", {"meta": {"a": 1}}
        )
        == "a=1;"
    )


@pytest.mark.parametrize("response", [None, {}, {"content": None}, {"content": ""}])
def test_without_an_answer_content_is_empty(response: dict[str, Any] | None, sandbox: Sandbox) -> None:
    assert text_of(sandbox, "[{{ response.content }}]", {}, response) == "[]"


def test_reasoning_and_tool_calls_are_none_when_absent(sandbox: Sandbox) -> None:
    assert (
        text_of(sandbox, "{{ response.reasoning_content }} {{ response.tool_calls }}", {}, {"content": "x"})
        == "None None"
    )


def test_other_fields_of_the_response_are_seen(sandbox: Sandbox) -> None:
    assert (
        text_of(sandbox, "{{ response.usage.tokens }}", {}, {"content": "x", "usage": {"tokens": 7}}) == "7"
    )


@pytest.mark.parametrize(
    "expression", ["data.other", "response.other", "data['other']", "other", "data.meta.other"]
)
def test_any_other_name_is_undefined_and_an_error(expression: str, sandbox: Sandbox) -> None:
    made = rendered(sandbox, f"\n{{{{ {expression} }}}}", {"meta": {}})
    name = expression.replace("['", ".").replace("']", "")
    assert (made.text, made.undefined) == (None, (NameAt(name, 2),))
    assert made.error is not None
    assert (made.error.code, made.error.line, made.error.message) == (
        "undefined",
        2,
        f"'{name}' is undefined",
    )


def test_every_undefined_name_is_reported_not_only_the_first(sandbox: Sandbox) -> None:
    made = rendered(sandbox, "{{ data.a }}{{ data.b }}\n{{ data.a }}")
    assert made.undefined == (NameAt("data.a", 1), NameAt("data.b", 1), NameAt("data.a", 2))


@pytest.mark.parametrize(
    "template",
    [
        "{% if data.other %}x{% endif %}",
        "{% for x in data.other %}x{% endfor %}",
        "{{ data.other|upper }}",
        "{{ data.other|length }}",
        "{{ data.other + 1 }}",
        "{{ data.other == 1 }}",
        "{{ data.other.deeper }}",
        "{{ data.other|tojson }}",
        "{{ data.other and 1 }}",
        "{{ 'x' * data.other }}",
        "{{ data.other() }}",
        "{% set x = data.other %}{{ x }}",
    ],
)
def test_any_use_of_an_undefined_name_is_an_error(template: str, sandbox: Sandbox) -> None:
    made = rendered(sandbox, template)
    assert [made.text, made.undefined] == [None, (NameAt("data.other", 1),)]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ data.other is defined }}", "False"),
        ("{{ data.other|default('x') }}", "x"),
        ("{{ data.other|default('x', true) }}", "x"),
        ("{% if data.other is undefined %}x{% endif %}", "x"),
        ("{% if false %}{{ data.other }}{% endif %}", ""),
    ],
)
def test_asking_whether_a_name_is_defined_is_no_use_of_it(template: str, text: str, sandbox: Sandbox) -> None:
    assert rendered(sandbox, template) == Rendered(text)


def test_lenient_leaves_undefined_names_blank_and_still_reports_them(sandbox: Sandbox) -> None:
    (made,) = render(sandbox, "[{{ data.other }}{{ data.a.b.c }}]", [RenderItem({})], undefined="lenient")
    assert made == Rendered("[]", (NameAt("data.other", 1), NameAt("data.a", 1)))


def test_results_scores_and_earlier_judges_are_seen(sandbox: Sandbox) -> None:
    template = "{{ preprocess_result }} {{ min_score }}-{{ max_score }}"
    template += " {{ judge_resps[0].content }} {{ judge_reqs[-1].stream }}"
    given = {
        "judge_resps": ({"content": "8"},),
        "judge_reqs": ({"stream": True},),
        "preprocess_result": False,
    }
    assert text_of(sandbox, template, min_score=0.5, max_score=5.0, **given) == "False 0.5-5 8 True"


def test_without_them_they_are_none_and_empty_lists(sandbox: Sandbox) -> None:
    template = "{{ preprocess_result }} {{ min_score }} {{ max_score }} {{ judge_resps }} {{ judge_reqs }}"
    assert text_of(sandbox, template) == "None 1 10 [] []"


def test_tojson_escapes_neither_chinese_nor_html_and_keeps_order(sandbox: Sandbox) -> None:
    value = {"b": "<b>北京</b> & 'x'", "a": [1, None, True]}
    assert (
        text_of(sandbox, "{{ data.v|tojson }}", {"v": value})
        == '{"b": "<b>北京</b> & \'x\'", "a": [1, null, true]}'
    )


def test_tojson_can_indent(sandbox: Sandbox) -> None:
    assert text_of(sandbox, "{{ data.v|tojson(indent=2) }}", {"v": [1]}) == "[\n  1\n]"


def test_nothing_is_escaped(sandbox: Sandbox) -> None:
    assert text_of(sandbox, "<b>{{ data.v }}</b>", {"v": "<i>&\"'"}) == "<b><i>&\"'</b>"


def test_a_template_may_ask_for_escaping_itself(sandbox: Sandbox) -> None:
    template = (
        "{% autoescape true %}{{ data.v }}{{ data.v|safe }}{% endautoescape %}{{ data.v|e }}{{ data.v }}"
    )
    assert text_of(sandbox, template, {"v": "<"}) == "&lt;<&lt;<"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("a\n", "a\n"),
        ("a\n\n", "a\n\n"),
        ("a", "a"),
        ("  {% if true %}\n  a\n  {% endif %}\n", "  \n  a\n  \n"),
        ("{%- if true -%}  a  {%- endif -%}", "a"),
        ("{# gone #}\n", "\n"),
        ("{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
        ("{{ '{{' }}", "{{"),
        ("", ""),
    ],
)
def test_blanks_and_newlines_are_kept_as_written(template: str, text: str, sandbox: Sandbox) -> None:
    assert text_of(sandbox, template) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "None"), (True, "True"), (1.0, "1.0"), (10**30, "1" + "0" * 30)]
)
def test_values_render_as_in_jinja(value: Any, text: str, sandbox: Sandbox) -> None:
    assert text_of(sandbox, "{{ data.v }}", {"v": value}) == text


def test_names_that_are_none_where_they_are_shown_are_reported(sandbox: Sandbox) -> None:
    assert rendered(sandbox, "\n{{ data.gt }}{{ data.history or 'x' }}").none == (NameAt("data.gt", 2),)


def test_the_answer_can_not_be_a_template(sandbox: Sandbox) -> None:
    assert (
        text_of(sandbox, "{{ response.content }}", {}, {"content": "{{ data.gt }}{% if"})
        == "{{ data.gt }}{% if"
    )


def test_an_item_does_not_see_what_another_one_had(sandbox: Sandbox) -> None:
    first, second = render(sandbox, "{{ data.x }}", [RenderItem({"x": 1}), RenderItem({})])
    assert (first.text, second.text) == ("1", None)


SYNTAX = [
    ("{% if %}", 1),
    ("a\n{{ data.", 2),
    ("\n\n{% endfor %}", 3),
    ("{{ x|nothing }}", 1),
    ("a\n{% for x in y %}", 2),
]


@pytest.mark.parametrize(("template", "line"), SYNTAX)
def test_a_syntax_error_names_its_line_for_every_item(template: str, line: int, sandbox: Sandbox) -> None:
    made = render(sandbox, template, [RenderItem({}), RenderItem({})])
    assert [(one.error.code, one.error.line) for one in made if one.error] == [("syntax", line)] * 2


@pytest.mark.parametrize(
    ("template", "code", "words"),
    [
        ("\n{% for i in range(10**9) %}x{% endfor %}", "exception", "Range too big"),
        ("\n{{ 'x' * 10**10 }}", "memory", "memory"),
        ("\n{{ 'x' * 10**5 }}", "output", "characters"),
        (
            "\n{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "timeout",
            "seconds",
        ),
        ("\n{{ 10 ** (10 ** 9) }}", "timeout", "seconds"),
        ("{% macro f() %}\n{{ f() }}{% endmacro %}{{ f() }}", "exception", "RecursionError"),
        ("\n{{ 1 / 0 }}", "exception", "ZeroDivisionError: division by zero"),
        ("\n{{ data.messages.append(1) }}", "exception", "SecurityError"),
        ("\n{{ ''.__class__.__mro__ }}", "exception", "SecurityError"),
        ("\n{% include 'x' %}", "syntax", "a prompt can't include"),
    ],
)
def test_what_a_template_may_not_ends_with_a_clear_error(
    template: str, code: str, words: str, sandbox: Sandbox
) -> None:
    error = rendered(sandbox, template).error
    assert error is not None
    assert (error.code, words in error.message) == (code, True)
    assert error.line == 2


def test_the_error_is_the_items_own(sandbox: Sandbox) -> None:
    items = [RenderItem({"n": n}) for n in (1, 10**10, 2)]
    assert [one.text for one in render(sandbox, "{{ 'x' * data.n }}", items)] == ["x", None, "xx"]


def test_what_is_never_reached_costs_nothing(sandbox: Sandbox) -> None:
    assert text_of(sandbox, "{% if false %}{{ 'a' * 10**9 }}{% endif %}ok") == "ok"


@pytest.mark.parametrize("brackets", ["()", "[]"])
def test_a_template_nested_without_end_is_an_error(brackets: str, sandbox: Sandbox) -> None:
    template = "{{ " + brackets[0] * 20000 + brackets[1] * 20000 + " }}"
    assert rendered(sandbox, template).error is not None


def test_a_long_answer_may_be_shown_whole(sandbox: Sandbox) -> None:
    answer = "答" * 100_000
    assert text_of(sandbox, "{{ response.content }}", {}, {"content": answer}) == answer


def test_halves_of_characters_never_leave_the_sandbox(sandbox: Sandbox) -> None:
    made = rendered(sandbox, "{{ data.v }}", {"v": "\ud83d"})
    assert made.text is None
    assert made.error is not None


def test_names_of_are_dotted_with_lines_and_without_locals() -> None:
    template = "{{ data.question }}\n{{ response['content'].strip() }}"
    template += "{% for m in data.messages %}{{ m.role }}{% endfor %}\n{{ x }}"
    with Sandbox() as sandbox:
        names, error = names_of(sandbox, template)
    assert error is None
    assert [(note.name, note.line) for note in names.used] == [
        ("data.question", 1),
        ("response.content", 2),
        ("data.messages", 2),
        ("x", 3),
    ]


def test_names_of_a_broken_template_are_its_syntax_error(sandbox: Sandbox) -> None:
    names, error = names_of(sandbox, "\n{{ data.")
    assert names.used == ()
    assert error is not None
    assert (error.code, error.line) == ("syntax", 2)


SINGLE = """【用户提问】
{{ data.question }}
【参考答案】
{{ data.gt }}
【助手回答】
{{ response.content }}
【模型推理过程】
{{ response.reasoning_content }}
"""
MULTI = """【对话历史】
{{ data.history }}
【用户问题】
{{ data.question }}

【参考答案】
{{ data.gt }}
【助手回答】
{{ response.content }}"""


def test_a_single_turn_template_renders_to_the_letter(sandbox: Sandbox) -> None:
    data = {"question": "牛顿第一定律的核心内容是什么?", "gt": "任何物体都要保持匀速直线运动"}
    response = {"content": "如果没有外力作用,物体将保持静止。", "reasoning_content": "我首先需要确定..."}
    assert text_of(sandbox, SINGLE, data, response) == (
        "【用户提问】\n牛顿第一定律的核心内容是什么?\n【参考答案】\n任何物体都要保持匀速直线运动\n"
        "【助手回答】\n如果没有外力作用,物体将保持静止。\n【模型推理过程】\n我首先需要确定...\n"
    )


def test_a_multi_turn_template_keeps_its_own_blank_line(sandbox: Sandbox) -> None:
    data = {
        "question": "那狭义相对论呢?",
        "gt": "光速是极限。",
        "history": "[SYSTEM] 助手\n[USER] 你好\n[BOT] 你好",
    }
    assert text_of(sandbox, MULTI, data, {"content": "时间膨胀"}) == (
        "【对话历史】\n[SYSTEM] 助手\n[USER] 你好\n[BOT] 你好\n【用户问题】\n那狭义相对论呢?\n\n"
        "【参考答案】\n光速是极限。\n【助手回答】\n时间膨胀"
    )


def test_a_fresh_worker_has_found_no_name_yet(sandbox: Sandbox) -> None:
    assert render(sandbox, "no name", [RenderItem({"x": 1})])[0].resolved == ()
