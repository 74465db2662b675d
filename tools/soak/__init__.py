"""Mixed use of a whole site for an hour: python -m tools.soak [--minutes 60] [--database postgres://…] [--celery]

Thirty people work over HTTP as in a browser (people.py), while the processes are measured (measure.py): 3 analysts
upload files and start runs and evaluations, 20 raters rate, 5 reviewers page through judgements and override some,
2 readers open reports. Exits 1 on any error, and if memory or file descriptors grow.
"""
