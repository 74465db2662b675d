"""Lint over rows: when each finding is reported, and when it is not."""

from collections.abc import Iterator
from typing import Any

import pytest

from judging.core.builtin import NAMES, builtin
from judging.core.lint import Lint, LintFinding, Longest, is_of_pairs, lint, subjects
from judging.core.metric_definition import Script
from judging.core.prompts import RenderItem
from judging.core.sandbox.job import SandboxFailure, SandboxLimits
from judging.core.sandbox.pool import Sandbox

MESSAGES = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
ROWS: list[dict[str, Any]] = [
    {"question": "q1", "gt": "a1", "level": 1, "meta": {"tag": "x", "one": None}},
    {"question": "q2", "gt": None, "meta": {"tag": "y"}},
    {"question": "q3", "gt": None, "level": None, "meta": None},
]
USED = "{{ response.content }}"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxLimits(seconds=0.3, memory_mb=128, output_kb=16)) as sandbox:
        yield sandbox


def linted(sandbox: Sandbox, template: str, rows: list[dict[str, Any]] | None = None) -> Lint:
    """Lint `template` over rows at lines 10, 20, 30, …; a last line that uses the response is appended to it."""
    subjects = [
        (10 * number, RenderItem({"messages": MESSAGES} | row, {"content": "answer"}))
        for number, row in enumerate(ROWS if rows is None else rows, 1)
    ]
    return lint(sandbox, f"{template}\n{USED}", subjects)


def warnings_of(result: Lint) -> tuple[LintFinding, ...]:
    """The warnings about what a template looks up, not about the form of answer that it asks for."""
    return tuple(warning for warning in result.warnings if warning.code != "no_answer_format")


def found(
    sandbox: Sandbox, template: str, rows: list[dict[str, Any]] | None = None
) -> list[tuple[str, str | None]]:
    result = linted(sandbox, template, rows)
    return [(one.code, one.name) for one in (*result.errors, *warnings_of(result))]


def test_a_template_that_fits_every_row_has_no_finding(sandbox: Sandbox) -> None:
    result = linted(sandbox, "{{ data.question }}")
    assert (result.errors, warnings_of(result)) == ((), ())
    assert (result.longest, result.rows) == (Longest(10, 9, 3), 3)


@pytest.mark.parametrize("template", ["", " \n\t\n"])
def test_an_empty_template_is_an_error(sandbox: Sandbox, template: str) -> None:
    result = lint(sandbox, template, [(1, RenderItem({"messages": MESSAGES}, {"content": "answer"}))])
    assert result == Lint((LintFinding("template_blank"),))


def test_a_syntax_error_is_all_that_is_reported(sandbox: Sandbox) -> None:
    result = linted(sandbox, "\n{% if %}")
    (error,) = result.errors
    assert (error.code, error.line, error.message[:8], warnings_of(result), result.longest) == (
        "syntax",
        2,
        "Expected",
        (),
        None,
    )


def test_a_name_that_is_in_no_row_is_an_error_with_the_nearest_name(sandbox: Sandbox) -> None:
    (error,) = linted(sandbox, "\n{{ data.questoin }}").errors
    assert error == LintFinding("unknown_name", "data.questoin", 2, 3, (10, 20, 30), "data.question")


@pytest.mark.parametrize(
    ("name", "reported", "suggestion"),
    [
        ("data.Level", "data.Level", "data.level"),
        ("data.refanswer", "data.refanswer", "data.ref_answer"),
        ("data.meta.tga", "data.meta.tga", "data.meta.tag"),
        ("data.mete.tag", "data.mete", "data.meta"),
        ("data.content", "data.content", "response.content"),
        ("response.level", "response.level", "data.level"),
        ("response.contnet", "response.contnet", "response.content"),
        ("level", "level", "data.level"),
        ("dat.question", "dat", "data"),
        ("data.zzz", "data.zzz", None),
        ("zzz", "zzz", None),
        ("data['levle']", "data.levle", "data.level"),
        ("preprocess_result.x", "preprocess_result.x", None),
        ("data.messages[7].content", "data.messages[7]", None),
    ],
)
def test_did_you_mean(name: str, reported: str, suggestion: str | None, sandbox: Sandbox) -> None:
    (error,) = linted(sandbox, f"{{{{ {name} }}}}").errors
    assert (error.code, error.name, error.suggestion) == ("unknown_name", reported, suggestion)


