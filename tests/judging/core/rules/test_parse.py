import pytest

from judging.core.rules.functions import FUNCTIONS
from judging.core.rules.program import Format, Function, Length, RuleText
from tests.judging.core.rules.programs import codes, program, with_lines


@pytest.mark.parametrize(
    "text", ["\ufeff# DSL\n", "  # DSL \t\n", "# DSL\r\n", "\n\n# DSL\n", "\u3000# DSL\n"]
)
def test_white_space_and_a_byte_order_mark_around_the_first_line_are_ignored(text: str) -> None:
    assert codes(f"{text}a:精确匹配\n@格式限制:JSON") == []


@pytest.mark.parametrize("line", ["a:精确匹配", "a：精确匹配", " a : 精确匹配 ", "a\t：\t精确匹配\r"])
def test_either_colon_with_blanks_around_it_parts_a_line(line: str) -> None:
    assert program(with_lines(line)) == program(with_lines("a:精确匹配"))


def test_blank_lines_are_ignored() -> None:
    assert program("# DSL\n\n\na:精确匹配\n  \n@格式限制:JSON\n\n") == program(with_lines("a:精确匹配"))


@pytest.mark.parametrize("argument", ["12:30", "https://a.b/c?d=e", "a：b", "（是，否）"])
def test_only_the_first_two_colons_part_a_line(argument: str) -> None:
    assert program(with_lines(f"a:常量等于:{argument}")).rules[0].argument == argument


@pytest.mark.parametrize(
    ("argument", "length"),
    [
        ("60", Length(0, 60)),
        ("(20, 60)", Length(20, 60)),
        ("（20，60）", Length(20, 60)),
        ("(20,60）", Length(20, 60)),
        ("( 0 , 0 )", Length(0, 0)),
    ],
)
def test_a_length_is_a_limit_or_a_range(argument: str, length: Length) -> None:
    assert program(with_lines(f"a:字数限制:{argument}")).rules[0].argument == length


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("@格式限制:JSON", Format("json")),
        ("@format: XML", Format("xml")),
        ("@格式限制：XML：内容", Format("xml", "内容")),
        ("@format:XML:ns:root", Format("xml", "ns:root")),
    ],
)
def test_formats(written: str, form: Format) -> None:
    assert program(f"# DSL\na:精确匹配\n{written}").format == form


@pytest.mark.parametrize("word", ["字符串", "text"])
def test_the_text_format_has_two_names(word: str) -> None:
    assert program(f"# DSL\n@whole:精确匹配\n@format:{word}").format == Format("text")


def test_mean_is_the_aggregate_where_none_is_named() -> None:
    assert program("# DSL\na:精确匹配\n@格式限制:JSON").aggregate == "mean"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.code)
def test_every_function_is_called_in_both_languages(function: Function) -> None:
    argument = {"length": ":3", "format": ":XML", "constant": ":x", "rule": ":rule1", "code": ":code1"}
    blocks = "\n<rule1>\n</rule1>\n<code1>\ndef f(ref_answer, model_answer):\n    return 1\n</code1>"
    both = [
        program(with_lines(f"a:{word}{argument.get(function.argument, '')}") + blocks)
        for word in function.name.both()
    ]
    assert both[0] == both[1]


def test_the_languages_may_be_mixed() -> None:
    mixed = "# DSL\n@all:精确匹配\nb:length:3\n@aggregate:mode\n@格式限制: JSON"
    assert program(mixed) == program(with_lines("@全部字段:exact_match", "b:字数限制:3", aggregate="mode"))


def test_a_name_with_an_at_sign_that_is_none_of_ours_is_a_field() -> None:
    assert program(with_lines("@type:精确匹配")).rules[0].target.name == "@type"


def test_several_lines_of_one_field_are_several_rules() -> None:
    assert len(program(with_lines("a:精确匹配", "a:精确匹配", "a:字数限制:3")).rules) == 3


@pytest.mark.parametrize(
    ("between", "text"),
    [
        ("\n", ""),
        ("\n\n", ""),
        ("\n1. 甲\n\n 2. 乙 \n", "1. 甲\n\n 2. 乙 "),
        ("\n\n\na\n\n", "\n\na\n"),
        ("\r\na\r\nb\r\n", "a\r\nb"),
        ("\n<规则2>\n</规则2>\n<b>\n", "<规则2>\n</规则2>\n<b>"),
        ("\n@格式限制:XML\n# DSL\n", "@格式限制:XML\n# DSL"),
    ],
)
def test_a_blocks_text_is_kept_exactly_less_one_newline_at_each_end(between: str, text: str) -> None:
    source = with_lines("a:自然语言规则:规则1") + f"\n<规则1>{between}</规则1>"
    assert program(source).rules[0].argument == RuleText("规则1", text)


def test_a_tag_may_have_blanks_around_it() -> None:
    source = with_lines("a:rule:rule 1") + "\n  <rule 1>  \ntext\n\t</rule 1>\r\n"
    assert program(source).rules[0].argument == RuleText("rule 1", "text")


def test_two_lines_may_use_one_block() -> None:
    source = with_lines("a:rule:规则1", "b:自然语言规则:规则1") + "\n<规则1>\nx\n</规则1>"
    assert [rule.argument for rule in program(source).rules] == [RuleText("规则1", "x")] * 2
