"""The sample project: a small data set in two languages, truly judged over HTTP by the demo judge."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from datasets.importing.worker import import_or_wait
from datasets.models import Version
from datasets.services import dataset_upload
from evalsite.accounts.models import Project, User
from evalsite.accounts.services import LOCAL_ADMINISTRATOR, project_create
from evalsite.tasks import workers
from judging.core.builtin import builtin
from judging.core.judges.demo import MODEL
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.people.criteria import Criterion
from judging.endpoints.connection_test import try_endpoint
from judging.endpoints.models import Endpoint
from judging.endpoints.services import endpoint_remember_test
from judging.metrics.models import Metric, MetricVersion
from judging.people.models import Scheme
from judging.people.organise import evaluation_create
from judging.people.sampling import Choice
from judging.runs.services import ChosenMetric, run_create

SLUG = "sample"
NAME = "Sample project · 示例项目"
DATASET = "Everyday questions · 日常问答"
RUN = "Sample evaluation · 示例评测"
EVALUATION = "Try rating · 试试评分"
RATED_ROWS = 12
PREFERENCE = "Preference · 偏好"
PREFERENCE_GUIDELINE = """Which answer would you rather have been given? A right answer beats a wrong one; of two right
ones the clearer is better. 你更愿意得到哪个回答？正确的胜过错误的；两个都正确时，更清楚的更好。"""
ENDPOINT = "Demo judge · 演示裁判"
# Metric name, built-in template, scale.
METRICS = (
    ("Closeness to the reference · 与参考答案的接近程度", "multi_turn_reference.zh", 1, 10),
    ("Against the reference · 与参考答案对比", "multi_turn_comparison.en", 1, 5),
)


def prepare() -> int:
    """Make the sample project if there is none, and say on which port the demo judge shall listen.

    The port of the last time is taken again where it is free, because finished runs name it.
    """
    endpoint = Endpoint.objects.filter(project__slug=SLUG, name=ENDPOINT).first()
    port = free_port(urlsplit(endpoint.url).port if endpoint else settings.CONFIG.port + 1)
    url = f"http://127.0.0.1:{port}/v1"
    if endpoint is None:
        make(url)
    elif endpoint.url != url:
        Endpoint.objects.filter(pk=endpoint.pk).update(url=url)
    return port


def test_connection() -> None:
    """Test the sample's endpoint once, as a user would, so that no page says that it was never tested."""
    endpoint = Endpoint.objects.filter(project__slug=SLUG, name=ENDPOINT).first()
    if endpoint is not None and not endpoint.works:
        endpoint_remember_test(endpoint=endpoint, found=try_endpoint(endpoint))


def free_port(wanted: int | None) -> int:
    """`wanted` if nobody listens there, else any free port."""
    for port in (wanted or 0, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port")


def make(url: str) -> None:
    """The administrator, the project and everything in it; the run is left to the worker."""
    with transaction.atomic():
        administrator = make_administrator()
        project = project_create(name=NAME, slug=SLUG, owner=administrator)
        endpoint = Endpoint.objects.create(
            project=project, name=ENDPOINT, url=url, model=MODEL, concurrency=8, created_by=administrator
        )
        metrics = [make_metric(project, administrator, endpoint, *metric) for metric in METRICS]
    version = upload(project, administrator)
    run_create(
        project=project,
        name=RUN,
        version=version,
        candidates=list(version.candidates.order_by("pk")),
        metrics=metrics,
        user=administrator,
    )
    make_evaluation(project, administrator, version)


def make_evaluation(project: Project, user: User, version: Version) -> None:
    """Open and empty: whoever looks round may try what raters do. No verdict is made up."""
    evaluation_create(
        project=project,
        name=EVALUATION,
        choice=Choice(
            version,
            candidates=list(version.candidates.order_by("pk")),
            scheme=Scheme.EVERY_PAIR,
            sample_size=RATED_ROWS,
            seed=1,
        ),
        criteria=[Criterion(name=PREFERENCE, scale="steps", both_bad=True, guideline=PREFERENCE_GUIDELINE)],
        raters=[user],
        user=user,
    )


def make_administrator() -> User:
    """The local visitor's account: without a password until somebody sets one."""
    user, made = User.objects.get_or_create(
        username=LOCAL_ADMINISTRATOR, defaults={"is_superuser": True, "is_staff": True}
    )
    if made:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user


def make_metric(
    project: Project, user: User, endpoint: Endpoint, name: str, template: str, low: int, high: int
) -> ChosenMetric:
    source = builtin(template)
    judge = JudgeModel(name=ENDPOINT, endpoint=endpoint.pk, template=source.source, parse=source.parse)
    definition = MetricDefinition(name=name, min_score=low, max_score=high, judges=(judge,))
    metric = Metric.objects.create(project=project, name=name, created_by=user)
    version = MetricVersion.objects.create(
        metric=metric, number=1, definition=definition.to_json(), created_by=user
    )
    return ChosenMetric(definition, version)


def upload(project: Project, user: User) -> Version:
    """Through the same door as any upload, and read at once: it is small."""
    path = settings.BASE_DIR / "datasets" / "samples" / "sample.jsonl"
    with path.open("rb") as file:
        version = dataset_upload(project=project, name=DATASET, file=file, file_name=path.name, user=user)
    return import_or_wait(version.pk, workers.owner())
