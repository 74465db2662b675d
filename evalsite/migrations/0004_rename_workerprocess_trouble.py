from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename the field and keep its column, so that nothing changes in the database."""

    dependencies = [("evalsite", "0003_workerprocess_trouble_waking")]

    operations = [
        migrations.AlterField(
            model_name="workerprocess",
            name="trouble",
            field=models.CharField(
                blank=True, db_column="trouble", default="", help_text="`broker`: the broker does not respond", max_length=10
            ),
        ),
        migrations.RenameField(model_name="workerprocess", old_name="trouble", new_name="error"),
    ]
