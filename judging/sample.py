"""The sample projects, one per language: small data sets, judged over HTTP by the demo judge."""

from __future__ import annotations

import io
import json
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from datasets.importing.worker import import_or_wait
from datasets.models import Version
from datasets.services import dataset_upload
from evalsite.accounts.models import Project, User
from evalsite.accounts.services import local_administrator_create, project_create
from judging.core.builtin import builtin
from judging.core.judges.demo import MODEL
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.people.criteria import Criterion
from judging.endpoints.connection_test import try_endpoint
from judging.endpoints.models import Endpoint
from judging.endpoints.services import endpoint_remember_test
from judging.metrics.models import Metric, MetricVersion
from judging.overview.selectors import SAMPLE_SLUGS
from judging.people.models import Scheme
from judging.people.sampling import ItemChoice
from judging.people.services import evaluation_create
from judging.runs.services import ChosenMetric, run_create

RATED_ROWS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleProject:
    """The texts of a sample project in its language. `metrics`: (name, built-in template, lowest, highest score)."""

    language: str
    project: str
    dataset: str
    run: str
    endpoint: str
    metrics: tuple[tuple[str, str, int, int], ...]
    evaluation: str
    criterion: str
    guideline: str


SAMPLES = (
    SampleProject(
        language="en",
        project="Sample project",
        dataset="Everyday questions",
        run="Sample evaluation",
        endpoint="Demo judge",
        metrics=(
            ("Closeness to the reference", "multi_turn_reference.en", 1, 10),
            ("Against the reference", "multi_turn_comparison.en", 1, 5),
        ),
        evaluation="Try rating",
        criterion="Preference",
        guideline="Which answer would you rather have been given? A right answer beats a wrong one; "
        "of two right ones the clearer is better.",
    ),
    SampleProject(
        language="zh",
        project="示例项目",
        dataset="日常问答",
        run="示例评测",
        endpoint="演示裁判",
        metrics=(
            ("与参考答案的接近程度", "multi_turn_reference.zh", 1, 10),
            ("与参考答案对比", "multi_turn_comparison.zh", 1, 5),
        ),
        evaluation="试试评分",
        criterion="偏好",
        guideline="你更愿意得到哪个回答？正确的胜过错误的；两个都正确时，更清楚的更好。",
    ),
)


def prepare() -> int:
    """Create the sample projects if there are none. Returns the port for the demo judge.

    The previous port is reused if it is free, because it is part of the endpoint's URL in finished runs.
    """
    endpoint = demo_endpoints().first()
    port = free_port(urlsplit(endpoint.url).port if endpoint else settings.CONFIG.port + 1)
    url = f"http://127.0.0.1:{port}/v1"
    if Project.objects.filter(slug__in=SAMPLE_SLUGS.values()).exists():
        demo_endpoints().exclude(url=url).update(url=url)
    else:
        administrator = local_administrator_create()
        for sample in SAMPLES:
            make(sample, administrator, url)
    return port


def demo_endpoints() -> QuerySet[Endpoint]:
    return Endpoint.objects.filter(project__slug__in=SAMPLE_SLUGS.values(), model=MODEL).order_by("pk")


def test_connections() -> None:
    """Run the connection test of the samples' endpoints once, so that they are not shown as untested."""
    for endpoint in demo_endpoints():
        if not endpoint.works:
            endpoint_remember_test(endpoint=endpoint, probe=try_endpoint(endpoint))


def free_port(wanted: int | None) -> int:
    """Return `wanted` if it is free, else any free port."""
    for port in (wanted or 0, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port")


def make(sample: SampleProject, administrator: User, url: str) -> None:
    """Create a project with its contents. The run is processed by a worker."""
    with transaction.atomic():
        slug = SAMPLE_SLUGS[sample.language]
        project = project_create(name=sample.project, slug=slug, owner=administrator)
        endpoint = Endpoint.objects.create(
            project=project,
            name=sample.endpoint,
            url=url,
            model=MODEL,
            concurrency=8,
            created_by=administrator,
        )
        metrics = [make_metric(administrator, endpoint, *metric) for metric in sample.metrics]
    version = upload(sample, project, administrator)
    run_create(
        project=project,
        name=sample.run,
        version=version,
        candidates=list(version.candidates.order_by("pk")),
        metrics=metrics,
        user=administrator,
    )
    make_evaluation(sample, administrator, version)


def make_evaluation(sample: SampleProject, user: User, version: Version) -> None:
    """Create an open human evaluation, without verdicts, for users to try rating."""
    evaluation_create(
        project=version.dataset.project,
        name=sample.evaluation,
        choice=ItemChoice(
            version,
            candidates=list(version.candidates.order_by("pk")),
            scheme=Scheme.EVERY_PAIR,
            sample_size=RATED_ROWS,
            seed=1,
        ),
        criteria=[Criterion(name=sample.criterion, scale="steps", both_bad=True, guideline=sample.guideline)],
        raters=[user],
        user=user,
    )


def make_metric(
    user: User, endpoint: Endpoint, name: str, template: str, low: int, high: int
) -> ChosenMetric:
    source = builtin(template)
    judge = JudgeModel(name=endpoint.name, endpoint=endpoint.pk, template=source.source, parse=source.gives)
    definition = MetricDefinition(name=name, min_score=low, max_score=high, judges=(judge,))
    metric = Metric.objects.create(project=endpoint.project, name=name, created_by=user)
    version = MetricVersion.objects.create(
        metric=metric, number=1, definition=definition.to_json(), created_by=user
    )
    return ChosenMetric(definition, version)


def upload(sample: SampleProject, project: Project, user: User) -> Version:
    """Upload the rows in the sample's language with the regular service. They are imported immediately, being few."""
    path = settings.BASE_DIR / "datasets" / "samples" / "sample.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    rows = [line for line in lines if json.loads(line)["language"] == sample.language]
    version = dataset_upload(
        project=project, name=sample.dataset, file=io.BytesIO(b"".join(rows)), file_name=path.name, user=user
    )
    return import_or_wait(version.pk)
