"""The site's settings on a data folder that is deleted after the tests. The developer's shell does not change them."""

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
os.environ.setdefault("EVALSITE_TESTS", _folder)  # the first of several processes makes the one for all
(Path(_folder) / "static").mkdir()  # WhiteNoise complains of a missing one

from evalsite.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one is slow on purpose
