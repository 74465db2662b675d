"""For supervisors and load balancers: does this process answer, and does its database?"""

from __future__ import annotations

from django.db import connection
from django.http import HttpRequest, HttpResponse


def alive(request: HttpRequest) -> HttpResponse:
    """200 as soon as the process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


def ready(request: HttpRequest) -> HttpResponse:
    """200 if the database answers too; an exception, and so 500, if not."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse("ok\n", content_type="text/plain")
