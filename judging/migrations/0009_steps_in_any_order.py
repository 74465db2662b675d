"""Metrics have any number of scripts, each with its place among the judges; judgements have a list of their results."""

import json

from django.db import migrations, models

_JOIN_RESULTS = """
UPDATE judging_judgement
   SET scripts = '[' || scripts || CASE WHEN scripts <> '' AND postprocess <> '' THEN ',' ELSE '' END || postprocess || ']'
 WHERE scripts <> '' OR postprocess <> ''
"""


def _defined_anew(text):
    definition = json.loads(text)
    before, after = definition.pop("preprocess", ""), definition.pop("postprocess", "")
    judging = 1 if definition.get("rules") else len(definition.get("judges", ()))
    scripts = [{"kind": "preprocess", "source": before}] if before else []
    if after:
        scripts.append({"kind": "postprocess", "source": after, **({"after": judging} if judging else {})})
    return json.dumps(definition | {"scripts": scripts}, ensure_ascii=False)


def place_scripts(apps, schema_editor):
    for model in ("MetricVersion", "RunMetric", "Reading"):
        rows = apps.get_model("judging", model).objects.filter(definition__contains='process":')
        for row in rows.iterator():
            row.definition = _defined_anew(row.definition)
            row.save(update_fields=["definition"])


class Migration(migrations.Migration):
    dependencies = [("judging", "0008_look_at_answers")]

    operations = [
        migrations.RunPython(place_scripts, migrations.RunPython.noop),
        migrations.RenameField("judgement", "preprocess", "scripts"),
        migrations.AlterField(
            "judgement",
            "scripts",
            models.TextField(
                blank=True, default="", help_text="the results of the scripts that ran, as a list in their order"
            ),
        ),
        migrations.RunSQL(_JOIN_RESULTS, migrations.RunSQL.noop),
        migrations.RemoveField("judgement", "postprocess"),
    ]
