"""The live preview: the rendered text, split into parts."""

from collections.abc import Iterator

import pytest

from judging.core.prompts import NameAt, Piece, RenderItem, TemplatePreview, preview, render
from judging.core.sandbox.job import SandboxLimits
from judging.core.sandbox.pool import Sandbox

ITEM = RenderItem(
    {"question": "1+1?", "messages": [{"role": "user", "content": "1+1?"}], "tags": ["a", "b"], "n": 3},
    {"content": "2 {{ x }}"},
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxLimits(seconds=1)) as sandbox:
        yield sandbox


def seen(sandbox: Sandbox, template: str) -> TemplatePreview:
    return preview(sandbox, template, ITEM)


def test_substituted_parts_are_separated_from_the_templates_own_text(sandbox: Sandbox) -> None:
    assert seen(sandbox, "Q: {{ data.question }}\nA: {{ response.content }}!").pieces == (
        Piece("text", "Q: ", "", None),
        Piece("value", "1+1?", "data.question", 1),
        Piece("text", "\nA: ", "", None),
        Piece("value", "2 {{ x }}", "response.content", 2),
        Piece("text", "!", "", None),
    )


def test_undefined_and_none_are_kinds_of_their_own_with_lines(sandbox: Sandbox) -> None:
    shown = seen(sandbox, "{{ data.gt }}\n{{ data.other }}")
    assert shown.pieces[0] == Piece("none", "None", "data.gt", 1)
    assert shown.pieces[2] == Piece("undefined", "", "data.other", 2)
    assert (shown.none, shown.undefined) == ((NameAt("data.gt", 1),), (NameAt("data.other", 2),))


@pytest.mark.parametrize(
    "template",
    [
        "plain",
        "{{ data.question|upper }} {{ data.n + 1 }} {{ 'x' }} {{ 1 }}",
        "{% for t in data.tags %}{{ loop.index }}.{{ t }}\n{% endfor %}",
        "{% set x %}[{{ data.question }}]{% endset %}{{ x }}{{ x|length }}{{ x == '[1+1?]' }}",
        "{% filter upper %}a{{ response.content }}{% endfilter %}",
        "{% filter truncate(5, true, '') %}{{ data.question }}{{ data.gt }}{% endfilter %}",
        "{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(data.n) }}{{ m(data.gt)|length }}",
        "{% call(x) f() %}{{ x }}{% endcall %}{% macro f() %}({{ caller(1) }}){% endmacro %}",
        "{% block b %}{{ data.n }}{% endblock %}{{ self.b() }}",
        "{{ data.tags|join(', ') }}{{ data.tags }}{{ data.other }}",
        "{% if data.n > 2 %}{{ data.n }}{% else %}x{% endif %}\n",
        "{{ '\ue000\ue001' }}",
    ],
)
def test_joined_the_pieces_are_what_render_gives(template: str, sandbox: Sandbox) -> None:
    (made,) = render(sandbox, template, [ITEM], undefined="lenient")
    assert (made.error, seen(sandbox, template).text) == (None, made.text) or made.error == seen(
        sandbox, template
    ).error


def test_what_comes_before_an_error_is_still_shown(sandbox: Sandbox) -> None:
    shown = seen(sandbox, "a{{ data.n }}\n{{ 1 / 0 }}")
    assert shown.text == "a3\n"
    assert shown.error is not None
    assert shown.error.line == 2


def test_a_syntax_error_shows_no_pieces(sandbox: Sandbox) -> None:
    shown = seen(sandbox, "{{")
    assert shown.pieces == ()
    assert shown.error is not None
    assert shown.error.code == "syntax"


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("data.question|upper", "data.question"),
        ("data['tags'][0]", "data.tags[0]"),
        ("data.ref_answer or data.gt", "data.ref_answer"),
        ("max_score", "max_score"),
        ("'constant'", ""),
        ("data.question.strip()", "data.question"),
    ],
)
def test_a_piece_is_named_by_the_first_name_in_its_expression(
    expression: str, name: str, sandbox: Sandbox
) -> None:
    assert seen(sandbox, f"{{{{ {expression} }}}}").pieces[0].name == name
