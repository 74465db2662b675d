"""Soak test of a whole site under mixed use: python -m tools.soak [--minutes 60] [--database postgres://…] [--celery]

Thirty simulated users send the requests a browser would (people.py) while the processes are measured (measure.py):
3 analysts upload files and start runs and evaluations, 20 raters rate, 5 reviewers page through judgements and
override some, 2 readers open reports. Exits 1 on any error, or if memory or file descriptors grow.
"""
