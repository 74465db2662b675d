"""What an evaluation's page asks of its organisers."""

from __future__ import annotations

from typing import Any

from judging.people.gold_rule import gold_items_right
from judging.people.models import Evaluation, EvaluationRater
from judging.people.progress import Hits
from judging.people.qualification.selectors import failed_tries, lacks_gold
from judging.people.questions.selectors import open_questions


def organiser_notices(evaluation: Evaluation) -> dict[str, Any]:
    """For the page: raters who miss the pass mark of gold, failed tries at the qualification, whether it lacks gold,
    and the number of unanswered questions."""
    return {
        "missed": _missed(evaluation),
        "failed_tries": failed_tries([evaluation.pk]),
        "lacks_gold": lacks_gold(evaluation),
        "open_questions": open_questions([evaluation.pk])[evaluation.pk],
    }


def _missed(evaluation: Evaluation) -> list[tuple[EvaluationRater, Hits]]:
    """The raters who miss the pass mark of gold, each with the gold items that are right."""
    missed = list(evaluation.raters.filter(left_at=None).exclude(gold_failed_at=None).order_by("pk"))
    right = gold_items_right(evaluation) if missed else {}
    return [(rater, right.get(rater.pk, Hits())) for rater in missed]
