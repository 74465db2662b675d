"""All models of the app; each is defined in its room."""

from judging.metrics.models import Endpoint, Metric, MetricVersion
from judging.review.models import Override
from judging.runs.models import Chunk, Judgement, JudgeReply, Run, RunCandidate, RunMetric

__all__ = [
    "Chunk",
    "Endpoint",
    "JudgeReply",
    "Judgement",
    "Metric",
    "MetricVersion",
    "Override",
    "Run",
    "RunCandidate",
    "RunMetric",
]
