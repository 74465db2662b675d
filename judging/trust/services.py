"""Draw a split, close its test, open it for a version of the metric, and suspend the licence that comes of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from datetime import date, datetime, time
from typing import Any

import numpy as np
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from datasets.core.kinds import CHECKLIST
from datasets.models import Version
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.webhooks.kinds import Event
from judging.core.checklists import Met
from judging.core.licensing import (
    TEST,
    Sizes,
    coded,
    definition_hash,
    draw_parts,
    judged_as,
    places_of,
    weighted_chances,
)
from judging.core.statistics.licence import (
    LicenceFigures,
    gap,
    licence_figures,
    use_allowed,
    with_kappa_interval,
)
from judging.core.statistics.means import Rate
from judging.core.statistics.uses import Thresholds
from judging.core.values import Value
from judging.metrics.models import Metric, MetricVersion
from judging.people.models import Evaluation, Item
from judging.records.definitions import definition_now
from judging.records.models import Run, RunMetric
from judging.trust.answers import (
    TIERS,
    Answer,
    ceiling_of,
    joint_ceiling,
    judge_values,
    labels_of,
    row_keys,
    value_author,
    verdicts_of,
)
from judging.trust.criteria import criteria_of_people, judged_criteria, pairs_of_criteria
from judging.trust.events import emit_licence
from judging.trust.models import (
    Licence,
    LicenceState,
    LicenceThresholds,
    Opening,
    SealedTest,
    Split,
    SplitRow,
    Suspension,
)
from judging.trust.outdated import results_outdate


@transaction.atomic
def split_draw(
    *,
    version: Version,
    metric: Metric,
    sizes: Sizes,
    seed: int,
    aside: Collection[int] = (),
    train: Collection[int] = (),
    lines: Collection[int] | None = None,
    criterion: str = "",
    evaluation: Evaluation | None = None,
    imported: Run | None = None,
    weights: Mapping[int, float] | None = None,
    user: User | None = None,
) -> Split:
    """Divide a version's rows and draw its test. `aside`: lines of rows set aside before anybody looked; the test is
    drawn from them, train and dev from the others. `train`: lines that were looked at, which are train. `lines`: those
    that can be drawn, None for all. `evaluation`: the draw takes its items only from the rows that it has labelled, and
    the licence says that labels existed before the draw, as where they are those of an `imported` run. `weights`:
    {line: weight} with which train and dev are drawn, 1 for the others; their figures are then no fair sample.

    Raises ValidationError if the data set is already split for this metric, or if it has no row.
    """
    keys, by_id = row_keys(version)
    if evaluation is not None:
        lines = set(evaluation.items.filter(rated__gt=0).values_list("row__line", flat=True))
    if lines is not None:
        keys = {line: keys[line] for line in lines if line in keys}
    checks = rows_that_check_raters(version)
    keys = {line: key for line, key in keys.items() if line not in checks}
    if not keys:
        raise ValidationError(_("There are no rows to draw from."))
    reserved, looked_at = ({keys[line] for line in group if line in keys} for group in (aside, train))
    if aside and not reserved:
        raise ValidationError(
            _("None of these rows is set aside for tests. Choose the run whose answers were looked at.")
        )
    by_key = {keys[line]: weight for line, weight in weights.items() if line in keys} if weights else None
    parts = draw_parts(list(keys.values()), reserved, sizes, seed, looked_at, by_key)
    chances = _chances(parts, set(keys.values()) - reserved - looked_at, by_key, looked_at)
    try:
        with transaction.atomic():
            split = Split.objects.create(
                dataset=version.dataset,
                metric=metric,
                criterion=criterion or metric.name,
                seed=seed,
                by_id=by_id,
                weighted=by_key is not None,
                created_by=user,
            )
    except IntegrityError:
        raise ValidationError(
            _("“%(dataset)s” is already split for “%(metric)s”.")
            % {"dataset": version.dataset.name, "metric": metric.name}
        ) from None
    SplitRow.objects.bulk_create(
        SplitRow(split=split, key=key, part=part, drawn_with=chances.get(key)) for key, part in parts.items()
    )
    SealedTest.objects.create(
        split=split,
        version=version,
        evaluation=evaluation,
        imported=imported,
        labels_before=evaluation is not None or imported is not None,
    )
    counts: dict[str, Any] = {part: list(parts.values()).count(part) for part in ("train", "dev", "test")}
    results_outdate(version.dataset)
    record(Action.SPLIT_DRAWN, project=metric.project, thing=metric, by=user, seed=seed, **counts)
    return split


def _chances(
    parts: Mapping[str, str],
    pool: Collection[str],
    weights: Mapping[str, float] | None,
    looked_at: Collection[str],
) -> dict[str, float]:
    """{key: probability} of the rows of train and dev in a weighted draw; empty for an even one."""
    if weights is None:
        return {}
    tested = {key for key, part in parts.items() if part == TEST}
    drawn = set(parts) - tested - set(looked_at)
    chances = weighted_chances(sorted(set(pool) - tested), weights, len(drawn))
    return {key: chances[key] for key in drawn}


def rows_that_check_raters(version: Version) -> set[int]:
    """Lines of the rows with gold items or hidden repeats: these never get into a split."""
    items = Item.objects.filter(evaluation__run__version=version)
    return set(items.exclude(gold="", repeat_of=None).values_list("row__line", flat=True))


def rows_of_test(test: SealedTest) -> set[str]:
    """The keys of its rows."""
    return set(SplitRow.objects.filter(split=test.split_id, part=TEST).values_list("key", flat=True))


@transaction.atomic
def sealed_test_close(*, test: SealedTest, run: Run, user: User | None = None) -> SealedTest:
    """Keep people's labels of the test's rows as they stand; from now on none is changed or added. `run`: in whose
    report the labels of the first draw count: the evaluation's own, or the one whose answers it is about.

    Raises ValidationError if it is closed already, or if nobody has rated an answer of it.
    """
    test = SealedTest.objects.select_for_update().select_related("split__metric__project").get(pk=test.pk)
    if not test.open:
        raise ValidationError(_("This test is already closed."))
    further = [evaluation.run for evaluation in test.further_evaluations if evaluation.run_id != run.pk]
    runs = [run, *further]
    labels = [label for each in runs for label in _labels(test, each)]
    if not labels:
        raise ValidationError(_("Nobody has rated an answer of this test yet."))
    test.labels, test.closed_at, test.closed_by = labels, timezone.now(), user
    ceilings = [ceiling_of(each, test.split.criterion, _keys_in(test, each.version)) for each in runs]
    ceiling = joint_ceiling([each for each in ceilings if each])
    test.ceiling = ceiling._asdict() if ceiling else None
    test.save(update_fields=["labels", "closed_at", "closed_by", "ceiling"])
    metric = test.split.metric
    record(Action.TEST_CLOSED, project=metric.project, thing=metric, by=user, labels=len(labels))
    return test


def _labels(test: SealedTest, run: Run) -> list[dict[str, Any]]:
    run_metric = run.metrics.filter(name=test.split.criterion).first()
    if run_metric is None:
        return []
    keys = _keys_in(test, run.version)
    verdicts, metric = verdicts_of(run, run_metric, lines=keys)
    labels = labels_of(verdicts, keys)
    if not metric.checklist:
        return [{**answer._asdict(), **label._asdict()} for answer, label in labels.items()]
    return [
        {
            **answer._asdict(),
            "value": labels[answer].value if answer in labels else None,
            "tier": said.tier,
            "criteria": said.met,
        }
        for answer, said in criteria_of_people(run, run_metric, keys).items()
        if said.met
    ]


def _keys_in(test: SealedTest, version: Version) -> dict[int, str]:
    """{line: key} of the version's rows that are in the test."""
    rows = rows_of_test(test)
    return {line: key for line, key in row_keys(version, by_id=test.split.by_id)[0].items() if key in rows}


