"""What a new database gets in one step. Older databases get the steps that it replaces."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('datasets', '0001_initial'), ('datasets', '0002_repairs'), ('datasets', '0003_search'), ('datasets', '0004_finding_lines'), ('datasets', '0005_inference'), ('datasets', '0006_plain_row_references'), ('datasets', '0007_version_stopped_by'), ('datasets', '0008_references_keep_their_turns'), ('datasets', '0009_version_parts'), ('datasets', '0010_file_imports'), ('datasets', '0011_row_edits')]

    initial = True

    dependencies = [
        ('accounts', '0004_drafts'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Candidate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.TextField()),
                ('source', models.CharField(default='uploaded', help_text='or run<id>: asked by a run', max_length=10)),
                ('rows', models.PositiveIntegerField(default=0)),
                ('responses', models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Difference',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('waiting', 'waiting to be compared'), ('comparing', 'being compared'), ('ready', 'ready'), ('failed', 'could not be compared')], default='waiting', max_length=10)),
                ('by_id', models.BooleanField(default=False, help_text='rows were matched by the field `id`, else by content')),
                ('same', models.PositiveIntegerField(default=0)),
                ('added', models.PositiveIntegerField(default=0)),
                ('removed', models.PositiveIntegerField(default=0)),
                ('changed', models.PositiveIntegerField(default=0)),
                ('rows_read', models.PositiveIntegerField(default=0, help_text='of both versions, while they are compared')),
                ('owner', models.CharField(blank=True, default='', help_text='the worker that compares', max_length=120)),
                ('lease_until', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Row',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('line', models.PositiveIntegerField()),
                ('valid', models.BooleanField()),
                ('raw', models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name='Version',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('waiting', 'waiting to be read'), ('reading', 'being read'), ('ready', 'ready'), ('failed', 'could not be read'), ('cancelled', 'cancelled')], default='waiting', max_length=10)),
                ('origin', models.CharField(default='upload', max_length=20)),
                ('file_name', models.CharField(max_length=255)),
                ('stored_as', models.CharField(help_text='path below DATA_DIR', max_length=255)),
                ('size', models.BigIntegerField(default=0)),
                ('sha256', models.CharField(blank=True, default='', max_length=64)),
                ('parts', models.JSONField(default=list, help_text='the uploaded files it was joined from: see parts.py')),
                ('chosen_format', models.CharField(blank=True, default='', help_text='as corrected by the uploader', max_length=20)),
                ('format', models.CharField(blank=True, default='', max_length=20)),
                ('format_why', models.JSONField(default=dict)),
                ('encoding', models.CharField(blank=True, default='', max_length=20)),
                ('bytes_read', models.BigIntegerField(default=0)),
                ('rows', models.PositiveIntegerField(default=0)),
                ('valid_rows', models.PositiveIntegerField(default=0)),
                ('stopped_by', models.CharField(blank=True, default='', help_text='the finding that ended the reading before the end of its file, or of the file it was made from', max_length=40)),
                ('counts', models.JSONField(default=dict, help_text='{finding code: how many}, complete')),
                ('models_found', models.JSONField(default=dict, help_text='{model name: {rows, responses}}')),
                ('fields_found', models.JSONField(default=dict, help_text='{custom field: rows}')),
                ('problem', models.TextField(blank=True, default='', help_text='why the reading failed')),
                ('repairs', models.JSONField(default=list, help_text="what makes its file from the parent's, in order")),
                ('left_out_at', models.DateTimeField(help_text='when somebody chose to leave the bad rows out', null=True)),
                ('cancel_wanted', models.BooleanField(default=False)),
                ('owner', models.CharField(blank=True, default='', help_text='the worker that reads it', max_length=120)),
                ('lease_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Dataset',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('archived_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='datasets', to='accounts.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='dataset_name_once')],
            },
        ),
        migrations.CreateModel(
            name='DifferenceRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField()),
                ('kind', models.CharField(choices=[('added', 'added'), ('removed', 'removed'), ('changed', 'changed')], max_length=7)),
                ('old_line', models.PositiveIntegerField(null=True)),
                ('new_line', models.PositiveIntegerField(null=True)),
                ('difference', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='found', to='datasets.difference')),
            ],
            options={
                'indexes': [models.Index(fields=['difference', 'kind', 'position'], name='difference_by_kind')],
                'constraints': [models.UniqueConstraint(fields=('difference', 'position'), name='difference_row_once')],
            },
        ),
        migrations.CreateModel(
            name='Response',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField(help_text='from 1, within row and candidate')),
                ('raw', models.TextField()),
                ('candidate', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='datasets.candidate')),
                ('row', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='responses', to='datasets.row')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('row', 'candidate', 'number'), name='response_once')],
            },
        ),
        migrations.CreateModel(
            name='SavedColumns',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('header', models.CharField(help_text='SHA-256 of the names of the columns', max_length=64)),
                ('columns', models.TextField(help_text='as --columns has it')),
                ('saved_at', models.DateTimeField(auto_now=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_columns', to='accounts.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'header'), name='saved_columns_once')],
            },
        ),
        migrations.CreateModel(
            name='SearchIndex',
            fields=[
                ('version', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='search_index', serialize=False, to='datasets.version')),
                ('state', models.CharField(choices=[('building', 'being built'), ('ready', 'ready'), ('failed', 'could not be built')], default='building', max_length=10)),
                ('line', models.PositiveIntegerField(default=0, help_text='the last line that is in it')),
                ('rows', models.PositiveIntegerField(default=0)),
                ('size', models.BigIntegerField(default=0)),
                ('owner', models.CharField(blank=True, default='', max_length=120)),
                ('lease_until', models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name='version',
            name='dataset',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='datasets.dataset'),
        ),
        migrations.AddField(
            model_name='version',
            name='left_out_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='version',
            name='parent',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='datasets.version'),
        ),
        migrations.CreateModel(
            name='RowEdit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('line', models.PositiveIntegerField()),
                ('lines', models.PositiveIntegerField(default=1, help_text='how many lines of the file the row takes')),
                ('number', models.PositiveIntegerField(help_text='from 1, within version and line')),
                ('before', models.TextField(help_text='the row as it stands in the file')),
                ('text', models.TextField()),
                ('discarded', models.BooleanField(default=False)),
                ('edited_at', models.DateTimeField(auto_now_add=True)),
                ('author', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('made', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='made_by_edits', to='datasets.version')),
                ('version', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='row_edits', to='datasets.version')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('version', 'line', 'number'), name='row_edit_once')],
            },
        ),
        migrations.AddField(
            model_name='row',
            name='version',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='data_rows', to='datasets.version'),
        ),
        migrations.CreateModel(
            name='FindingLines',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('block', models.PositiveIntegerField()),
                ('code', models.CharField(max_length=40)),
                ('packed', models.BinaryField()),
                ('version', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='finding_lines', to='datasets.version')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('version', 'block', 'code'), name='finding_lines_once')],
            },
        ),
        migrations.CreateModel(
            name='Finding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=40)),
                ('severity', models.CharField(max_length=7)),
                ('line', models.PositiveIntegerField(null=True)),
                ('column', models.PositiveIntegerField(null=True)),
                ('path', models.TextField(blank=True, default='')),
                ('repair', models.CharField(blank=True, default='', max_length=40)),
                ('params', models.JSONField(default=dict)),
                ('version', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='findings', to='datasets.version')),
            ],
            options={
                'indexes': [models.Index(fields=['version', 'code', 'line'], name='finding_by_code')],
            },
        ),
        migrations.CreateModel(
            name='FileImport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text="the data set's", max_length=200)),
                ('files', models.JSONField(default=list, help_text='[{name, stored_as, size, sha256}] in order')),
                ('source', models.CharField(help_text='a name of core/imports/registry.py', max_length=40)),
                ('columns', models.TextField(blank=True, default='', help_text="of a table, as --columns has it; '' the guess")),
                ('sheet', models.TextField(blank=True, default='')),
                ('notes', models.JSONField(default=list, help_text='[[what it becomes, the name in the file]]')),
                ('left_out', models.JSONField(default=list, help_text='[[file, line, sheet, code, detail]], cut per code')),
                ('left_out_counts', models.JSONField(default=dict, help_text='{code: how many}, complete')),
                ('verdicts', models.PositiveIntegerField(default=0)),
                ('verdicts_as', models.CharField(blank=True, default='', help_text='a results file below DATA_DIR', max_length=255)),
                ('problem', models.JSONField(default=dict, help_text='why the files cannot be read: {code, params}')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='file_imports', to='accounts.project')),
                ('made', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='made_by_import', to='datasets.version')),
                ('version', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='file_import', to='datasets.version')),
            ],
        ),
        migrations.AddField(
            model_name='difference',
            name='new',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='datasets.version'),
        ),
        migrations.AddField(
            model_name='difference',
            name='old',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='datasets.version'),
        ),
        migrations.AddField(
            model_name='candidate',
            name='version',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='candidates', to='datasets.version'),
        ),
        migrations.CreateModel(
            name='Attachment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('waiting', 'waiting to be matched'), ('matching', 'being matched'), ('matched', 'matched'), ('used', 'version created'), ('discarded', 'discarded'), ('failed', 'could not be matched')], default='waiting', max_length=10)),
                ('file_name', models.CharField(max_length=255)),
                ('stored_as', models.CharField(help_text='path below DATA_DIR', max_length=255)),
                ('size', models.BigIntegerField(default=0)),
                ('model_name', models.TextField(blank=True, default='', help_text='whose answers a legacy file holds')),
                ('match_by', models.CharField(blank=True, default='', max_length=10)),
                ('done', models.BigIntegerField(default=0)),
                ('total', models.BigIntegerField(default=0)),
                ('report', models.JSONField(default=dict, help_text='attaching.Report of the core')),
                ('merged_as', models.CharField(blank=True, default='', max_length=255)),
                ('unmatched_as', models.CharField(blank=True, default='', max_length=255)),
                ('problem', models.JSONField(default=dict, help_text='why it could not be matched: {code, params}')),
                ('owner', models.CharField(blank=True, default='', max_length=120)),
                ('lease_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('made', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='attached_by', to='datasets.version')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='datasets.version')),
            ],
        ),
        migrations.AddConstraint(
            model_name='version',
            constraint=models.UniqueConstraint(fields=('dataset', 'number'), name='version_number_once'),
        ),
        migrations.AddIndex(
            model_name='row',
            index=models.Index(condition=models.Q(('valid', False)), fields=['version', 'line'], name='row_bad'),
        ),
        migrations.AddConstraint(
            model_name='row',
            constraint=models.UniqueConstraint(fields=('version', 'line'), name='row_line_once'),
        ),
        migrations.AddConstraint(
            model_name='difference',
            constraint=models.UniqueConstraint(fields=('old', 'new'), name='difference_once'),
        ),
        migrations.AddConstraint(
            model_name='candidate',
            constraint=models.UniqueConstraint(fields=('version', 'name', 'source'), name='candidate_once'),
        ),
    ]
