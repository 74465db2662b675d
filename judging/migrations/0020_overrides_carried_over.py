"""Overrides outlive the attempt that they were made on: the newest of each answer and metric counts for the current
attempt. Kept figures of runs with overrides are worked out anew."""

from django.db import migrations
from django.db.models import F

KEY = ("run_metric", "response", "other_response", "rater")


def carry_over(apps, schema_editor):
    Judgement, Override = apps.get_model("judging", "Judgement"), apps.get_model("judging", "Override")
    made = Override.objects.order_by("pk").values_list(
        "value", "score", "judgement__run", *(f"judgement__{name}" for name in KEY)
    )
    newest = {tuple(key): (value, score) for value, score, *key in made.iterator()}
    for (run, *key), (value, score) in newest.items():
        attempts = Judgement.objects.filter(run=run, **dict(zip(KEY, key)))
        attempts.filter(current=True).update(override_value=value, override_score=score)
    runs = {run for run, *_ in newest}
    for run in runs:
        apps.get_model("judging", "Run").objects.filter(pk=run).update(revision=F("revision") + 1)


class Migration(migrations.Migration):
    dependencies = [("judging", "0019_overrides_in_force")]

    operations = [migrations.RunPython(carry_over, migrations.RunPython.noop)]
