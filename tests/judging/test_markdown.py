"""Safe rendering of Markdown written by models."""

from __future__ import annotations

import time

import pytest
from django.utils import translation
from django.utils.html import escape

from judging.markdown import LANGUAGES, LONGEST, PAGE_MARKUP, MarkupBudget, html_of
from judging.markdown_formulas import mathml


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold**", "<p><strong>bold</strong></p>"),
        ("a\nb", "<p>a<br>\nb</p>"),
        ("- a", "<ul>\n<li>a</li>\n</ul>"),
        ("`x < y`", "<p><code>x &lt; y</code></p>"),
        ("# 标题", "<h1>标题</h1>"),
        ("~~no~~", "<p><s>no</s></p>"),
    ],
)
def test_what_is_written_is_shown(text: str, html: str) -> None:
    assert html_of(text).strip() == html


def test_stressed_chinese_is_marked_for_the_stylesheet() -> None:
    assert html_of("*不同* *other*").strip() == '<p><em lang="zh">不同</em> <em>other</em></p>'


def test_tables_are_tables() -> None:
    assert "<td>1</td>" in html_of("| a |\n|---|\n| 1 |")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<b onclick='x'>b</b>",
        "<!-- hidden -->",
        "<style>body{display:none}</style>",
        '<a href="javascript:x">x</a>',
    ],
)
def test_raw_html_is_shown_and_not_interpreted(text: str) -> None:
    html = html_of(text)
    assert text[:2] not in html
    assert "&lt;" in html


@pytest.mark.parametrize("target", ["javascript:alert(1)", "data:text/html,x", "vbscript:x", "JaVaScRiPt:x"])
def test_a_link_leads_to_pages_only(target: str) -> None:
    assert "href" not in html_of(f"[x]({target})")


def test_a_picture_is_a_link_so_nothing_is_fetched() -> None:
    html = html_of("![a cat](http://example.org/cat.png)")
    assert "<img" not in html
    assert '<a href="http://example.org/cat.png"' in html
    assert "a cat</a>" in html


def test_a_link_reveals_nothing_to_the_other_site() -> None:
    assert 'rel="noopener noreferrer nofollow"' in html_of("[x](https://example.org)")


PLAIN_NOTE = '<p class="quiet-text">Shown as plain text: too long or too complex to format.</p>'


@pytest.mark.parametrize(
    "text", ["*a* " * LONGEST, "*" * (PAGE_MARKUP + 1), "> " * 20 + "deep", "- " * 11 + "deep"]
)
def test_a_text_that_costs_too_much_is_shown_whole_and_plain_and_says_so(text: str) -> None:
    html = html_of(text)
    assert html == f'{PLAIN_NOTE}<div class="text">{escape(text)}</div>'


def test_the_note_is_in_the_readers_language() -> None:
    with translation.override("zh-hans"):
        assert "以纯文本显示" in html_of("*" * (PAGE_MARKUP + 1))


def test_a_long_text_without_markup_is_formatted() -> None:
    assert html_of("字" * LONGEST).startswith("<p>字")


def test_texts_of_a_page_share_what_they_may_cost() -> None:
    budget = MarkupBudget()
    budget.markup.left = 5
    assert "<em>" in html_of("*a*", budget)
    assert "<em>" in html_of("*a*", budget)
    assert html_of("*a*", budget).startswith(PLAIN_NOTE)


def test_code_beyond_what_a_page_may_cost_stays_plain_and_says_so() -> None:
    html = html_of("```python\n" + "x = 1\n" * 2_000 + "```")
    assert html.startswith('<p class="quiet-text">Some formulas or code are shown unformatted')
    assert "<pre><code>x = 1\n" in html


def test_formulas_beyond_what_a_page_may_cost_stay_as_written() -> None:
    budget = MarkupBudget()
    budget.extras.left = 20
    html = html_of("$x$ $y$ $z$", budget)
    assert html.startswith('<p class="quiet-text">Some formulas or code are shown unformatted')
    assert "<math" in html
    assert html.endswith("<code>z</code></p>\n")


def test_long_formulas_cost_more_than_their_length() -> None:
    """Nested roots take the converter up to quadratic time."""
    html = html_of((r"$" + r"\sqrt{" * 300 + "$\n\n") * 20)
    assert html.startswith('<p class="quiet-text">Some formulas or code are shown unformatted')


@pytest.mark.parametrize(
    "latex",
    [
        r"\def\a{xx}\def\b{\a\a}\b",
        r"\newcommand{\a}{x}\a",
        r"\renewcommand\a{x}",
        r"\DeclareMathOperator{\a}{x}\a",
        r"\newenvironment{a}{x}{y}\begin{a}z\end{a}",
    ],
)
def test_a_formula_defines_nothing(latex: str) -> None:
    """Macro definitions are refused, since recursive ones expand without end."""
    assert mathml(latex, display=False) is None


