"""The import sources; the first that recognises the files is used, so the catch-all `table` comes last."""

from collections.abc import Sequence

from datasets.core.imports import (
    alpaca_eval,
    arena_hard,
    argilla,
    every_eval_ever,
    evidence,
    healthbench,
    inspect_log,
    label_studio,
    lm_eval,
    mt_bench,
    openai_evals,
    promptfoo,
    table,
)
from datasets.core.imports.model import Source, SourceFile

SOURCES: tuple[Source, ...] = (
    lm_eval.SOURCE,
    inspect_log.SOURCE,
    promptfoo.SOURCE,
    mt_bench.SOURCE,
    alpaca_eval.SOURCE,
    arena_hard.SOURCE,
    openai_evals.SOURCE,
    label_studio.SOURCE,
    argilla.SOURCE,
    every_eval_ever.SOURCE,
    healthbench.SOURCE,
    evidence.SOURCE,
    table.SOURCE,
)


def recognise(files: Sequence[SourceFile]) -> Source | None:
    """The source that recognises all files by their content; None if there is none."""
    return next((source for source in SOURCES if files and source.recognise(files)), None)


def source_named(name: str) -> Source | None:
    """The source with this name, or None."""
    return next((source for source in SOURCES if source.name == name), None)
