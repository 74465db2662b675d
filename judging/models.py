"""All models of the app; each is defined in its room."""

from judging.metrics.models import Endpoint, Metric, MetricVersion, TemplateLint
from judging.review.models import Override
from judging.runs.models import Chunk, Judgement, JudgeReply, Reading, Run, RunCandidate, RunMetric

__all__ = [
    "Chunk",
    "Endpoint",
    "JudgeReply",
    "Judgement",
    "Metric",
    "MetricVersion",
    "Override",
    "Reading",
    "Run",
    "RunCandidate",
    "RunMetric",
    "TemplateLint",
]
