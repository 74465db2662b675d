"""Watches of licensed judges: baseline, checks, alarms."""
