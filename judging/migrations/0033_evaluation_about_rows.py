from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0032_review_together")]

    operations = [
        migrations.AddField(
            model_name="evaluation",
            name="about_rows",
            field=models.PositiveIntegerField(
                help_text="number of rows of about_run when they were sampled", null=True
            ),
        ),
    ]