def test_a_name_in_a_branch_that_no_row_takes_is_looked_for_too(sandbox: Sandbox) -> None:
    assert found(sandbox, "{% if false %}{{ data.zzz }}{{ data.level }}{% endif %}") == [
        ("unknown_name", "data.zzz")
    ]


def test_names_are_reported_in_the_templates_order_with_the_line_of_their_first_use(sandbox: Sandbox) -> None:
    errors = linted(
        sandbox, "{% if false %}{{ data.b1 }}{% endif %}\n{{ data.a1 }}{{ data.c1 }}\n{{ data.a1 }}"
    ).errors
    assert [(one.name, one.line) for one in errors] == [("data.b1", 1), ("data.a1", 2), ("data.c1", 2)]


def test_a_name_that_some_rows_lack_is_a_warning_with_those_rows(sandbox: Sandbox) -> None:
    result = linted(sandbox, "{% if data.level %}{% endif %}")
    assert (result.errors, warnings_of(result)) == (
        (),
        (LintFinding("name_missing", "data.level", 1, 1, (20,)),),
    )


def test_a_name_that_some_rows_leave_none_is_a_warning_with_those_rows(sandbox: Sandbox) -> None:
    assert warnings_of(linted(sandbox, "{{ data.gt }}")) == (
        LintFinding("name_none", "data.gt", 1, 2, (20, 30)),
    )


TAKEN_IN = [
    "{{ data.gt|trim }}",
    "{{ data.gt|upper|lower }}",
    "{{ data.gt|string|length }}",
    "{{ data.gt|default('-') }}",
    "{{ data.gt|default('-')|trim }}",
    "{{ data.gt|tojson }}",
    "{{ data.gt|int }}",
    "{{ 'Answer: ' ~ data.gt }}",
    "{{ '%s'|format(data.gt) }}",
    "{{ '%(x)s'|format(x=data.gt) }}",
    "{{ '%s, %s' % (data.question, data.gt) }}",
    "{{ 'it is {}'.format(data.gt) }}",
    "{{ [data.question, data.gt]|join }}",
    "{% filter upper %}{{ data.gt }}{% endfilter %}",
    "{% set x = data.gt|trim %}{{ x }}",
    "{{ data.gt if data.question else data.level }}",
    "{{ 'x' if data.question == 'q1' else data.gt }}",
]


@pytest.mark.parametrize("template", TAKEN_IN)
def test_a_none_that_a_filter_or_a_text_takes_in_is_reported_too(template: str, sandbox: Sandbox) -> None:
    assert warnings_of(linted(sandbox, template)) == (LintFinding("name_none", "data.gt", 1, 2, (20, 30)),)


def test_a_standard_name_that_is_none_everywhere_still_exists(sandbox: Sandbox) -> None:
    assert found(sandbox, "{{ data.ref_answer }}") == [("name_none", "data.ref_answer")]


def test_a_part_that_is_missing_in_some_rows_is_reported_at_its_deepest_level(sandbox: Sandbox) -> None:
    assert found(sandbox, "{{ data.meta.tag }}") == [("name_missing", "data.meta.tag")]


GUARDED = [
    "{% if data.level is defined %}{{ data.level or 0 }}{% endif %}",
    "{% if 'level' in data %}{{ data.level or 0 }}{% endif %}",
    "{% if data.zzz is defined %}{{ data.zzz }}{% endif %}",
    "{% if data.zzz is not defined %}{% else %}{{ data.zzz }}{% endif %}",
    "{{ data.zzz|default('-') }}{{ zzz|d('-') }}",
    "{% if 'zzz' in data %}{{ data.zzz.deeper }}{% endif %}",
    "{% if data.zzz.deeper is defined %}{{ data.zzz.deeper }}{% endif %}",
    "{{ data.ref_answer or data.question }}",
    "{{ data.gt|default('-', true)|trim }}",
    "{{ (data.gt or '-')|trim ~ '.' }}",
    "{% if data.gt is not none %}{{ data.gt|trim }}{% endif %}",
    "{{ data.gt if data.gt is not none else '-' }}",
    "{{ data.get('level') or 0 }}",
]


