"""The WSGI application, run by evalsite/web."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from evalsite.web.base_path import below

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
application = below(get_wsgi_application(), settings.CONFIG.base_path)
_ = get_resolver().url_patterns  # loads all views at startup, so that the first request is not slow
