"""Saved views, and how far apart the judges of a judgement are, also of those that were made before."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
import msgspec
from django.conf import settings
from django.db import migrations, models

from judging.core.pipeline import judge_spread
from judging.core.results import Verdict

BATCH = 2_000


def work_spread_out(apps: Any, schema_editor: Any) -> None:
    Judgement = apps.get_model("judging", "Judgement")
    read = msgspec.json.Decoder(list[Verdict]).decode
    of_several = Judgement.objects.filter(verdicts__contains='"judge":1,').values_list("pk", "verdicts")
    found: dict[float, list[int]] = {}
    for pk, verdicts in of_several.iterator(BATCH):
        spread = judge_spread(read(verdicts))
        if spread is not None:
            found.setdefault(spread, []).append(pk)
    for spread, pks in found.items():
        for at in range(0, len(pks), BATCH):
            Judgement.objects.filter(pk__in=pks[at : at + BATCH]).update(spread=spread)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_account_created_for'),
        ('datasets', '0009_version_parts'),
        ('judging', '0030_reading_of_a_part'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('query', models.TextField(help_text='without the question mark')),
                ('shared', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.AddField(
            model_name='judgement',
            name='spread',
            field=models.FloatField(help_text="difference between its judges (core/pipeline.py); null: fewer than two gave a value", null=True),
        ),
        migrations.RunPython(work_spread_out, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name='judgement',
            index=models.Index(condition=models.Q(('current', True), ('spread__isnull', False)), fields=['run', 'spread', 'position'], name='judgement_spread'),
        ),
        migrations.AddField(
            model_name='savedview',
            name='owner',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='savedview',
            name='project',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to='accounts.project'),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.UniqueConstraint(fields=('owner', 'project', 'name'), name='saved_view_name_once'),
        ),
    ]
