"""docs/prompts.md agrees with the code: names, examples and modules."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from datasets.core.kinds import CATEGORY, COMPARISON, PASS_FAIL, SCORE
from datasets.core.variables import response_data, row_data
from judging.core.prompts import RenderItem, render
from judging.core.sandbox.allowed_imports import IMPORTABLE
from judging.core.sandbox.pool import Sandbox
from judging.core.sandbox.scripts import ARGUMENTS
from judging.core.scripts import load_failure, run_script
from judging.metrics.editor.judge_forms import PARSERS

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {
    language: (DOCS / name).read_text(encoding="utf-8")
    for language, name in (("en", "prompts.md"), ("zh", "prompts.zh.md"))
}
ROW = json.loads(re.findall(r"```json\n(.*?)```", PAGES["en"], re.DOTALL)[0])
REQUEST = {"messages": [{"role": "user", "content": "Rate it."}]}
REPLY = {"content": "Score: [[4]]"}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def data() -> dict[str, Any]:
    return row_data(json.dumps(ROW), "judge_only")


def response() -> dict[str, Any]:
    return response_data(json.dumps(ROW["model_outputs"][0]["responses"][0]))


def section(page: str, number: int) -> str:
    """The text below the n-th level-2 heading, counted from 1."""
    return page.split("\n## ")[number]


def examples(text: str) -> list[tuple[str, str, str]]:
    """(name, expression, value) of each table row."""
    return re.findall(r"^\| `([^`]+)` \|.*\| `([^`]+)` → `([^`]+)` \|$", text, re.MULTILINE)


def test_both_pages_have_the_same_examples_and_code() -> None:
    english, chinese = [
        re.findall(r"` → `[^`]+`", page) + re.findall(r"```(?s:.*?)```", page) for page in PAGES.values()
    ]
    assert english == chinese


@pytest.mark.parametrize("language", PAGES)
def test_every_name_of_a_template_has_an_example_that_holds(language: str, sandbox: Sandbox) -> None:
    found = examples(section(PAGES[language], 1))
    fields = {name.partition(".")[0] for name, _template, _value in found}
    assert fields | {"criteria", "other"} == {field.name for field in dataclasses.fields(RenderItem)}
    item = RenderItem(
        data=data(),
        response=response(),
        preprocess_result=8,
        judge_resps=(REPLY,),
        judge_reqs=(REQUEST,),
        min_score=1,
        max_score=10,
    )
    for _name, template, value in found:
        (rendered,) = render(sandbox, template, [item])
        assert (template, rendered.text) == (template, value.replace("⏎", "\n"))


@pytest.mark.parametrize("language", PAGES)
def test_every_parameter_of_a_script_has_an_example_that_holds(language: str, sandbox: Sandbox) -> None:
    found = examples(section(PAGES[language], 5))
    assert [name for name, _expression, _value in found] == [
        *ARGUMENTS["preprocess"],
        *[name for name in ARGUMENTS["postprocess"] if name not in ARGUMENTS["preprocess"]],
    ]
    item = {
        "data": data(),
        "resp": response(),
        "judge_reqs": [REQUEST],
        "judge_resps": [REPLY],
        "judge_models": [{"name": "deepseek", "judge_template_content": "Rate it."}],
        "results": [8],
    }
    for name, expression, value in found:
        source = f"def postprocess({name}):\n    return repr({expression})\n"
        (outcome,) = run_script(sandbox, "postprocess", source, [item])
        assert (expression, outcome.result) == (expression, value)


@pytest.mark.parametrize("language", PAGES)
def test_the_scripts_on_a_page_load(language: str, sandbox: Sandbox) -> None:
    before, after, between = re.findall(r"```python\n(.*?)```", PAGES[language], re.DOTALL)
    assert load_failure(sandbox, "preprocess", before) is None
    assert load_failure(sandbox, "preprocess", between) is None
    assert load_failure(sandbox, "postprocess", after) is None


@pytest.mark.parametrize("language", PAGES)
def test_exactly_the_importable_modules_are_listed(language: str) -> None:
    assert re.findall(r"`([\w.]+)`", section(PAGES[language], 7)) == sorted(IMPORTABLE)


@pytest.mark.parametrize("language", PAGES)
def test_the_ways_of_reading_a_reply_are_those_that_there_are(language: str) -> None:
    named = re.findall(r"^\| `(\w+)` \|", section(PAGES[language], 2), re.MULTILINE)
    kinds = [PASS_FAIL, SCORE, CATEGORY, COMPARISON]
    assert named == [*kinds, "parse", *(way for way, _label in PARSERS if way)]
