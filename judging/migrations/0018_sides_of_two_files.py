import re
import uuid

from django.db import migrations, models
from django.db.models import OuterRef, Subquery

BATCH = 500
ENDING = re.compile(r"\.(gz|jsonl|ndjson|json|csv|txt)$", re.IGNORECASE)


def stem(name):
    while ENDING.search(name):
        name = ENDING.sub("", name)
    return name.strip()[:200]


def proposed(here, there):
    """Names of two versions' answers, never both alike; as judging/people/blindness.py proposes them."""
    versions = (here, there)
    by_file = [stem(one.file_name) for one in versions]
    by_dataset = [one.dataset.name for one in versions]
    for names in (by_file, by_dataset):
        if all(names) and names[0].casefold() != names[1].casefold():
            return names
    return [f"{one.dataset.name} v{one.number}" for one in versions]


def name_the_sides(apps, schema_editor):
    """Until now both files of an evaluation were called "reference", a candidate that other evaluations shared. Each
    side gets a candidate of its own, with copies of the answers that are rated."""
    evaluations = apps.get_model("judging", "Evaluation").objects.filter(
        scheme="versions", other_version__isnull=False
    )
    for evaluation in evaluations.select_related("run__version__dataset", "other_version__dataset"):
        here, there = evaluation.run.version, evaluation.other_version
        for version, name in zip((here, there), proposed(here, there)):
            old = shared(apps, evaluation, version)
            if old is not None:
                split(apps, evaluation, old, name)
        run = apps.get_model("judging", "Run").objects.filter(pk=evaluation.run_id)
        run.update(revision=models.F("revision") + 1)


def shared(apps, evaluation, version):
    taking_part = apps.get_model("judging", "RunCandidate").objects.filter(run=evaluation.run_id)
    return (
        apps.get_model("datasets", "Candidate")
        .objects.filter(
            pk__in=taking_part.values("candidate"),
            version__dataset=version.dataset_id,
            version__number=0,
            source=f"v{version.number}"[:10],
        )
        .first()
    )


def split(apps, evaluation, old, name):
    Candidate = apps.get_model("datasets", "Candidate")
    Response = apps.get_model("datasets", "Response")
    Item = apps.get_model("judging", "Item")
    Judgement = apps.get_model("judging", "Judgement")
    new = Candidate.objects.create(version_id=old.version_id, name=name, source=f"s{uuid.uuid4().hex[:9]}")
    items = Item.objects.filter(evaluation=evaluation)
    judgements = Judgement.objects.filter(run=evaluation.run_id)
    for field in ("response", "other_response"):
        rated = items.filter(**{f"{field}__candidate": old}).order_by(field).values_list(field, flat=True)
        copy(Response, rated.distinct(), new)
        theirs = Response.objects.filter(pk=OuterRef(OuterRef(f"{field}_id"))).values("row_id")[:1]
        copied = Response.objects.filter(candidate=new, row_id=Subquery(theirs), number=1).values("pk")[:1]
        for found in (items, judgements):
            mine = found.filter(**{f"{field}__in": Response.objects.filter(candidate=old).values("pk")})
            mine.update(**{field: Subquery(copied)})
    judgements.filter(candidate=old).update(candidate=new)
    apps.get_model("judging", "RunCandidate").objects.filter(run=evaluation.run_id, candidate=old).update(
        candidate=new
    )
    apps.get_model("judging", "KeptMeans").objects.filter(run=evaluation.run_id, candidate=old).update(
        candidate=new
    )


def copy(Response, rated, candidate):
    pks = list(rated)
    for at in range(0, len(pks), BATCH):
        found = Response.objects.filter(pk__in=pks[at : at + BATCH])
        Response.objects.bulk_create(
            [
                Response(row_id=one.row_id, candidate=candidate, number=one.number, raw=one.raw)
                for one in found
            ],
            ignore_conflicts=True,
        )


class Migration(migrations.Migration):
    dependencies = [
        ("datasets", "0008_references_keep_their_turns"),
        ("judging", "0017_endpoint_draft"),
    ]

    operations = [
        migrations.AddField(
            model_name="evaluation",
            name="hidden_roles",
            field=models.JSONField(
                default=list, help_text="roles whose turns raters do not see: system, assistant, tool"
            ),
        ),
        migrations.AlterField(
            model_name="evaluation",
            name="scheme",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "none"),
                    ("every_pair", "every pair of candidates"),
                    ("balanced", "some pairs an item, every candidate equally often"),
                    ("baseline", "each candidate beside a baseline"),
                    ("reference", "reference vs. answer"),
                    ("versions", "two legacy files"),
                ],
                default="",
                max_length=12,
            ),
        ),
        migrations.RunPython(name_the_sides, migrations.RunPython.noop),
    ]
