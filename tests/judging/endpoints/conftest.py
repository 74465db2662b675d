"""Endpoints, and a metric to try."""

from tests.judging.metrics.conftest import endpoint, live, metric, server, version

__all__ = ["endpoint", "live", "metric", "server", "version"]
