"""Measuring metrics of the gallery with a judge of the project, against verdicts of people."""