FULL_OF = [
    *(
        r"\(",
        r"\)",
        r"\[",
        r"\]",
        "$",
        "$$",
        "$a",
        "$$ a\n",
        r"\(a" + "\n\n",
        r"\[ a" + "\n",
        r"- \[" + "\n",
        "$x$ ",
    ),
    *(
        "*a",
        "**a",
        "_a ",
        "*a_",
        "~~a",
        "`",
        "`a``",
        "[",
        "[a](",
        "[a](<b",
        '[a](b "',
        "![",
        "[x]: ",
        "[a]:\n",
    ),
    *(
        "<",
        "<a ",
        "<!--",
        "<http://a",
        "&#",
        "&a;",
        "\\",
        "> a\n",
        "- a\n",
        "1. a\n",
        "# a\n",
        "| a ",
        "a|b\n-|-\n",
    ),
    *(
        "```\n",
        "```python\n",
        "    a\n",
        "\t",
        "\n",
        " ",
        "  \n",
        "(",
        "{",
        r"$\frac{a}{b}$ ",
        "$$\nx\n$$\n\n",
    ),
]


@pytest.mark.parametrize("part", FULL_OF)
def test_a_text_full_of_delimiters_takes_no_longer_than_its_length(part: str) -> None:
    """Quadratic algorithms would take several seconds of processor time at this length."""
    text = (part * 10_000)[:10_000]
    began = time.thread_time()
    html_of("x" + text + "x" + text[::-1])
    assert time.thread_time() - began < 1


@pytest.mark.parametrize("text", ["$x^2$", r"\(x^2\)", "设$x^2$，则"])
def test_a_formula_in_a_line_is_mathml(text: str) -> None:
    assert '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>' in html_of(text)


@pytest.mark.parametrize(
    "text",
    [
        *("$$x$$", "$$\nx\n$$", r"\[ x \]", "so $$x$$ it is", r"so \[x\] it is", "so\n$$\nx\n$$\nit is"),
        *("so\n\\[\nx\n\\]\nit is", "> \\[\n> x\n> \\]", "- $$\n  x\n  $$", "1. so\n   \\[\n   x\n   \\]"),
    ],
)
def test_a_formula_of_its_own_is_shown_large(text: str) -> None:
    assert '<math display="block"><mrow><mi>x</mi></mrow></math>' in html_of(text)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (r"\[ x \] is true", " is true</p>"),
        ("$$x$$ (1)", " (1)</p>"),
        ("$$x$$\nb", "<p>b</p>"),
        (r"\[x\].", ".</p>"),
    ],
)
def test_what_follows_a_formula_is_shown(text: str, rest: str) -> None:
    html = html_of(text).strip()
    assert '<math display="block">' in html
    assert html.endswith(rest)


def test_lines_of_a_formula_that_look_like_a_list_belong_to_it() -> None:
    assert html_of("So\n\\[\na\n- b\n\\]").count("<mi>") == 2


def test_a_formula_does_not_reach_beyond_its_list_item() -> None:
    html = html_of("- \\[\n- a\n\n\\]")
    assert "<math" not in html
    assert html.count("<li>") == 2


def test_a_line_break_before_a_bracket_ends_no_formula() -> None:
    assert html_of(r"\(a \\) b\)").count("<math") == 1


@pytest.mark.parametrize("text", ["It costs $5 and $10.", "价格是$5，优惠后$3。", "a $ b $ c"])
def test_money_is_no_formula(text: str) -> None:
    assert html_of(text).strip() == f"<p>{text}</p>"


def test_in_code_a_dollar_is_a_dollar() -> None:
    assert "<code>$x$</code>" in html_of("`$x$`")


@pytest.mark.parametrize(
    "latex", [r"\href{javascript:alert(1)}{x}", r"\style{color:red}{x}", r"\class{page}{x}"]
)
def test_a_formula_brings_no_attribute_of_its_own(latex: str) -> None:
    html = html_of(f"${latex}$")
    assert "<mi>x</mi>" in html
    assert not any(word in html for word in ("javascript", "style=", "class="))


@pytest.mark.parametrize("latex", ["{" * 1500, r"\frac{1}{" * 180, r"\begin{nothing}x"])
def test_what_is_no_formula_is_shown_as_written(latex: str) -> None:
    assert f"<code>{latex}</code>" in html_of(f"${latex}$")


def test_code_in_a_named_language_is_coloured() -> None:
    assert '<span class="t-k">def</span>' in html_of("```python\ndef f(): pass\n```")


@pytest.mark.parametrize("language", ["nosuch", "autoit", "csharp"])
def test_code_in_an_unknown_language_or_one_that_costs_too_much_stays_plain(language: str) -> None:
    assert html_of(f"```{language}\n<b>\n```").strip() == "<pre><code>&lt;b&gt;\n</code></pre>"


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_listed_language_is_known(language: str) -> None:
    assert html_of(f"```{language}\nx = 1\n```").startswith("<pre><code>")


@pytest.mark.parametrize("part", ["\n", "a\n", " \n", "a.", "(", "'\\"])
def test_the_code_of_a_page_is_coloured_in_bounded_time(part: str) -> None:
    began = time.thread_time()
    for language in ("python", "c", "java", "typescript", "make"):
        html_of(f"```{language}\n" + part * 1_500 + "\n```\n")
    assert time.thread_time() - began < 3


def test_a_json_object_keeps_its_indents_and_its_stars() -> None:
    html = html_of('{\n  "a": "*b*"\n}')
    assert "<em>" not in html
    assert '\n<span class="t-w">  </span>' in html
