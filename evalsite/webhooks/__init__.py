"""Webhooks: requests that tell other servers of a project's events, after the Standard Webhooks text."""