@pytest.mark.parametrize("template", GUARDED)
def test_what_the_template_asks_for_first_is_not_missed(template: str, sandbox: Sandbox) -> None:
    assert found(sandbox, template) == []


def test_a_guard_elsewhere_does_not_hide_a_use_without_one(sandbox: Sandbox) -> None:
    assert found(sandbox, "{{ data.zzz|default('-') }}{{ data.zzz }}") == [("unknown_name", "data.zzz")]


OWN = [
    "{% set x = data.question %}{{ x }}",
    "{% for m in data.messages %}{{ loop.index }}{{ m.role }}{% endfor %}",
    "{% for key, value in data.items() %}{{ key|upper }}{% endfor %}",
    "{% macro f(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ f(1) }}",
    "{% set ns = namespace(n=0) %}{% set ns.n = 1 %}{{ ns.n }}{{ range(2)|list }}{{ dict(a=1)|tojson }}",
    "{{ cycler('a').next() }}{{ joiner()() }}{{ lipsum is defined }}",
    "{% with y = 1 %}{{ y }}{% endwith %}",
    "{{ data.question.upper() }}{{ data.messages[0].content }}{{ data['messages'][-1]['role'] }}",
    "{{ judge_resps[0].content }}{{ judge_reqs }}{{ max_score }}{{ min_score }}",
]


@pytest.mark.parametrize("template", OWN)
def test_what_the_template_or_jinja_itself_has_is_not_reported(template: str, sandbox: Sandbox) -> None:
    assert found(sandbox, template) == []


def test_a_field_that_no_element_of_a_list_has_is_unknown(sandbox: Sandbox) -> None:
    assert found(sandbox, "{% for m in data.messages %}{{ m.rol }}{% endfor %}") == [
        ("unknown_name", "m.rol")
    ]


def test_a_field_that_some_elements_of_a_list_have_is_missing(sandbox: Sandbox) -> None:
    rows: list[dict[str, Any]] = [{"list": [{"a": 1}, {}]}]
    assert found(sandbox, "{% for m in data.list %}{{ m.a }}{% endfor %}", rows) == [("name_missing", "m.a")]


def test_a_key_with_a_dot_in_it_is_one_name(sandbox: Sandbox) -> None:
    assert found(sandbox, "{{ data['a.b'] }}{{ data['a.c'] }}", [{"a.b": 1}]) == [
        ("unknown_name", "data.a.c")
    ]


def test_a_render_that_fails_is_an_error_with_its_rows_and_words(sandbox: Sandbox) -> None:
    rows: list[dict[str, Any]] = [{"n": 0}, {"n": 1}, {"n": 0}]
    (error,) = linted(sandbox, "\n{{ 1 / data.n }}", rows).errors
    assert error == LintFinding(
        "render_error", None, 2, 2, (10, 30), None, "ZeroDivisionError: division by zero"
    )


def test_a_calculation_with_a_missing_name_is_the_names_fault(sandbox: Sandbox) -> None:
    assert found(sandbox, "{{ data.level + 1 }}", [{"level": 1}, {}]) == [("name_missing", "data.level")]


def test_blank_renders_are_counted(sandbox: Sandbox) -> None:
    subjects = [(line, RenderItem({"x": x}, {"content": " \n"})) for line, x in ((1, ""), (3, "x"), (4, " "))]
    result = lint(sandbox, "{{ data.x }}{{ response.content }}", subjects)
    assert warnings_of(result) == (LintFinding("blank_render", rows=2, first_rows=(1, 4)),)


def test_a_template_without_the_response_is_reported(sandbox: Sandbox) -> None:
    result = lint(sandbox, "{{ data.messages }}", [(1, RenderItem({"messages": []}, {}))])
    assert warnings_of(result) == (LintFinding("response_unused"),)


