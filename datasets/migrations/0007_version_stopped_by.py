from django.db import migrations, models

STOPPING = ("file.encoding", "file.too_large", "file.too_many_rows")


def note_what_stopped(apps, schema_editor):
    """Of versions that were read before: a finding on the whole file, of those that end the reading."""
    Finding, Version = apps.get_model("datasets", "Finding"), apps.get_model("datasets", "Version")
    for version, code in Finding.objects.filter(code__in=STOPPING, line=None).values_list("version", "code"):
        Version.objects.filter(pk=version).update(stopped_by=code)


class Migration(migrations.Migration):
    dependencies = [("datasets", "0006_plain_row_references")]

    operations = [
        migrations.AddField(
            model_name="version",
            name="stopped_by",
            field=models.CharField(
                blank=True,
                default="",
                help_text="the finding that ended the reading before the end of its file, or of the file it was made from",
                max_length=40,
            ),
        ),
        migrations.RunPython(note_what_stopped, migrations.RunPython.noop),
    ]
