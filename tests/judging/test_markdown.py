"""Markdown that models wrote, made safe."""

from __future__ import annotations

import pytest

from judging.markdown import LONGEST, html_of


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
def test_raw_html_is_shown_and_not_obeyed(text: str) -> None:
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


def test_a_link_tells_the_other_site_nothing() -> None:
    assert 'rel="noopener noreferrer nofollow"' in html_of("[x](https://example.org)")


def test_a_very_long_text_is_shown_as_it_is_written() -> None:
    html = html_of("*a* " * LONGEST)
    assert "<em>" not in html
    assert html.startswith('<div class="text">*a* ')


@pytest.mark.parametrize("text", ["$x^2$", r"\(x^2\)", "设$x^2$，则"])
def test_a_formula_in_a_line_is_mathml(text: str) -> None:
    assert '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>' in html_of(text)


@pytest.mark.parametrize("text", ["$$x$$", "$$\nx\n$$", r"\[ x \]", "so $$x$$ it is"])
def test_a_formula_of_its_own_is_shown_large(text: str) -> None:
    assert '<math display="block"><mrow><mi>x</mi></mrow></math>' in html_of(text)


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


def test_code_in_an_unknown_language_stays_plain() -> None:
    assert html_of("```nosuch\n<b>\n```").strip() == "<pre><code>&lt;b&gt;\n</code></pre>"


def test_a_json_object_keeps_its_indents_and_its_stars() -> None:
    html = html_of('{\n  "a": "*b*"\n}')
    assert "<em>" not in html
    assert '\n<span class="t-w">  </span>' in html