@transaction.atomic
def sealed_test_open(
    *,
    test: SealedTest,
    run_metric: RunMetric,
    dev: Rate | None = None,
    user: User | None = None,
) -> Licence:
    """Open a closed test for a version of its metric, whose verdicts are in the run of `run_metric`, and keep what it
    says about the metric's value: that of its judge, or of all its judges together. `dev`: agreement on the dev rows.

    Raises ValidationError if the test is not closed, was opened for this version before, if the judge has no prompt or
    stored version here, or if it scored none of the labelled answers.
    """
    test = SealedTest.objects.select_for_update().select_related("split__metric__project").get(pk=test.pk)
    version, run = _version_to_license(test, run_metric), run_metric.run
    keys = _keys_in(test, run.version)
    verdicts, _metric = verdicts_of(run, run_metric, lines=keys)
    judge = value_author(verdicts)
    values = judge_values(verdicts, judge, keys) if judge else {}
    labels = {Answer.of(label): label for label in test.labels}
    shared = [answer for answer in labels if answer in values and labels[answer]["value"] is not None]
    number = test.openings.count() + 1
    opening = Opening.objects.create(
        test=test, number=number, metric_version=version, run=run, opened_by=user
    )
    definition = definition_now(run_metric)
    if definition.kind == CHECKLIST:
        judged = judged_criteria(run_metric, keys)
        figures, used = _figures_of_criteria(judged, labels, number)
        bias = _figures(values, labels, shared, definition.kind, number).bias if shared else None
        figures = replace(figures, bias=bias, answers=len(used))
    else:
        figures, used = _figures(values, labels, shared, definition.kind, number), shared
    thresholds = thresholds_of(test.split.metric.project)
    difference = None if dev is None else gap(dev, figures.agreement)
    licence = Licence.objects.create(
        opening=opening,
        metric_version=version,
        definition_hash=definition_hash(definition),
        judge=judge,
        use=use_allowed(figures, thresholds) or "",
        opening_number=number,
        figures=asdict(figures),
        answers=[[*answer, values[answer], labels[answer]["value"]] for answer in shared],
        dev_gap=None if difference is None else [difference.mean, difference.low, difference.high],
        thresholds=asdict(thresholds),
        tier=min((labels[answer]["tier"] for answer in used), key=TIERS.index),
        ceiling=test.ceiling,
        opened_by=user,
        labels_before=test.labels_before,
        dataset_name=run.version.dataset.name,
        dataset_version=run.version.number,
        opened_at=opening.opened_at,
    )
    results_outdate(run.version.dataset, version.metric)
    record(
        Action.TEST_OPENED,
        project=test.split.metric.project,
        thing=test.split.metric,
        by=user,
        version=version.number,
        opening=number,
        use=licence.use,
    )
    return licence


