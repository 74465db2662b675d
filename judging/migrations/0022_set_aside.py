from django.db import migrations, models
from django.db.models import Count, F


def count_seats(apps, schema_editor):
    """Item.rated counts only ratings that hold a seat; there are few others."""
    extra = apps.get_model('judging', 'Assignment').objects.filter(extra=True, state='rated')
    for item, count in extra.values_list('item').annotate(count=Count('pk')).order_by('item'):
        apps.get_model('judging', 'Item').objects.filter(pk=item, rated__gte=count).update(rated=F('rated') - count)


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0021_guideline_versions'),
    ]

    operations = [
        migrations.AddField(
            model_name='evaluationrater',
            name='set_aside_at',
            field=models.DateTimeField(help_text='when their ratings were set aside: kept, shown, counted nowhere', null=True),
        ),
        migrations.AddField(
            model_name='evaluationrater',
            name='set_aside_reason',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AlterField(
            model_name='assignment',
            name='extra',
            field=models.BooleanField(default=False, help_text='holds no seat: beyond the ratings that the item needs, or set aside'),
        ),
        migrations.AlterField(
            model_name='item',
            name='rated',
            field=models.PositiveSmallIntegerField(default=0, help_text='number of its ratings that hold a seat'),
        ),
        migrations.RunPython(count_seats, migrations.RunPython.noop),
    ]