@pytest.mark.parametrize("template", ["{{ response }}", "{{ response['content'] }}", "{{ response|tojson }}"])
def test_any_mention_of_the_response_counts(template: str, sandbox: Sandbox) -> None:
    assert warnings_of(lint(sandbox, template, [(1, RenderItem({}, {"content": "x"}))])) == ()


def test_several_answers_of_a_row_count_as_one_row(sandbox: Sandbox) -> None:
    answers: list[dict[str, Any]] = [
        {"content": "a", "x": None},
        {"content": "b", "x": None},
        {"content": "c"},
    ]
    subjects = [(line, RenderItem({}, answer)) for line in (5, 6) for answer in answers]
    result = lint(sandbox, "{{ response.x }}{{ response.content }}", subjects)
    assert warnings_of(result) == (
        LintFinding("name_missing", "response.x", 1, 2, (5, 6)),
        LintFinding("name_none", "response.x", 1, 2, (5, 6)),
    )


def test_rows_without_an_answer_yet_are_not_blamed_for_its_fields(sandbox: Sandbox) -> None:
    result = lint(sandbox, "{{ response.reasoning_content }}{{ response.content }}x", [(1, RenderItem({}))])
    assert warnings_of(result) == ()


def test_only_the_first_rows_are_named(sandbox: Sandbox) -> None:
    subjects = [(line, RenderItem({"gt": None}, {})) for line in range(1, 1201)]
    (warning,) = warnings_of(lint(sandbox, "{{ data.gt }}{{ response.content }}", subjects))
    assert (warning.rows, warning.first_rows) == (1200, tuple(range(1, 11)))


def test_the_longest_render_is_the_first_of_its_length(sandbox: Sandbox) -> None:
    texts = {1: "ab", 2: "北京北京北京北京", 3: "abcdefgh"}
    subjects = [(line, RenderItem({"x": text}, {})) for line, text in texts.items()]
    assert lint(sandbox, "{{ data.x }}{{ response.content }}", subjects).longest == Longest(2, 8, 6)


def test_a_failing_preprocess_is_an_error_of_its_rows(sandbox: Sandbox) -> None:
    failed = SandboxFailure("exception", "KeyError: 'x'", 3)
    result = lint(sandbox, USED, [(1, failed), (2, RenderItem({}, {"content": "x"})), (4, failed)])
    assert result.errors == (LintFinding("render_error", "preprocess", 3, 2, (1, 4), None, "KeyError: 'x'"),)


def test_a_preprocess_that_does_not_compile_is_a_syntax_error(sandbox: Sandbox) -> None:
    (error,) = lint(sandbox, USED, [(1, SandboxFailure("syntax", "SyntaxError: invalid syntax", 2))]).errors
    assert (error.code, error.name, error.line) == ("syntax", "preprocess", 2)


def test_without_rows_only_what_can_be_known_is_reported(sandbox: Sandbox) -> None:
    result = lint(sandbox, "{{ data.zzz }}{{ zzz }}", [])
    assert [one.name for one in result.errors] == ["zzz"]
    assert result.longest is None


FALSY = [{"ref_answer": value} for value in (0, False, "", None, "a", [])]


@pytest.mark.parametrize(
    "template",
    [
        "{% if data.ref_answer %}x{% endif %}",
        "{% if response.content and not data['ref_answer'] %}x{% endif %}",
        "{% set reference = data.ref_answer or data.gt %}",
        "{{ 'x' if data.ref_answer else 'y' }}",
        "{{ data.ref_answer | default('none', true) }}",
        "{{ data.ref_answer | d('none', boolean=true) }}",
        "{% set reference = data.ref_answer %}{% if reference %}x{% endif %}",
        "{% with reference = data.ref_answer %}{% if reference %}x{% endif %}{% endwith %}",
        "{% if data.get('ref_answer') %}x{% endif %}",
    ],
)
def test_a_reference_that_is_tested_for_truth_is_reported_where_it_is_zero_or_false(
    sandbox: Sandbox, template: str
) -> None:
    (warning,) = [one for one in linted(sandbox, template, FALSY).warnings if one.code == "name_falsy"]
    assert (warning.name, warning.line, warning.first_rows) == ("data.ref_answer", 1, (10, 20, 60))