def _version_to_license(test: SealedTest, run_metric: RunMetric) -> MetricVersion:
    """The version that the test may be opened for. Raises ValidationError if there is none."""
    version = run_metric.metric_version
    if test.open:
        raise ValidationError(_("Close the test first: it is still being rated."))
    if version is None or version.metric_id != test.split.metric_id or run_metric.run.imported:
        raise ValidationError(
            _("A licence needs a stored version of the metric. Imported verdicts have agreement only.")
        )
    if test.openings.filter(metric_version=version).exists():
        raise ValidationError(_("This test was already opened for version %(n)s.") % {"n": version.number})
    return version


def _figures(
    values: Mapping[Answer, Value],
    labels: Mapping[Answer, Mapping[str, Any]],
    shared: list[Answer],
    kind: str,
    opening: int,
) -> LicenceFigures:
    if not shared:
        raise ValidationError(_("The judge has scored none of the test's answers in this run."))
    judge, people = [values[answer] for answer in shared], [labels[answer]["value"] for answer in shared]
    places = places_of(judge, people)
    rows = np.unique([answer.row for answer in shared], return_inverse=True)[1].astype(np.int64)
    of_judge, of_people = (np.array(coded(column, places)) for column in (judge, people))
    judged = "ordered" if kind == CHECKLIST else judged_as(kind)
    figures = licence_figures(of_judge, of_people, rows, judged, opening)
    return with_kappa_interval(figures, of_judge, of_people, rows) if judged == "passes" else figures


