"""Safe and exact parsing of JSON and XML, including malicious input."""

import pytest

from judging.core.rules.formats import NotInFormat, read_json, read_xml
from judging.core.rules.values import Number, json_text


def refusal_of_json(text: str) -> str:
    with pytest.raises(NotInFormat) as raised:
        read_json(text)
    return raised.value.reason


def refusal_of_xml(text: str, root: str = "") -> str:
    with pytest.raises(NotInFormat) as raised:
        read_xml(text, root)
    return raised.value.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not_json"),
        ("text", "not_json"),
        ("{'a': 1}", "not_json"),
        ('{"a": 1,}', "not_json"),
        ('{"a": 1} done', "not_json"),
        ('{"a": 1}{"b": 2}', "not_json"),
        ('```json\n{"a": 1}\n```', "not_json"),
        ('{"a": 01}', "not_json"),
        ('{"a": "\n"}', "not_json"),
        ('\ufeff{"a": 1}', "not_json"),
        ("[1]", "not_object"),
        ('"{}"', "not_object"),
        ("null", "not_object"),
        ('{"a": 1, "a": 1}', "duplicate_key"),
        ('{"b": {"a": 1, "\\u0061": 2}}', "duplicate_key"),
        ('{"a": NaN}', "not_a_number"),
        ('{"a": [-Infinity]}', "not_a_number"),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", "too_deep"),
        ('{"a": ' + '{"a": ' * 100 + "1" + "}" * 101, "too_deep"),
        ("[" * 200_000, "too_deep"),
        ('{"a":' * 200_000, "too_deep"),
    ],
)
def test_what_is_no_json_object_is_refused(text: str, reason: str) -> None:
    assert refusal_of_json(text) == reason


@pytest.mark.parametrize("around", ["", " \t\r\n", "\u3000\n"])
def test_white_space_around_an_object_is_allowed(around: str) -> None:
    assert read_json(around + '{"a": 1}' + around) == {"a": Number("1")}


def test_a_hundred_levels_are_read() -> None:
    assert read_json('{"a": ' + "[" * 99 + "]" * 99 + "}")


def test_numbers_keep_the_digits_they_are_written_with() -> None:
    text = '{"a": [1.50, 1E+2, -0, 0.1], "b": ' + "9" * 10_000 + "}"
    assert json_text(read_json(text)) == text


def test_a_place_is_reported_where_json_ends() -> None:
    with pytest.raises(NotInFormat) as raised:
        read_json('\n\n{"a": 1,\n "b" 2}')
    assert (raised.value.params["line"], raised.value.params["column"]) == ("4", "6")


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("<a>1</a>", {"a": "1"}),
        ("\n<a> 1 </a>\n\t<b/>\n", {"a": "1", "b": ""}),
        ("<a>1</a><b>x</b><a>2</a>", {"a": ["1", "2"], "b": "x"}),
        ("<a x='3'>1<i>2</i>3</a>", {"a": "123"}),
        ("<a>&lt;&amp;&#20013;</a>", {"a": "<&中"}),
        ("<a><![CDATA[<b>]]></a>", {"a": "<b>"}),
        ("<a>1<!-- not read -->2<?neither this?></a>", {"a": "12"}),
        ("<核心标签>电影</核心标签>", {"核心标签": "电影"}),
        ("<?xml version='1.0' encoding='gbk'?>\n<a>电影</a>", {"a": "电影"}),
        ("<fields><a>1</a></fields>", {"fields": "1"}),
    ],
)
def test_sibling_elements_are_fields(text: str, fields: object) -> None:
    assert read_xml(text) == fields


@pytest.mark.parametrize(
    "text", ["<r><a>1</a>\n<b>2</b></r>", "\n<?xml version='1.0'?>\n<r x='1'> <a>1</a><b>2</b></r> "]
)
def test_a_root_encloses_the_fields(text: str) -> None:
    assert read_xml(text, "r") == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no_element"),
        ("text", "text_between"),
        ("<a>1</a> and <b>2</b>", "text_between"),
        ("<a>1</a><!-- b -->", "text_between"),
        ("<a>1</a><?b c?>", "text_between"),
        ("<![CDATA[ ]]><a>1</a>", "text_between"),
        ("```xml\n<a>1</a>\n```", "text_between"),
        ("<a>1", "not_xml"),
        ("<a>1</b>", "not_xml"),
        ("<a x=1>1</a>", "not_xml"),
        ("<a>&nbsp;</a>", "not_xml"),
        ("<a>\0</a>", "not_xml"),
        ("<a>\ud800</a>", "not_xml"),
        ("<a>&#0;</a>", "not_xml"),
        ("<a/></fields><fields><b/>", "not_xml"),
        ("<a/></fields><!--", "not_xml"),
        ("</fields>", "not_xml"),
        ("<!DOCTYPE a><a>1</a>", "doctype"),
        ("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "doctype"),
        ("<a>" * 101 + "</a>" * 101, "too_deep"),
        ("<a>" * 200_000, "too_deep"),
    ],
)
def test_what_is_not_only_sibling_elements_is_refused(text: str, reason: str) -> None:
    assert refusal_of_xml(text) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<a>1</a>", "other_root"),
        ("<r><a>1</a></r><r><a>1</a></r>", "other_root"),
        ("<R><a>1</a></R>", "other_root"),
        ("<r>text</r>", "text_between"),
        ("<r><a>1</a>text</r>", "text_between"),
        ("<r/>", "no_element"),
        ("<r>" + "<a>" * 100 + "</a>" * 100 + "</r>", "too_deep"),
        ('<!DOCTYPE r SYSTEM "file:///etc/passwd"><r><a>1</a></r>', "doctype"),
    ],
)
def test_what_is_not_one_root_around_fields_is_refused(text: str, reason: str) -> None:
    assert refusal_of_xml(text, "r") == reason


def test_a_hundred_levels_of_elements_are_read() -> None:
    assert read_xml("<a>" * 100 + "x" + "</a>" * 100) == {"a": "x"}


@pytest.mark.parametrize(("text", "column"), [('{"a": }', 8), ('{"a": x}', 8), ('{"a": 1 2', 10), ("x", 2)])
def test_white_space_before_json_counts_for_the_place(text: str, column: int) -> None:
    with pytest.raises(NotInFormat) as raised:
        read_json(f"\n\n {text}")
    assert (raised.value.params["line"], raised.value.params["column"]) == ("3", str(column))


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ('{"a": 1,}', "trailing_comma", "8"),
        ('  {"a": [1, 2,]}', "trailing_comma", "14"),
        ("{'a': 1}", "single_quote", "2"),
        ('{"a": 1} // note', "comment", "10"),
        ('{"a": 1} done', "unexpected", "10"),
    ],
)
def test_what_keeps_a_text_from_being_json_is_named(text: str, problem: str, column: str) -> None:
    with pytest.raises(NotInFormat) as raised:
        read_json(text)
    assert (raised.value.params["problem"], raised.value.params["column"]) == (problem, column)


def test_json_may_nest_to_a_depth_of_100() -> None:
    assert list(read_json('{"a": ' + "[" * 99 + "]" * 99 + "}")) == ["a"]


def test_entities_cannot_multiply() -> None:
    declared = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE a [<!ENTITY e0 "x">{declared}]><a>&e9;</a>'
    assert refusal_of_xml(bomb) == refusal_of_xml(bomb, "a") == "doctype"


def test_a_place_is_reported_where_xml_ends() -> None:
    with pytest.raises(NotInFormat) as raised:
        read_xml("\n<a>1</a>\n <b>2</c>")
    assert raised.value.params["line"] == "3"
