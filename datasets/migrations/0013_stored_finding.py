from django.db import migrations


class Migration(migrations.Migration):
    """Rename the model and keep its table: the name `Finding` is that of the value in core/findings.py."""

    dependencies = [("datasets", "0012_import_places")]

    operations = [
        migrations.AlterModelTable(name="finding", table="datasets_finding"),
        migrations.RenameModel(old_name="Finding", new_name="StoredFinding"),
    ]