def _figures_of_criteria(
    judged: Mapping[Answer, Met], labels: Mapping[Answer, Mapping[str, Any]], opening: int
) -> tuple[LicenceFigures, list[Answer]]:
    """A checklist's figures, over the criteria of which both say something, and the answers that have any."""
    pairs = pairs_of_criteria(judged, labels)
    if not pairs:
        raise ValidationError(_("The judge has scored none of the test's answers in this run."))
    answers, of_judge, of_people = zip(*pairs, strict=True)
    units = np.unique([answer.row for answer in answers], return_inverse=True)[1].astype(np.int64)
    judge, people = (np.array(column, dtype=np.float64) for column in (of_judge, of_people))
    figures = licence_figures(judge, people, units, "passes", opening)
    return with_kappa_interval(figures, judge, people, units), list(dict.fromkeys(answers))


def thresholds_of(project: Project) -> Thresholds:
    """The project's thresholds, or the usual ones."""
    stored = LicenceThresholds.objects.filter(project=project).first()
    return stored.values() if stored else Thresholds()


def fingerprints_suspend(project: Project) -> bool:
    """Whether a server fingerprint that was not seen in the test suspends a licence."""
    stored = LicenceThresholds.objects.filter(project=project).first()
    return stored.fingerprints_suspend if stored else True


@transaction.atomic
def thresholds_change(
    *, project: Project, thresholds: Thresholds, fingerprints: bool = True, user: User | None = None
) -> None:
    """Licences that were given keep theirs. `fingerprints`: whether a server fingerprint that was not seen in the test
    suspends a licence. Raises ValidationError for a share outside 0…1, or gates below trends."""
    values = asdict(thresholds)
    if not all(0 <= value <= 1 for value in values.values()):
        raise ValidationError(_("Thresholds lie between 0 and 1."))
    if thresholds.gates_rate < thresholds.trends_rate or thresholds.gates_kappa < thresholds.trends_kappa:
        raise ValidationError(_("Gates need at least the thresholds of trends."))
    stored = values | {"fingerprints_suspend": fingerprints}
    LicenceThresholds.objects.update_or_create(project=project, defaults=stored)
    record(Action.THRESHOLDS_CHANGED, project=project, thing=project, by=user, **stored)


@transaction.atomic
def licence_suspend(*, licence: Licence, reason: str = "", cause: str = "") -> Suspension:
    """Make a licence not hold until it is lifted; for a reason, or a `Cause`. Returns the suspension in force if there
    is one."""
    Licence.objects.select_for_update().get(pk=licence.pk)
    in_force = licence.suspensions.filter(lifted_at=None).first()
    if in_force:
        return in_force
    metric = licence.metric_version.metric
    results_outdate(metric=metric)
    record(Action.LICENCE_SUSPENDED, project=metric.project, thing=metric, reason=reason or cause)
    emit_licence(Event.LICENCE_SUSPENDED, licence, LicenceState.SUSPENDED)
    return Suspension.objects.create(licence=licence, reason=reason, cause=cause)


@transaction.atomic
def licence_lift(*, suspension: Suspension, reason: str, user: User) -> None:
    """End a suspension. Raises ValidationError without a reason, or if it was lifted before."""
    if not reason.strip():
        raise ValidationError(_("Say why the licence holds again."))
    lifted = Suspension.objects.filter(pk=suspension.pk, lifted_at=None).update(
        lifted_at=timezone.now(), lifted_by=user, lifted_because=reason.strip()
    )
    if not lifted:
        raise ValidationError(_("This suspension was already lifted."))
    metric = suspension.licence.metric_version.metric
    results_outdate(metric=metric)
    record(Action.LICENCE_LIFTED, project=metric.project, thing=metric, by=user, reason=reason.strip())


@transaction.atomic
def licence_expire(*, licence: Licence, day: date | None, user: User) -> None:
    """Let a licence lapse at the beginning of a day, None for never. Raises ValidationError if it has lapsed."""
    licence = Licence.objects.select_for_update().get(pk=licence.pk)
    if licence.expires_at is not None and licence.expires_at <= timezone.now():
        raise ValidationError(_("This licence has lapsed, and stays so. Open a test anew."))
    licence.expires_at = None if day is None else timezone.make_aware(datetime.combine(day, time.min))
    licence.save(update_fields=["expires_at"])
    metric = licence.metric_version.metric
    results_outdate(metric=metric)
    detail = {"day": "" if day is None else day.isoformat()}
    record(Action.LICENCE_EXPIRES, project=metric.project, thing=metric, by=user, **detail)
