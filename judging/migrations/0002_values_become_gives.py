"""Imported metrics named the type of their values; metrics now say what they give, by the kinds of all verdicts."""

import json

from django.db import migrations

KINDS = {"number": "score", "bool": "pass_fail"}  # category and comparison keep their names


def _defined_anew(text):
    definition = json.loads(text)
    gives = definition.pop("values", "")
    if gives == "comparison":
        definition["compares"] = "all"
    return json.dumps(definition | {"gives": KINDS.get(gives, gives)}, ensure_ascii=False)


def rename(apps, schema_editor):
    for model in ("RunMetric", "Reading"):
        rows = apps.get_model("judging", model).objects.filter(definition__contains='"values":')
        for row in rows.iterator():
            row.definition = _defined_anew(row.definition)
            row.save(update_fields=["definition"])
    for row in apps.get_model("judging", "ResultsImport").objects.iterator():
        for metric in row.metrics.values():
            metric["kind"] = KINDS.get(metric["kind"], metric["kind"])
        for _line, _code, params in row.listed:
            params |= {name: KINDS[params[name]] for name in ("kind", "wanted") if params.get(name) in KINDS}
        row.save(update_fields=["metrics", "listed"])


class Migration(migrations.Migration):
    dependencies = [("judging", "0001_release_0_1_0")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
