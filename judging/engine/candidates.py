"""Candidate models that generate answers in a run: validation and freezing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from datasets.models import Candidate
from evalsite.accounts.models import Project
from judging.core.candidates import MOST_ANSWERS, CandidateModel
from judging.endpoints.models import Endpoint
from judging.engine.budget import MILLION
from judging.records.json_text import as_json
from judging.records.models import INFER, Run, RunCandidate


def refuse_impossible_candidates(
    uploaded: Sequence[Candidate], candidate_models: Sequence[CandidateModel]
) -> None:
    """Raise ValidationError if candidates have duplicate names or invalid settings."""
    names = [candidate.name for candidate in uploaded] + [model.name for model in candidate_models]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValidationError(
            _("Two candidates are named %(name)s. Rename the model that generates answers.")
            % {"name": twice[0]}
        )
    if any(not model.name.strip() or not 1 <= model.n <= MOST_ANSWERS for model in candidate_models):
        raise ValidationError(
            _("Each model that generates answers needs a name and 1 to %(most)s answers per row.")
            % {"most": MOST_ANSWERS}
        )


def frozen_candidate(project: Project, candidate: CandidateModel) -> CandidateModel:
    """The candidate with its endpoint's URL, model and parameters copied into it. The API key is not copied."""
    if candidate.endpoint is None:
        return candidate
    endpoint = Endpoint.objects.get(pk=candidate.endpoint, project=project)
    return msgspec.structs.replace(
        candidate,
        url=endpoint.url,
        protocol=endpoint.protocol,
        model=candidate.model or endpoint.model,
        params={**endpoint.params, **candidate.params},
    )


def source_of(run: Run) -> str:
    """The `source` (see datasets.models.Candidate) of candidates whose answers a run generates."""
    return f"run{run.pk}"


def candidates_create(run: Run, candidate_models: Sequence[CandidateModel]) -> None:
    """Create the run's own candidates, which versions don't list. Planning creates the responses for their answers."""
    for model in candidate_models:
        candidate = Candidate.objects.create(version=run.version, name=model.name, source=source_of(run))
        definition = frozen_candidate(run.project, model).to_json()
        RunCandidate.objects.create(run=run, candidate=candidate, definition=definition)


@dataclass(frozen=True, slots=True)
class GeneratingCandidate:
    """A model that generates answers in a run, with its `counts` so far. `money`: None if it has no price."""

    model: CandidateModel
    counts: RunCandidate
    wanted: int
    money: float | None

    @property
    def params_json(self) -> str:
        return as_json(self.model.params) if self.model.params else ""


def generating_candidates(run: Run) -> list[GeneratingCandidate]:
    """The models that generate answers in the run, by name. The run's token counts include theirs."""
    if run.kind != INFER:
        return []
    run_candidates = RunCandidate.objects.filter(run=run).exclude(definition="").select_related("candidate")
    return [
        _generating_candidate(run, run_candidate)
        for run_candidate in run_candidates.order_by("candidate__name")
    ]


def _generating_candidate(run: Run, counts: RunCandidate) -> GeneratingCandidate:
    model = CandidateModel.from_json(counts.definition)
    price = run.prices.get(str(model.endpoint))
    money = None
    if price:
        money = (counts.prompt_tokens * price[0] + counts.completion_tokens * price[1]) / MILLION
    return GeneratingCandidate(model, counts, counts.candidate.responses, money)
