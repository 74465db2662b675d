import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F


def fill_from_the_log(apps, schema_editor):
    """Accounts that a project's administrator created, according to the log, and that no other project ever used."""
    User = apps.get_model('accounts', 'User')
    Membership = apps.get_model('accounts', 'Membership')
    entries = apps.get_model('evalsite', 'AuditEntry').objects.filter(kind='user', project__isnull=False)
    created = entries.filter(action='account.created').exclude(actor=F('object_id'))
    for user, project in created.values_list('object_id', 'project'):
        added = entries.filter(object_id=user, action='member.added').exclude(project=project)
        belongs = Membership.objects.filter(user=user).exclude(project=project)
        if not added.exists() and not belongs.exists():
            User.objects.filter(pk=user).update(created_for=project)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_invitations_tokens'),
        ('evalsite', '0002_audit'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='created_for',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='accounts.project'),
        ),
        migrations.RunPython(fill_from_the_log, migrations.RunPython.noop, elidable=True),
    ]
