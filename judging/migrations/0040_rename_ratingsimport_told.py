from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename the field and keep its column, so that nothing changes in the database."""

    dependencies = [("judging", "0039_places_and_reparsing")]

    operations = [
        migrations.AlterField(
            model_name="ratingsimport",
            name="told",
            field=models.JSONField(
                db_column="told", default=list, help_text="[[line, code, params]] of the first invalid lines"
            ),
        ),
        migrations.RenameField(model_name="ratingsimport", old_name="told", new_name="bad_lines"),
    ]
