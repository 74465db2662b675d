"""Results that are computed again because a licence or a seal changed."""

from __future__ import annotations

from django.db.models import F, Q

from datasets.models import Dataset
from evalsite.tasks import jobs
from judging.metrics.models import Metric
from judging.records.models import Run
from judging.reports.figures import JOB
from judging.reports.stored import OUTCOMES


def results_outdate(dataset: Dataset | None = None, metric: Metric | None = None) -> None:
    """Have reports computed again: of a data set's runs, whose labels of people are sealed or no longer, and of a
    metric's runs, whose means are corrected with its licence or no longer. The results of these in lists are computed
    now, since no page asks for them."""
    of_dataset = Q(version__dataset=dataset) if dataset else Q(pk__in=())
    of_metric = Q(metrics__metric_version__metric=metric) if metric else Q(pk__in=())
    runs = Run.objects.filter(of_dataset | of_metric)
    Run.objects.filter(pk__in=runs.values("pk")).update(revision=F("revision") + 1)
    listed = OUTCOMES.all().filter(subject__in=Run.objects.filter(of_metric).values("pk"))
    for run in sorted(set(listed.values_list("subject", flat=True))):
        jobs.request(JOB, run)
