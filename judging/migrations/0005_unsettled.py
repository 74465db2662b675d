"""The state `unsettled` of comparisons of candidates, which is longer than the states before."""

from django.db import migrations, models

STATES = [
    ("scored", "scored"),
    ("no_score", "no score"),
    ("unparsed", "unparsed"),
    ("unsettled", "unsettled"),
    ("error", "error"),
    ("not_run", "not run"),
]

# PostgreSQL cannot alter a column that a generated column uses, so that one and its indexes are made again.
_COVERED = ("run_metric", "candidate", "state_in_force", "score_in_force")


def _order_index(name, field):
    fields = ["run", "current", field, "position", *(column for column in _COVERED if column != field)]
    return models.Index(fields=fields, name=name)


INDEXES = [
    models.Index(
        fields=["run", "run_metric", "candidate", "state_in_force", "score_in_force", "position"],
        condition=models.Q(current=True),
        name="judgement_figures",
    ),
    models.Index(fields=["run", "current", "state_in_force", "position"], name="judgement_state"),
    _order_index("judgement_score", "score_in_force"),
    _order_index("judgement_seconds", "seconds"),
    _order_index("judgement_changed", "changed_at"),
]


class Migration(migrations.Migration):
    dependencies = [("judging", "0004_structured_output")]

    operations = [
        migrations.AddField("run", "unsettled", models.PositiveIntegerField(default=0)),
        migrations.AlterField(
            "judgement",
            "shown_first",
            models.PositiveSmallIntegerField(
                null=True,
                help_text="the side seen first (people: left): 1 response, 2 other response; null: both, or unknown",
            ),
        ),
        *(migrations.RemoveIndex("judgement", index.name) for index in INDEXES),
        migrations.RemoveField("judgement", "state_in_force"),
        migrations.AlterField(
            "judgement", "state", models.CharField(max_length=9, choices=STATES, default="not_run")
        ),
        migrations.AddField(
            "judgement",
            "state_in_force",
            models.GeneratedField(
                expression=models.Case(
                    models.When(override_value=None, then=models.F("state")), default=models.Value("scored")
                ),
                output_field=models.CharField(max_length=9),
                db_persist=True,
            ),
        ),
        *(migrations.AddIndex("judgement", index) for index in INDEXES),
    ]
