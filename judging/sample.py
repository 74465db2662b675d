"""The sample projects, one per language: small data sets with a metric of each kind, judged over HTTP by the demo
judge. Answers and replies were written for them. People's part is added once the site responds (sample_people.py)."""

from __future__ import annotations

import io
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from datasets.core.kinds import CATEGORY, CHECKLIST, COMPARISON, PASS_FAIL, SCORE
from datasets.importing.worker import import_or_wait
from datasets.models import Version
from datasets.services import dataset_upload
from evalsite.accounts.models import SAMPLE_SLUGS, Project, User
from evalsite.accounts.services import local_administrator_create, project_create
from evalsite.supervisor import Child, manage
from judging import sample_files
from judging.core.builtin import builtin
from judging.core.judges.demo import MODEL, WRITTEN_SCALE
from judging.core.metric_definition import JudgeModel, Label, MetricDefinition
from judging.endpoints.connection_test import try_endpoint
from judging.endpoints.models import Endpoint
from judging.endpoints.services import endpoint_remember_test
from judging.metrics.models import Metric, MetricVersion
from judging.runs.services import ChosenMetric, run_create
from judging.sample_files import CHECKLISTS, ORDERS, QUESTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRun:
    """A data set and the run that judges it: names, and the file of the rows."""

    dataset: str
    name: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleProject:
    """The texts of a sample project in its language. `metrics`: a name for each kind of metric; `labels`: names and
    meanings of the categories. A reviewer corrects the judge on the bat and the ball, and comments on the other
    answer to it."""

    language: str
    project: str
    endpoint: str
    questions: SampleRun
    checklists: SampleRun
    orders: SampleRun
    metrics: dict[str, str]
    labels: tuple[tuple[str, str], ...]
    rules: str
    rated: str
    evaluation: str
    criterion: str
    guideline: str
    override_reason: str
    comment: str


REFERENCE, PAIR, RULES = "reference", "pair", "rules"

