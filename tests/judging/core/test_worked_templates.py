"""Two worked examples: a template, a row with an answer, and the exact prompt they produce."""

import json
from pathlib import Path

import pytest

from datasets.core.variables import response_data, row_data
from judging.core.lint import lint
from judging.core.prompts import RenderItem, render
from judging.core.sandbox.pool import Sandbox

FOLDER = Path(__file__).with_name("worked")
EXAMPLES = ["single_turn", "multi_turn"]


def worked(name: str) -> tuple[str, RenderItem]:
    example = json.loads(FOLDER.joinpath(f"{name}.json").read_text())
    data = row_data(json.dumps(example["data"]), "judge_only")
    item = RenderItem(data, response_data(json.dumps(example["response"])))
    return FOLDER.joinpath(f"{name}.jinja").read_text(), item


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_worked_template_makes_exactly_its_prompt(name: str) -> None:
    template, item = worked(name)
    with Sandbox() as sandbox:
        (made,) = render(sandbox, template, [item])
    assert made.text == FOLDER.joinpath(f"{name}.txt").read_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_worked_template_has_no_finding_over_its_data(name: str) -> None:
    template, item = worked(name)
    with Sandbox() as sandbox:
        result = lint(sandbox, template, [(1, item)])
    assert (result.errors, result.warnings) == ((), ())