@pytest.mark.parametrize(
    "template",
    [
        "{% if data.ref_answer is not none %}{{ data.ref_answer }}{% endif %}",
        "{% if data.ref_answer == 0 %}x{% endif %}",
        "{% if data.ref_answer | string | trim %}x{% endif %}",
        "{{ data.gt or 'none' }}",
        "{{ data.ref_answer | default('none') }}",
        *(builtin(name).source for name in NAMES),
    ],
)
def test_a_template_that_takes_zero_for_a_reference_is_not_warned_of(sandbox: Sandbox, template: str) -> None:
    assert "name_falsy" not in [code for code, _name in found(sandbox, template, FALSY)]


def test_tests_of_a_reference_are_fine_where_no_row_holds_zero_or_false(sandbox: Sandbox) -> None:
    rows = [{"ref_answer": value} for value in ("a", None, "", 1)]
    assert found(sandbox, "{% if data.ref_answer %}x{% endif %}", rows) == []


@pytest.mark.parametrize("name", NAMES)
def test_rows_without_a_reference_are_counted_where_the_template_looks_for_one(
    sandbox: Sandbox, name: str
) -> None:
    rows = [
        {"question": "q", "history": None, "ref_answer": given, "gt": said}
        for given, said in ((None, None), ("a", None), (" ", "b"), (" ", ""), (0, None))
    ]
    counted = linted(sandbox, builtin(name).source, rows).without_reference
    assert counted == (2 if "reference" in name or "comparison" in name else 0)


@pytest.mark.parametrize(
    ("template", "code", "name", "suggestion"),
    [
        ("${question}", "placeholder", "${question}", "{{ data.question }}"),
        ("{level}", "placeholder", "{level}", "{{ data.level }}"),
        ("｛｛ data.question ｝｝", "full_width", "｛｛ data.question ｝｝", "{{ data.question }}"),
        ('{{"score": 1}}', "doubled_braces", '{{"score": 1}}', '{"score": 1}'),
        ('{{"score": <n>}}', "doubled_braces", '{{"score": <n>}}', '{"score": <n>}'),  # a syntax error too
    ],
)
def test_a_placeholder_of_another_tool_is_a_warning(
    sandbox: Sandbox, template: str, code: str, name: str, suggestion: str
) -> None:
    (warning,) = warnings_of(linted(sandbox, template))
    assert (warning.code, warning.name, warning.line, warning.suggestion) == (code, name, 1, suggestion)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("output", "response.content"), ("input", "data.question"), ("expected_output", "data.ref_answer")],
)
def test_another_tools_name_is_suggested_as_ours(sandbox: Sandbox, name: str, suggestion: str) -> None:
    result = linted(sandbox, "{{" + name + "}}")
    assert [(one.code, one.name, one.suggestion) for one in result.errors] == [
        ("unknown_name", name, suggestion)
    ]
    assert warnings_of(result) == ()


def test_a_name_with_a_dash_is_one_error_with_brackets_suggested(sandbox: Sandbox) -> None:
    result = linted(sandbox, "{{ data.my-field }}", [{"my-field": 1}])
    (error,) = [one for one in result.errors if one.code == "unknown_name"]
    assert (error.name, error.suggestion) == ("data.my-field", "data['my-field']")


COUNTER = "{% set n = 0 %}{% for m in data.messages %}{% set n = n + 1 %}{% endfor %}{{ n }}"
AGAIN = "{% set n = 0 %}{% for m in data.messages %}{% set n = 0 %}{% endfor %}{{ n }}"
FLAG = (
    "{% set seen = false %}{% for m in data.messages %}{% if m %}{% set seen = true %}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize(("template", "name"), [(COUNTER, "n"), (AGAIN, "n"), (FLAG, "seen")])
def test_a_value_set_in_a_loop_and_lost_is_a_warning(sandbox: Sandbox, template: str, name: str) -> None:
    assert found(sandbox, template) == [("set_in_loop", name)]


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in data.messages %}{% set text = m.content %}{{ text }}{% endfor %}",
        "{% set c = namespace(n=0) %}{% for m in data.messages %}{% set c.n = c.n + 1 %}{% endfor %}{{ c.n }}",
    ],
)
def test_a_value_for_one_turn_or_in_a_namespace_is_none(sandbox: Sandbox, template: str) -> None:
    assert found(sandbox, template) == []


