from django.db import migrations


def forget_empty(apps, schema_editor):
    """Results without a leader: of comparisons they are worked out when the run's report is next opened."""
    outcomes = apps.get_model("judging", "RunOutcome").objects
    empty = [
        one.pk
        for one in outcomes.iterator()
        if not any(cell["mean"] is not None for metric in one.metrics for cell in metric["candidates"])
    ]
    for pk in empty:
        outcomes.filter(pk=pk).delete()


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0037_rejudging_in_batches'),
    ]

    operations = [migrations.RunPython(forget_empty, migrations.RunPython.noop, elidable=True)]
