"""When a run's results are final, and which state its readers see."""

import pytest

from judging.records.models import IMPORTED, PEOPLE, Run, RunState


@pytest.mark.parametrize(
    ("kind", "state", "scored", "complete", "shown"),
    [
        (PEOPLE, RunState.RUNNING, 4, True, RunState.FINISHED),
        (PEOPLE, RunState.RUNNING, 5, True, RunState.FINISHED),
        (PEOPLE, RunState.RUNNING, 3, False, RunState.RUNNING),
        (PEOPLE, RunState.FINISHED, 3, True, RunState.FINISHED),
        ("", RunState.RUNNING, 4, False, RunState.RUNNING),
        ("", RunState.CANCELLED, 3, True, RunState.CANCELLED),
        (IMPORTED, RunState.RUNNING, 4, False, RunState.RUNNING),
    ],
)
def test_an_evaluation_rated_to_its_end_has_finished_although_it_is_open(
    kind: str, state: RunState, scored: int, complete: bool, shown: RunState
) -> None:
    run = Run(kind=kind, state=state, total=4, scored=scored)
    assert (run.complete, run.shown_state) == (complete, shown)


def test_an_evaluation_without_items_is_not_complete() -> None:
    assert not Run(kind=PEOPLE, state=RunState.RUNNING, total=0).complete
