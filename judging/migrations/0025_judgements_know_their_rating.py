from django.db import migrations

# A rating's judgements used to be found by their places in the run: from `first_position` on, one a criterion, in the
# order of the criteria's numbers. Half a million are found by the index of places, in one statement.
FILL = """
UPDATE judging_judgement SET rating_id = made.rating_id
FROM (
    SELECT rating.id AS rating_id, evaluation.run_id AS run_id,
           rating.first_position + metric.number AS position
    FROM judging_rating rating
    JOIN judging_evaluationrater rater ON rater.id = rating.rater_id
    JOIN judging_evaluation evaluation ON evaluation.id = rater.evaluation_id
    JOIN judging_runmetric metric ON metric.run_id = evaluation.run_id
    WHERE rating.first_position IS NOT NULL
) AS made
WHERE judging_judgement.run_id = made.run_id AND judging_judgement.position = made.position
"""


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0024_imported_verdicts'),
    ]

    operations = [
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
