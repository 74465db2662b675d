"""Runs users' templates and scripts in isolated processes. README.md describes design and guarantees."""
