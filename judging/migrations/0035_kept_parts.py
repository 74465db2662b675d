import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0034_kept_comparisons'),
    ]

    operations = [
        migrations.CreateModel(
            name='KeptPart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(help_text="hash of its name", max_length=32)),
                ('name', models.TextField()),
                ('wanted', models.BooleanField(default=False, help_text="whether a page waits for it")),
                ('layout', models.PositiveSmallIntegerField(default=0, help_text="format version of `packed`; figures of other versions are computed again")),
                ('revision', models.PositiveIntegerField(default=0, help_text="the run's revision when it was computed")),
                ('packed', models.BinaryField(default=b'', help_text='MessagePack')),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='kept_parts', to='judging.run')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('run', 'digest'), name='kept_part_once')],
            },
        ),
    ]
