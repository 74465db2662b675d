from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0032_review_together")]

    operations = [
        migrations.AddField(
            model_name="evaluation",
            name="about_rows",
            field=models.PositiveIntegerField(
                help_text="how many rows about_run had at the draw", null=True
            ),
        ),
    ]
