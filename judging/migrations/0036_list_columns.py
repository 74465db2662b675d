"""The columns that each member has chosen to see in lists of judgements."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0035_kept_parts'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ListColumns',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='list_columns', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('names', models.JSONField(default=list, help_text="column names of review/columns.py")),
            ],
        ),
    ]
