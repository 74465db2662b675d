"""Django looks for an app's models here; they are defined in its packages."""

# ruff: noqa: F401

import judging.deletion.models
import judging.endpoints.models
import judging.evidence.models
import judging.look.models
import judging.metrics.models
import judging.people.asking.models
import judging.people.guidelines.models
import judging.people.import_models
import judging.people.inviting.models
import judging.people.models
import judging.people.qualification.models
import judging.people.questions.models
import judging.records.models
import judging.reports.models
import judging.review.models
import judging.rubrics.models
import judging.teamwork.models
import judging.transfer.results_import.models
import judging.trust.drill_pages.models
import judging.trust.models
import judging.trust.succession.models
import judging.trust.watch.models
