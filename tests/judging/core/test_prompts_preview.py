"""The live preview: the same text, taken apart."""

from collections.abc import Iterator

import pytest

from judging.core.jail.job import Limits
from judging.core.jail.pool import Jail
from judging.core.prompts import NameAt, Piece, Preview, RenderItem, preview, render

ITEM = RenderItem(
    {"question": "1+1?", "messages": [{"role": "user", "content": "1+1?"}], "tags": ["a", "b"], "n": 3},
    {"content": "2 {{ x }}"},
)


@pytest.fixture(scope="module")
def jail() -> Iterator[Jail]:
    with Jail(Limits(seconds=1)) as jail:
        yield jail


def seen(jail: Jail, template: str) -> Preview:
    return preview(jail, template, ITEM)


def test_substituted_parts_are_told_from_the_templates_own_text(jail: Jail) -> None:
    assert seen(jail, "Q: {{ data.question }}\nA: {{ response.content }}!").pieces == (
        Piece("text", "Q: ", "", None),
        Piece("value", "1+1?", "data.question", 1),
        Piece("text", "\nA: ", "", None),
        Piece("value", "2 {{ x }}", "response.content", 2),
        Piece("text", "!", "", None),
    )


def test_undefined_and_none_are_kinds_of_their_own_with_lines(jail: Jail) -> None:
    shown = seen(jail, "{{ data.gt }}\n{{ data.other }}")
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
def test_joined_the_pieces_are_what_render_gives(template: str, jail: Jail) -> None:
    (made,) = render(jail, template, [ITEM], undefined="lenient")
    assert (made.error, seen(jail, template).text) == (None, made.text) or made.error == seen(
        jail, template
    ).error


def test_what_comes_before_an_error_is_still_shown(jail: Jail) -> None:
    shown = seen(jail, "a{{ data.n }}\n{{ 1 / 0 }}")
    assert shown.text == "a3\n"
    assert shown.error is not None
    assert shown.error.line == 2


def test_a_syntax_error_shows_no_pieces(jail: Jail) -> None:
    shown = seen(jail, "{{")
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
def test_a_piece_is_named_by_the_first_name_in_its_expression(expression: str, name: str, jail: Jail) -> None:
    assert seen(jail, f"{{{{ {expression} }}}}").pieces[0].name == name