@pytest.mark.parametrize("tag", ["include 'x'", "extends 'x'", "import 'x' as x", "from 'x' import y"])
def test_a_tag_for_other_templates_is_refused_in_a_sentence(sandbox: Sandbox, tag: str) -> None:
    (error,) = linted(sandbox, "\n{% " + tag + " %}").errors
    assert (error.code, error.line) == ("syntax", 2)
    assert error.message == "a prompt can't include, import or extend other templates"


def test_lipsum_is_an_unknown_name(sandbox: Sandbox) -> None:
    assert ("unknown_name", "lipsum") in found(sandbox, "{{ lipsum() }}")


PAIRS = "{{ data.question }} {{ a.content }} {{ b.content }} [[n]]"
TWO_ANSWERS = [
    (line, {"question": "q"}, {"content": f"answer {number}", **more})
    for line in (1, 2)
    for number, more in enumerate(({"language": "en"}, {}))
]


def linted_pairs(sandbox: Sandbox, template: str, *scripts: Script) -> Lint:
    items = subjects(sandbox, TWO_ANSWERS, scripts, of_pairs=True)
    return lint(sandbox, template, items, of_pairs=True)


def test_a_template_that_compares_candidates_needs_both_answers(sandbox: Sandbox) -> None:
    assert linted_pairs(sandbox, PAIRS) == Lint(longest=Longest(1, 25, 7), rows=2)
    assert [one.code for one in linted_pairs(sandbox, "{{ a.content }} [[n]]").warnings] == ["answers_unused"]


@pytest.mark.parametrize(
    ("more", "code", "suggestion"),
    [
        ("{{ response.content }}", "response_of_pair", "a.content"),
        ("{{ a.model_name }}", "model_of_pair", None),
        ("{{ b.candidate }}", "model_of_pair", None),
        ("{{ a.contents }}", "unknown_name", "a.content"),
    ],
)
def test_what_a_comparison_of_candidates_does_not_show_is_explained(
    sandbox: Sandbox, more: str, code: str, suggestion: str | None
) -> None:
    (error,) = linted_pairs(sandbox, PAIRS + more).errors
    assert (error.code, error.suggestion, error.rows) == (code, suggestion, 2)


def test_a_field_that_one_of_two_answers_has_is_missing_in_the_other(sandbox: Sandbox) -> None:
    (warning,) = linted_pairs(sandbox, PAIRS + "{{ a.language }}").warnings
    assert (warning.code, warning.name, warning.rows) == ("name_missing", "a.language", 2)


def test_a_script_s_fields_of_both_answers_are_known(sandbox: Sandbox) -> None:
    script = "def preprocess(data, resp, **kwargs):\n    resp.x = 1\n    kwargs['other_resp'].x = 2"
    steps = (Script(kind="preprocess", source=script),)
    assert linted_pairs(sandbox, PAIRS + "{{ a.x }}{{ b.x }}", *steps).errors == ()


def test_a_template_for_pairs_is_known_by_its_names(sandbox: Sandbox) -> None:
    assert is_of_pairs(sandbox, PAIRS)
    assert not is_of_pairs(sandbox, "{{ response.content }} {% for a in data.messages %}{{ a }}{% endfor %}")


@pytest.mark.parametrize(
    ("template", "warned"),
    [
        ("Rate the answer.", True),
        ("{{ answer_format }}", False),
        ("End with [[n]].", False),
        ('Reply with {"score": n}', False),
        ("<verdict>PASS</verdict>", False),
        ("最后给出 结论：通过", False),
        ("underscore: one", True),
    ],
)
def test_a_template_says_in_which_form_to_answer(sandbox: Sandbox, template: str, warned: bool) -> None:
    codes = {warning.code for warning in linted(sandbox, template).warnings}
    assert ("no_answer_format" in codes) == warned