SAMPLES = (
    SampleProject(
        language="en",
        project="Sample project",
        endpoint="Demo judge",
        questions=SampleRun(dataset="Everyday questions", name="Sample evaluation", file=QUESTIONS),
        checklists=SampleRun(dataset="Longer answers", name="Longer answers by checklist", file=CHECKLISTS),
        orders=SampleRun(dataset="Orders by e-mail", name="Orders by rules", file=ORDERS),
        metrics={
            PASS_FAIL: "Correct",
            SCORE: "Quality",
            CATEGORY: "Main fault",
            REFERENCE: "Against the reference",
            PAIR: "Side by side",
            CHECKLIST: "Checklist",
            RULES: "Order fields",
        },
        labels=(
            ("fine", "nothing important is wrong or missing"),
            ("wrong", "a fact, a result or a claim is wrong"),
            ("incomplete", "right as far as it goes, but a part of the answer is missing"),
            ("off task", "it does not do what was asked, or not in the form that was asked for"),
        ),
        rules="# DSL\ncustomer: exact_match\nproduct: exact_match\nquantity: exact_match\n"
        "@aggregate: mean\n@format: JSON\n",
        rated="Sample evaluation, rated by people",
        evaluation="Try rating",
        criterion="Preference",
        guideline="Which answer would you rather have been given? A right answer beats a wrong one; "
        "of two right ones the clearer is better.",
        override_reason="The judge fell for the usual trap. With the ball at $0.05 the bat costs $1.05, "
        "together $1.10. With $0.10 the two would cost $1.20.",
        comment="Same mistake as with the other answer: $0.10 and $1.10 make $1.20. Both raters said fail. "
        "The metric “Quality”, which sees the reference, gets it right.",
    ),
    SampleProject(
        language="zh",
        project="示例项目",
        endpoint="演示裁判",
        questions=SampleRun(dataset="日常问答", name="示例评测", file=QUESTIONS),
        checklists=SampleRun(dataset="较长的回答", name="按检查表评测", file=CHECKLISTS),
        orders=SampleRun(dataset="订单邮件", name="按规则评测", file=ORDERS),
        metrics={
            PASS_FAIL: "是否正确",
            SCORE: "回答质量",
            CATEGORY: "主要缺陷",
            REFERENCE: "与参考答案对比",
            PAIR: "两两对比",
            CHECKLIST: "检查表",
            RULES: "订单字段",
        },
        labels=(
            ("没有缺陷", "没有重要的错误或遗漏"),
            ("内容错误", "事实、结果或说法有错"),
            ("内容不全", "说到的部分正确，但缺少一部分"),
            ("未按要求", "没有做题目要求的事，或形式不符合要求"),
        ),
        rules="# DSL\n客户: 精确匹配\n商品: 精确匹配\n数量: 精确匹配\n@聚合方式: 平均数\n@格式限制: JSON\n",
        rated="示例评测（人工评分）",
        evaluation="试试评分",
        criterion="偏好",
        guideline="你更愿意得到哪个回答？正确的胜过错误的；两个都正确时，更清楚的更好。",
        override_reason="裁判掉进了常见的陷阱。球 0.05 元时球拍 1.05 元，合计 1.10 元；"
        "如果球 0.10 元，合计就是 1.20 元。",
        comment="和另一个回答犯了同样的错误：0.10 加 1.10 等于 1.20。两位评分员都判为不通过。"
        "能看到参考答案的指标“回答质量”判断正确。",
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


def prepare_with_judge() -> Child:
    """Create the sample projects. Returns the demo judge that their endpoints name."""
    # Quiet: it prints an address that is not the site's.
    return Child("demo judge", manage("demo_judge", "--port", str(prepare())), quiet=True)


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
    """Create a project with its contents. The runs are processed by a worker."""
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
        metrics = {kind: make_metric(sample, kind, endpoint, administrator) for kind in sample.metrics}
    of_questions = (PASS_FAIL, SCORE, CATEGORY, REFERENCE, PAIR)
    make_run(sample, sample.orders, [metrics[RULES]], project, administrator)
    make_run(sample, sample.checklists, [metrics[CHECKLIST]], project, administrator)
    make_run(sample, sample.questions, [metrics[kind] for kind in of_questions], project, administrator)


def make_run(
    sample: SampleProject, about: SampleRun, metrics: list[ChosenMetric], project: Project, user: User
) -> None:
    version = upload(sample, about, project, user)
    run_create(
        project=project,
        name=about.name,
        version=version,
        candidates=list(version.candidates.order_by("pk")),
        metrics=metrics,
        user=user,
    )


def make_metric(sample: SampleProject, kind: str, endpoint: Endpoint, user: User) -> ChosenMetric:
    definition = definition_of(sample, kind, endpoint)
    metric = Metric.objects.create(project=endpoint.project, name=definition.name, created_by=user)
    version = MetricVersion.objects.create(
        metric=metric, number=1, definition=definition.to_json(), created_by=user
    )
    return ChosenMetric(definition, version)


def definition_of(sample: SampleProject, kind: str, endpoint: Endpoint) -> MetricDefinition:
    """A metric of a kind of verdict, or REFERENCE, PAIR or RULES."""
    name = sample.metrics[kind]
    low, high = (0, 1) if kind == CHECKLIST else WRITTEN_SCALE
    if kind == RULES:
        return MetricDefinition(name=name, min_score=low, max_score=high, rules=sample.rules)
    stem = {SCORE: "reference", REFERENCE: "comparison"}.get(kind, kind)
    source = builtin(f"multi_turn_{stem}.{sample.language}")
    judge = JudgeModel(
        name=endpoint.name,
        endpoint=endpoint.pk,
        template=source.source,
        parse=source.parse,
        both_orders=kind == PAIR,
    )
    return MetricDefinition(
        name=name,
        min_score=low,
        max_score=high,
        gives=COMPARISON if kind in (REFERENCE, PAIR) else kind,
        compares="all" if kind == PAIR else "reference",
        labels=tuple(Label(label=label, description=meaning) for label, meaning in sample.labels)
        if kind == CATEGORY
        else (),
        judges=(judge,),
    )


def upload(sample: SampleProject, about: SampleRun, project: Project, user: User) -> Version:
    """Upload the rows in the sample's language with the regular service. They are imported immediately, being few."""
    rows = io.BytesIO(sample_files.rows_in(about.file, sample.language))
    version = dataset_upload(project=project, name=about.dataset, file=rows, file_name=about.file, user=user)
    return import_or_wait(version.pk)
