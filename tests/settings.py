"""The site's settings with a temporary DATA_DIR, independent of the developer's environment variables."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_folder = tempfile.mkdtemp(prefix="evalsite-tests-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
for _name in ("HOST", "PORT", "DEBUG", "HTTPS", "ALLOWED_HOSTS", "SECRET_KEY", "TIME_ZONE"):
    os.environ.pop(_name, None)
os.environ["DATA_DIR"] = _folder
# No test stops PostgreSQL itself, so none needs its commits on the disk: waiting for that takes 3 to 5 ms each.
os.environ.setdefault("PGOPTIONS", "-c synchronous_commit=off -c jit=off")
os.environ.setdefault("EVALSITE_TESTS", _folder)  # set by the first process for all of them
(Path(_folder) / "static").mkdir()  # WhiteNoise warns if it is missing

from evalsite.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one is slow on purpose
# WhiteNoise would list the static files again for each test client: a twentieth of the suite's time.
WHITENOISE_USE_FINDERS = False
