import django.db.models.deletion
from django.db import migrations, models


class AlterFieldOnPostgres(migrations.AlterField):
    """Drops the constraint where that is a matter of an instant.

    SQLite would write the table anew; its constraints are off while rows are written.
    """

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    dependencies = [("datasets", "0005_inference")]

    operations = [
        AlterFieldOnPostgres(
            model_name="response",
            name="row",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="responses",
                to="datasets.row",
            ),
        ),
        AlterFieldOnPostgres(
            model_name="row",
            name="version",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="data_rows",
                to="datasets.version",
            ),
        ),
    ]
