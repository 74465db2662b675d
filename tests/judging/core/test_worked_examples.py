"""Where a worked example is put in a template."""

from __future__ import annotations

import pytest

from judging.core.builtin import BUILTINS
from judging.core.worked_examples import as_text, with_example

EXAMPLE = "Example\nQuestion: 1+1?"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (
            "Judge.\n\nAnswer:\n{{ response.content }}\n",
            f"Judge.\n\n{EXAMPLE}\n\nAnswer:\n{{{{ response.content }}}}\n",
        ),
        ("{% if data %}x{% endif %}", f"{EXAMPLE}\n\n{{% if data %}}x{{% endif %}}"),
        ("Judge.\n", f"Judge.\n\n{EXAMPLE}\n"),
        ("", f"\n\n{EXAMPLE}\n"),
    ],
)
def test_an_example_stands_before_the_material(template: str, expected: str) -> None:
    assert with_example(template, EXAMPLE) == expected


def test_an_example_is_taken_once() -> None:
    template = with_example("Judge.\n\n{{ response.content }}", EXAMPLE)
    assert with_example(template, EXAMPLE) == template


def test_a_further_example_follows_one_with_braces() -> None:
    braces = as_text("Example\nAnswer: {{x}} and {%y%}")
    template = with_example(with_example("Judge.\n\n{{ response.content }}", braces), EXAMPLE)
    assert template == f"Judge.\n\n{braces}\n\n{EXAMPLE}\n\n{{{{ response.content }}}}"


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_an_example_is_told_apart_from_what_a_builtin_template_judges(name: str) -> None:
    source = BUILTINS[name].source
    before, _example, after = with_example(source, EXAMPLE).partition(EXAMPLE)
    assert before + after.removeprefix("\n\n") == source
    assert "BEGINS -----" not in before
