"""All models of the app; each is defined in its room."""

from judging.endpoints.models import Endpoint, EndpointLoad, EndpointShare
from judging.metrics.models import Metric, MetricVersion, TemplateLint
from judging.people.models import Adjudication, Assignment, Evaluation, EvaluationRater, Item, Rating
from judging.reports.models import KeptFigures, KeptMeans, ReportLink, RunOutcome
from judging.runs.models import (
    CachedReply,
    Chunk,
    Generation,
    Judgement,
    JudgeReply,
    Override,
    Reading,
    Run,
    RunCandidate,
    RunMetric,
    VerdictSource,
)
from judging.runs.results_import.models import ResultsImport

__all__ = [
    "Adjudication",
    "Assignment",
    "CachedReply",
    "Chunk",
    "Endpoint",
    "EndpointLoad",
    "EndpointShare",
    "Evaluation",
    "EvaluationRater",
    "Generation",
    "Item",
    "JudgeReply",
    "Judgement",
    "KeptFigures",
    "KeptMeans",
    "Metric",
    "MetricVersion",
    "Override",
    "Rating",
    "Reading",
    "ReportLink",
    "ResultsImport",
    "Run",
    "RunCandidate",
    "RunMetric",
    "RunOutcome",
    "TemplateLint",
    "VerdictSource",
]
