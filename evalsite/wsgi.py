"""The WSGI application, run by evalsite/web."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
application = get_wsgi_application()
_ = get_resolver().url_patterns  # loads all views at startup, so that the first request is not slow
