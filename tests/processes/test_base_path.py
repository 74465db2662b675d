"""The site below a path behind nginx, which passes the path on or removes it: every address begins with it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from evalsite.accounts.models import Project, User
from tests.conftest import PASSWORD
from tests.make import a_version
from tests.processes.conftest import Processes, wait_until
from tests.starting import free_port, leashed

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed"),
]
ADDRESS = re.compile(r"""\s(?:href|src|action|hx-[a-z]+|data-[a-z-]*url)=["'](/[^"']*)["']""")
CONFIGURATION = """
daemon off; pid {folder}/nginx.pid; error_log stderr crit; worker_processes 1;
events {{}}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{
        listen 127.0.0.1:{port};
        location /evals/ {{
            proxy_pass http://127.0.0.1:{site}{passed};
            proxy_set_header Host $host; proxy_set_header X-Forwarded-Proto $scheme;
        }}
    }}
}}
"""


@pytest.fixture(params=["", "/"], ids=["path passed on", "path removed"])
def proxied(request: pytest.FixtureRequest, processes: Processes, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of nginx before a site with BASE_PATH."""
    port, site = free_port(), free_port()
    settings = {"PORT": str(site), "HOST": "127.0.0.1", "BASE_PATH": "/evals", "REQUIRE_SIGN_IN": "1"}
    processes.environment |= settings
    processes.start("serve", "--web-only")
    text = CONFIGURATION.format(folder=tmp_path, port=port, site=site, passed=request.param)
    (tmp_path / "nginx.conf").write_text(text)
    nginx = subprocess.Popen(leashed(["nginx", "-p", str(tmp_path), "-c", "nginx.conf"]))
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        wait_until(lambda: is_up(client), 60)
        yield client
    nginx.terminate()
    nginx.wait()


def is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/evals/healthz").status_code == 200
    except httpx.TransportError:
        return False


def sign_in(client: httpx.Client) -> httpx.Response:
    """Sign in as Alice; the site doesn't know the hashes that are quick for tests."""
    password = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1)
    User.objects.filter(username="alice").update(password=password)
    page = client.get("/evals/sign-in/")
    (token,) = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)[:1]
    fields = {"username": "alice", "password": PASSWORD, "csrfmiddlewaretoken": token}
    return client.post("/evals/sign-in/", data=fields)


def test_a_site_below_a_path(proxied: httpx.Client, project: Project, alice: User) -> None:
    version = a_version(project)
    there = f"/evals/p/{project.slug}/datasets/{version.dataset_id}/v1/"
    assert proxied.get("/evals/").headers["Location"] == "/evals/sign-in/?next=/evals/"
    assert sign_in(proxied).headers["Location"] == "/evals/"
    assert {cookie.path for cookie in proxied.cookies.jar} == {"/evals"}
    addresses: set[str] = set()
    for path in ("/evals/", f"/evals/p/{project.slug}/", there, "/evals/help/", "/evals/no/such/page/"):
        page = proxied.get(path, headers={"Accept": "text/html"})
        assert page.status_code == (404 if "such" in path else 200)
        addresses |= set(ADDRESS.findall(page.text))
    assert [address for address in addresses if not address.startswith("/evals/")] == []
    static = [address for address in addresses if address.startswith("/evals/static/")]
    assert {proxied.get(address).status_code for address in static} == {200}
