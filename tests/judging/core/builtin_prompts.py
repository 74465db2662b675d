"""The built-in templates, rendered without the sandbox."""

from typing import Any

import jinja2

from judging.core.answer_format import answer_format
from judging.core.builtin import BUILTINS, NAMES, PAIR, builtin
from judging.core.metric_definition import Label, MetricDefinition

ENVIRONMENT = jinja2.Environment(
    undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False
)


CRITERIA = [{"id": "1", "text": "names a dose", "points": 7, "tags": []}]


def rendered(
    name: str,
    content: str = "the answer",
    max_score: int = 10,
    source: str = "",
    criterion: dict[str, Any] | None = None,
    **fields: Any,
) -> str:
    """`criterion`: of a checklist, the only one that is asked about."""
    data = {"question": "the question", "gt": None, "ref_answer": None, "history": None} | fields
    answers = {"response": {"content": content}}
    if BUILTINS[name].kind == PAIR:
        answers = {"a": {"content": content}, "b": {"content": "the other"}}
    metric = MetricDefinition(
        name="m",
        max_score=max_score,
        gives=BUILTINS[name].gives,
        labels=(Label(label="good"), Label(label="bad")),
    )
    return ENVIRONMENT.from_string(source or builtin(name).source).render(
        data=data,
        **answers,
        **({"criterion": criterion} if criterion else {}),
        min_score=1.0,
        max_score=max_score,
        criteria=CRITERIA,
        answer_format=answer_format(metric, BUILTINS[name].language),
    )


def names_of(*kinds: str) -> list[str]:
    return [name for name in NAMES if BUILTINS[name].kind in kinds]
