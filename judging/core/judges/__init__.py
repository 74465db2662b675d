"""Asking judge models: one streaming client for OpenAI-compatible endpoints, and two doubles that answer."""
