"""Exports of a run's scores for other tools: Every Eval Ever samples and Inspect logs.

Both formats hold verdicts on single answers, so comparisons and verdicts without a value are omitted
(`not_held_sentences`). The files can be imported again with datasets.core.imports.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import Count, Q
from django.utils.translation import ngettext

from datasets.core.variables import conversation_for, reference_in, response_data
from evalsite.templatetags.show import number
from judging.core.metric_definition import MetricDefinition
from judging.core.values import SCORED
from judging.filters.conditions import matching
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.records import json_text
from judging.records.models import Run
from judging.records.stored_judgement import data_of
from judging.transfer.export.records import load, model_name
from judging.transfer.export.results import LINE_BYTES, ResultLine, lines_of, question_of

SCHEMA_VERSION = "0.2.2"
SEVERAL_MODELS = "none/none"
"""Inspect's model name if several models were evaluated; each sample's output has its own."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer with its row and the verdicts on it alone."""

    data: dict[str, Any]
    response: dict[str, Any]
    line: int
    model: str
    number: int
    verdicts: list[ResultLine]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation that this answer responds to, without the row's own answer."""
        messages = conversation_for(self.data["messages"], self.response)
        return messages[:-1] if messages and messages[-1]["role"] == "assistant" else messages

    @property
    def sample_id(self) -> str:
        row_id = self.data.get("id")
        return row_id if isinstance(row_id, str) and row_id else _text(row_id) or str(self.line)

    @property
    def fields(self) -> dict[str, Any]:
        """The row's custom fields."""
        own = ("messages", "ref_answer", "question", "gt", "history", "id")
        return {name: value for name, value in self.data.items() if name not in own}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _answers(run: Run, filters: Filters) -> Iterator[_Answer]:
    """Yield answers ordered by row, candidate and number. Memory holds one answer's judgements."""
    by_response = groupby(load(run, filters, texts=True), lambda loaded: loaded.judgement.response_id)
    for _response, group in by_response:
        judgements = list(group)
        verdicts = [
            line
            for _question, about in groupby(judgements, question_of)
            for line in lines_of(run, list(about))
            if line["value"] is not None and line["other_model"] is None
        ]
        if verdicts:
            judgement = judgements[0].judgement
            yield _Answer(
                data=data_of(judgement.row.raw, run.version.format),
                response=response_data(judgement.response.raw),
                line=judgement.row.line,
                model=model_name(judgement.candidate),
                number=judgement.response.number,
                verdicts=verdicts,
            )


def _shared(run: Run) -> set[str]:
    """Names of metrics with more than one judge, rater or source."""
    if not run.imported and not run.by_people:
        metrics = [MetricDefinition.from_json(metric.definition) for metric in run.metrics.all()]
        return {
            metric.name
            for metric in metrics
            if metric.votes > 1 or (metric.judges and metric.scored_by_script)
        }
    author = "source" if run.imported else "rater"
    authors = run.judgements.order_by().values_list("run_metric__name", author).distinct()
    return {name for name, count in Counter(name for name, _author in authors).items() if count > 1}


def _named(verdicts: list[ResultLine], shared: set[str]) -> Iterator[tuple[str, ResultLine]]:
    """Verdicts with unique names: the metric, the judge if the metric has several, and the number of the repeat."""
    seen: Counter[str] = Counter()
    for line in verdicts:
        name, who = str(line["metric"]), line.get("judge") or line.get("rater")
        if name in shared and who != "combined":
            name = f"{name} ({who})"
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} #{seen[name]}", line


def every_eval_ever_lines(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """Yield a line for each numeric or boolean verdict on an answer (instance-level schema)."""
    tops = {metric.name: MetricDefinition.from_json(metric.definition) for metric in run.metrics.all()}
    shared = _shared(run)
    for answer in _answers(run, filters):
        for name, line in _named(answer.verdicts, shared):
            if isinstance(line["value"], bool | int | float):
                sample = _sample(run, answer, name, line, tops[line["metric"]])
                yield json_text.dumps(sample, LINE_BYTES) + b"\n"


def _sample(
    run: Run, answer: _Answer, name: str, line: ResultLine, metric: MetricDefinition
) -> dict[str, Any]:
    user_messages = [message for message in answer.messages if message["role"] == "user"]
    question = _text(answer.data["question"])
    reference = _text(reference_in(answer.data))
    several = len(answer.messages) > 1
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{run.version.dataset.name}/{answer.model}/{int(run.created_at.timestamp())}",
        "model_id": answer.model,
        "evaluation_name": name,
        "evaluation_result_id": f"{run.pk}/{name}",
        "sample_id": answer.sample_id,
        "sample_hash": hashlib.sha256((question + reference).encode("utf-8", "replace")).hexdigest(),
        "interaction_type": "multi_turn" if several else "single_turn",
        "input": {"raw": question, "reference": [reference] if reference else []},
        "output": None if several else _output(answer.response),
        "messages": _transcript(answer) if several else None,
        "answer_attribution": [],
        "evaluation": {
            "score": float(line["value"]),
            "is_correct": _is_correct(line["value"], metric),
            "num_turns": len(user_messages) if several else None,
        },
        "metadata": _metadata(answer, line),
    }


