"""Django looks for an app's models here; they are defined in its packages."""

# ruff: noqa: F401

import judging.comparison.models
import judging.endpoints.models
import judging.metrics.models
import judging.people.models
import judging.reports.models
import judging.review.models
import judging.runs.models
import judging.runs.results_import.models
import judging.runs.teamwork.models
