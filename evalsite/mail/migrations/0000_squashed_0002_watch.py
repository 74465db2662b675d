import django.db.models.deletion
import evalsite.storage.create_tables
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('mail', '0001_mail'), ('mail', '0002_watch')]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        evalsite.storage.create_tables.CreateTables(
            operations=[migrations.CreateModel(
                name='MailAddress',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('address', models.CharField(blank=True, db_index=True, default='', help_text='confirmed', max_length=254)),
                    ('pending', models.CharField(blank=True, default='', help_text='not confirmed yet', max_length=254)),
                    ('token_hash', models.CharField(blank=True, db_index=True, default='', max_length=64)),
                    ('token_until', models.DateTimeField(null=True)),
                    ('time_zone', models.CharField(blank=True, default='', help_text="'': TIME_ZONE", max_length=60)),
                    ('mentions', models.BooleanField(default=True, verbose_name='Mentions in comments, at once')),
                    ('ratings', models.BooleanField(default=True, verbose_name='Ratings that wait, once a day')),
                    ('runs', models.BooleanField(default=True, verbose_name='Runs that I started and that finished')),
                    ('alarms', models.BooleanField(db_default=True, default=True, verbose_name='Alarms of watched judges')),
                    ('invitations', models.BooleanField(default=True, verbose_name='Invitations to projects')),
                    ('resets', models.BooleanField(default=True, verbose_name='Links to reset my password')),
                    ('digest_on', models.DateField(help_text="the reader's day of the last daily mail", null=True)),
                    ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='mail', to=settings.AUTH_USER_MODEL)),
                ],
            ), migrations.CreateModel(
                name='OutgoingMail',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('confirm', 'Confirm'), ('mentions', 'Mentions'), ('ratings', 'Ratings'), ('runs', 'Runs'), ('alarms', 'Alarms'), ('invitations', 'Invitations'), ('resets', 'Resets')], max_length=11)),
                    ('address', models.CharField(max_length=254)),
                    ('subject', models.CharField(max_length=300)),
                    ('text_encrypted', models.TextField()),
                    ('retries', models.PositiveSmallIntegerField(default=0)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
            ), migrations.CreateModel(
                name='PasswordReset',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('address', models.CharField(blank=True, default='', help_text='as it was requested', max_length=254)),
                    ('token_hash', models.CharField(blank=True, db_index=True, default='', max_length=64)),
                    ('expires_at', models.DateTimeField()),
                    ('used_at', models.DateTimeField(null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
            )],
        ),
    ]