def _output(response: Mapping[str, Any]) -> dict[str, Any]:
    reasoning = response["reasoning_content"]
    return {"raw": [response["content"]], "reasoning_trace": [reasoning] if reasoning else None}


def _transcript(answer: _Answer) -> list[dict[str, Any]]:
    spoken = [(message["role"], _text(message["content"]), None) for message in answer.messages]
    spoken.append(("assistant", answer.response["content"], answer.response["reasoning_content"]))
    return [
        {"turn_idx": turn, "role": role, "content": content, "reasoning_trace": reasoning}
        for turn, (role, content, reasoning) in enumerate(spoken)
    ]


def _is_correct(value: Any, metric: MetricDefinition) -> bool:
    """Whether the value is the top of the declared scale; without a scale, 1 or more."""
    return bool(value >= (metric.max_score if metric.scale_declared else 1))


def _metadata(answer: _Answer, line: ResultLine) -> dict[str, str]:
    """The row's fields, the judge and its reasoning; the schema allows only strings here."""
    author = {name: line.get(name) for name in ("judge", "rater", "reasoning")}
    metadata = answer.fields | {name: value for name, value in author.items() if value}
    return {str(name): _text(value) for name, value in metadata.items() if value is not None}


def inspect_blocks(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """Yield a JSON log, sample by sample. Epochs number the answers to a row, across all models."""
    head = json_text.dumps(_header(run), LINE_BYTES)
    yield head[:-1] + b',"samples":['
    between = b""
    epochs: Counter[int] = Counter()
    shared = _shared(run)
    for answer in _answers(run, filters):
        epochs = Counter({answer.line: epochs[answer.line] + 1})
        yield between + json_text.dumps(_inspect_sample(answer, epochs[answer.line], shared), LINE_BYTES)
        between = b",\n"
    yield b"]}\n"


def _header(run: Run) -> dict[str, Any]:
    names = sorted(
        {model_name(entry.candidate) for entry in run.run_candidates.select_related("candidate__version")}
    )
    started, ended = run.started_at or run.created_at, run.finished_at or run.created_at
    spec = {
        "eval_id": f"run-{run.pk}",
        "run_id": f"run-{run.pk}",
        "created": run.created_at.isoformat(),
        "task": run.name,
        "task_id": f"run-{run.pk}",
        "task_version": run.version.number,
        "task_attribs": {},
        "task_args": {},
        "dataset": {"name": run.version.dataset.name, "samples": run.version.valid_rows},
        "model": names[0] if len(names) == 1 else SEVERAL_MODELS,
        "model_args": {},
        "config": {},
        "metadata": {"models": names},
    }
    return {
        "version": 2,
        "status": "success",
        "eval": spec,
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": run.rows, "completed_samples": run.rows, "scores": []},
        "stats": {"started_at": started.isoformat(), "completed_at": ended.isoformat(), "model_usage": {}},
    }


def _inspect_sample(answer: _Answer, epoch: int, shared: set[str]) -> dict[str, Any]:
    reasoning, text = answer.response["reasoning_content"], answer.response["content"]
    parts = [{"type": "reasoning", "reasoning": reasoning}, {"type": "text", "text": text}]
    message = {"role": "assistant", "content": parts if reasoning else text, "source": "generate"}
    conversation = [{"role": turn["role"], "content": _text(turn["content"])} for turn in answer.messages]
    return {
        "id": answer.sample_id,
        "epoch": epoch,
        "input": conversation if len(conversation) > 1 else _text(answer.data["question"]),
        "target": _text(reference_in(answer.data)),
        "messages": [*conversation, message],
        "output": {"model": answer.model, "choices": [{"message": message, "stop_reason": "stop"}]},
        "scores": {name: _score(line) for name, line in _named(answer.verdicts, shared)},
        "metadata": answer.fields,
        "store": {},
        "events": [],
        "attachments": {},
    }


def _score(line: ResultLine) -> dict[str, Any]:
    author = {name: line[name] for name in ("judge", "rater") if line.get(name)}
    return {"value": line["value"], "explanation": line.get("reasoning"), "metadata": author}


def not_held_sentences(run: Run, filters: Filters, form: str) -> list[str]:
    """Sentences on the judgements that the format of another tool cannot hold; empty for other formats."""
    if form not in ("every_eval_ever", "inspect"):
        return []
    scored, compares = Q(state_in_force=SCORED), Q(other_response__isnull=False)
    counts = matching(run, filters).aggregate(
        compared=Count("pk", filter=compares),
        unscored=Count("pk", filter=~scored & ~compares),
        labels=Count("pk", filter=scored & ~compares & Q(score_in_force=None)),
    )
    sentences = []
    if count := counts["compared"]:
        sentences.append(ngettext("%(n)s comparison.", "%(n)s comparisons.", count) % {"n": number(count)})
    if count := counts["unscored"]:
        text = ngettext("%(n)s judgement without a value.", "%(n)s judgements without a value.", count)
        sentences.append(text % {"n": number(count)})
    if form == "every_eval_ever" and (count := counts["labels"]):
        text = ngettext(
            "%(n)s category that is not a number.", "%(n)s categories that are not numbers.", count
        )
        sentences.append(text % {"n": number(count)})
    return sentences
