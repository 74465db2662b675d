"""The reference pages agree with the code."""

import json
import re
from pathlib import Path

import pytest

from judging.core.rules import keywords
from judging.core.rules.functions import FUNCTIONS
from judging.core.rules.problems import PROBLEMS
from judging.core.rules.program import ARGUMENTS, Function
from tests.judging.core.rules.programs import codes

ROOT = Path(__file__).parents[4]
CHINESE = json.loads((ROOT / "evalsite/locale/zh_Hans/parts/rules.json").read_text(encoding="utf-8"))
PAGES = {
    language: (ROOT / "docs" / name).read_text(encoding="utf-8")
    for language, name in (("en", "rules.md"), ("zh", "rules.zh.md"))
}


def in_language(text: str, language: str) -> str:
    return str(CHINESE[text]) if language == "zh" else text


@pytest.mark.parametrize("language", PAGES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.code)
def test_a_function_is_in_the_table_with_its_argument_and_help(function: Function, language: str) -> None:
    name, other = function.name.both() if language == "zh" else reversed(function.name.both())
    found = (str(ARGUMENTS[function.argument]), str(function.help))
    argument, score = (in_language(text, language) for text in found)
    assert f"| `{name}` `{other}` | {argument} | {score} |" in PAGES[language]


@pytest.mark.parametrize("language", PAGES)
def test_every_error_and_every_setting_is_named(language: str) -> None:
    settings = [pair.in_language(language) for pair in keywords.OWN_NAMES]
    errors = {code.split(".")[0] for code in PROBLEMS}
    assert [name for name in (*settings, *errors) if f"`{name}" not in PAGES[language]] == []


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_the_programs_on_a_page_have_no_errors(page: str) -> None:
    programs = re.findall(r"```dsl\n(.*?)```", page, re.DOTALL)
    assert [codes(text) for text in programs] == [[], []]
