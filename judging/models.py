"""All models of the app, which are defined in its packages."""

from judging.comparison.models import ComparedCell, Comparison
from judging.endpoints.models import Endpoint, EndpointLoad, EndpointShare
from judging.metrics.models import Metric, MetricVersion, TemplateLint
from judging.people.models import Adjudication, Assignment, Evaluation, EvaluationRater, Item, Rating
from judging.reports.models import KeptFigures, KeptMeans, KeptPart, ReportLink, RunOutcome
from judging.review.models import ListColumns, SavedView
from judging.runs.models import (
    CachedReply,
    Chunk,
    Generation,
    Judgement,
    JudgeReply,
    Override,
    Reading,
    Rejudging,
    Run,
    RunCandidate,
    RunMetric,
    VerdictSource,
)
from judging.runs.results_import.models import ResultsImport
from judging.runs.teamwork.models import Comment, Mark, Notice, ReviewAction

__all__ = [
    "Adjudication",
    "Assignment",
    "CachedReply",
    "Chunk",
    "Comment",
    "ComparedCell",
    "Comparison",
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
    "KeptPart",
    "ListColumns",
    "Mark",
    "Metric",
    "MetricVersion",
    "Notice",
    "Override",
    "Rating",
    "Reading",
    "Rejudging",
    "ReportLink",
    "ResultsImport",
    "ReviewAction",
    "Run",
    "RunCandidate",
    "RunMetric",
    "RunOutcome",
    "SavedView",
    "TemplateLint",
    "VerdictSource",
]
