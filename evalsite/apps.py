from __future__ import annotations

from django.apps import AppConfig


class EvalsiteConfig(AppConfig):
    name = "evalsite"

    def ready(self) -> None:
        from django.db.backends.signals import connection_created

        from evalsite import checks  # noqa: F401 - registers itself
        from evalsite.storage.development import check_connection

        connection_created.connect(check_connection)
