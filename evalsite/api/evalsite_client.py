"""A client of evalsite's HTTP API: one file, which needs Python 3.11 and httpx, and nothing of the site.

    from evalsite_client import Client

    site = Client("https://evalsite.example", "TOKEN")
    version = site.upload("answers.jsonl")
    site.metric(Path("metrics.yaml"))
    run = site.run(version, candidates=["alpha"], metrics=["quality"])
    run.wait(progress=True).report()["headline"]

Every site serves this file at /api/v1/client.py. Lists are pandas DataFrames where pandas is installed, else lists of
dicts.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

Json = dict[str, Any]
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 15.0  # seconds between two looks at a run or version
PAGE = 1000
AGAIN = (429, 503)
ENDED = ("finished", "cancelled", "failed", "paused")
READ = ("ready", "failed", "cancelled")


class EvalsiteError(Exception):
    """The site refused a request, or could not be reached (`status` 0). `code` is stable, `fields`: {name: why}."""

    def __init__(self, status: int, code: str, message: str, fields: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.fields = status, code, message, dict(fields or {})


class Client:
    """A site with an access token. `project`: its slug; needed if the token opens more than one.

    Requests that the site is too busy for, and those that it did not answer, are sent again for up to `patience`
    seconds, with the same Idempotency-Key, so that nothing is done twice.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        project: str = "",
        language: str = "en",
        timeout: float = 60.0,
        patience: float = 300.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/api/v1")
        self.patience = patience
        self._project = project
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1/",
            headers={"Authorization": f"Bearer {token}", "Accept-Language": language},
            timeout=timeout,
            transport=transport,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    @property
    def project(self) -> str:
        """The slug of the project. Raises EvalsiteError if the token opens several and none was chosen."""
        if not self._project:
            slugs = [row["slug"] for row in self.items("projects")]
            if len(slugs) != 1:
                names = ", ".join(slugs) or "none"
                raise EvalsiteError(
                    0, "no_project", f"Choose one of the token's projects, project=…: {names}."
                )
            (self._project,) = slugs
        return self._project

    def choose_project(self, slug: str) -> None:
        """Work in another project; '' changes nothing."""
        self._project = slug or self._project

    def path(self, path: str) -> str:
        """An address within the project."""
        return f"projects/{self.project}/{path}"

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at an address below /api/v1/."""
        return self.send("GET", path, params=_sent(query)).json()

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        """The reply to a JSON body."""
        return self.send("POST", path, params=_sent(query), json={} if body is None else body).json()

    def items(self, path: str, **query: Any) -> Iterator[Json]:
        """All items of a list, page by page."""
        cursor: str | None = ""
        while cursor is not None:
            page = self.get(path, **{"limit": PAGE, **query, "cursor": cursor})
            yield from page["items"]
            cursor = page["next"]

    def send(self, method: str, path: str, *, file: Path | None = None, **request: Any) -> httpx.Response:
        """Send a request until it is answered. Raises EvalsiteError."""
        headers = {**request.pop("headers", {})}
        if method != "GET":
            headers["Idempotency-Key"] = uuid.uuid4().hex
        until = time.monotonic() + self.patience
        pause = FIRST_PAUSE
        while True:
            with contextlib.ExitStack() as opened:
                if file is not None:  # from its beginning each time
                    stream = opened.enter_context(file.open("rb"))
                    request["files"] = {"file": (file.name, stream)}
                response, error = self._try(method, path, headers, request)
            if error is None and response is not None:
                return response
            assert error is not None
            wait = _seconds_to_wait(response, pause)
            if wait is None or time.monotonic() + wait > until:
                raise error
            time.sleep(wait)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _try(
        self, method: str, path: str, headers: Json, request: Json
    ) -> tuple[httpx.Response | None, EvalsiteError | None]:
        try:
            response = self._http.request(method, path, headers=headers, **request)
        except httpx.TransportError as error:
            text = f"{self.url} does not answer: {error or type(error).__name__}."
            return None, EvalsiteError(0, "unreachable", text)
        return response, None if response.is_success else _error_of(response)

    def upload(self, path: str | Path, *, name: str = "", wait: bool = True) -> Version:
        """Upload a file as a data set, or as a new version of the one called `name`; wait until it was read."""
        fields = {"name": name} if name else {}
        reply = self.send("POST", self.path("datasets"), file=Path(path), data=fields).json()
        version = Version(self, reply["dataset"], reply["version"], reply["id"])
        return version.wait() if wait else version

    def metric(self, yaml: str | Path, *, dry: bool = False) -> list[Json]:
        """Save the metrics of a metrics file, given as text or as Path; `dry` checks them only."""
        text = yaml.read_text(encoding="utf-8") if isinstance(yaml, Path) else yaml
        kind = {"Content-Type": "application/yaml"}
        query = _sent({"dry": dry or None})
        reply = self.send("POST", self.path("metrics"), params=query, content=text.encode(), headers=kind)
        saved: list[Json] = reply.json()["metrics"]
        return saved

    def run(
        self,
        version: Version | int,
        candidates: Sequence[str | Json],
        metrics: Sequence[str | Json],
        *,
        rows: int | None = None,
        seed: int | None = None,
        name: str = "",
        budget: Json | None = None,
        batched: bool = False,
        plain_if_expired: bool = False,
    ) -> Run:
        """Start a run. `rows`: how many, drawn at random by `seed`; None: all. `budget`: {calls, tokens, money}.
        `batched`: in batches, cheaper and answered within a day; `plain_if_expired`: send alone what one left."""
        chosen = {"batched": batched or None, "plain_if_expired": plain_if_expired or None}
        body = _run_body(
            version, candidates, metrics, rows=rows, seed=seed, name=name, budget=budget, **chosen
        )
        return Run(self, self.post(self.path("runs"), body))

    def estimate(
        self,
        version: Version | int,
        candidates: Sequence[str | Json],
        metrics: Sequence[str | Json],
        *,
        rows: int | None = None,
    ) -> Json:
        """What a run would take: calls, tokens, money, and `warnings`. Nothing is started."""
        body = _run_body(version, candidates, metrics, rows=rows)
        estimate: Json = self.post(self.path("runs"), body, dry=1)
        return estimate

    def get_run(self, pk: int) -> Run:
        """A run by its number."""
        return Run(self, self.get(self.path(f"runs/{pk}")))


@dataclass
class Version:
    """A version of a data set. `id` is its number in runs."""

    client: Client
    dataset: int
    number: int
    id: int

    def state(self) -> Json:
        """Its state, rows, models, fields and counts of findings."""
        state: Json = self.client.get(self._path())
        return state

    def wait(self) -> Version:
        """Wait until it was read. Raises EvalsiteError if that failed."""
        for state in _looks(self.state, lambda state: state["state"] in READ):
            if state["state"] in ("failed", "cancelled"):
                raise EvalsiteError(0, "not_read", f"The file was not read: {state['problem']}")
        return self

    def findings(self) -> Any:
        """What was found in the file."""
        return _table(self.client.items(f"{self._path()}/findings"))

    def _path(self) -> str:
        return self.client.path(f"datasets/{self.dataset}/versions/{self.number}")


class Run:
    """A run; `state` holds what the site last said about it."""

    def __init__(self, client: Client, state: Json) -> None:
        self.client, self.state = client, state
        self.id: int = state["id"]

    @property
    def url(self) -> str:
        """Its page."""
        return f"{self.client.url}{self.state['url']}"

    def refresh(self) -> Run:
        """Ask for its state."""
        self.state = self.client.get(self.path())
        return self

    def wait(self, *, progress: bool = False, timeout: float | None = None) -> Run:
        """Wait until it ended or was paused, asking after 1 to 15 seconds. Raises TimeoutError."""
        for state in _looks(lambda: self.refresh().state, lambda state: state["state"] in ENDED, timeout):
            if progress:
                sys.stderr.write(
                    f"\r{state['done']} of {state['total'] or '?'} judged, {state['errors']} errors "
                )
                sys.stderr.flush()
        if progress:
            sys.stderr.write("\n")
        return self

    def report(self, by: Sequence[str] = ()) -> Json:
        """Its figures. `by`: fields of the rows to break them down by."""
        report: Json = self.client.get(self.path("report"), by=list(by))
        return report

    def judgements(self, *, fields: str = "core,value", **filters: Any) -> Any:
        """Its judgements; `filters` as in the list, such as metric=, candidate=, state=, least=."""
        return _table(self.client.items(self.path("judgements"), fields=fields, **filters))

    def ratings(self, *, names: bool = False, history: bool = False) -> Any:
        """The ratings of people in it: those of human evaluations of its answers, or its own if it is one.
        `evaluation` is the evaluation's number. `names`: user names instead of pseudonyms (organisers only);
        `history`: also ratings that were changed or undone."""
        return _table(
            {"evaluation": pk, **rating}
            for pk in self._evaluations()
            for rating in self.client.items(
                self.client.path(f"evaluations/{pk}/ratings"), names=names, history=history
            )
        )

    def _evaluations(self) -> list[int]:
        """The numbers of the evaluations that its report includes."""
        path = self.client.path("evaluations")
        lists = [self.client.items(path, run=self.id, archived=archived) for archived in (False, True)]
        return sorted(row["id"] for rows in lists for row in rows)

    def ci(
        self,
        folder: str | Path,
        *,
        require: Sequence[str] = (),
        baseline: int | None = None,
        texts: bool = False,
    ) -> int:
        """Write report.html, report.json, junit.xml and summary.md. Returns 0 if all requirements are met, 3 if one is
        not, 4 if one is undecided. `baseline`: an earlier run; `texts`: also of answers, which CI logs may publish."""
        query = {"require": list(require), "baseline": baseline, "texts": texts, "site": self.client.url}
        reply = self.client.get(self.path("ci"), **query)
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        for name, text in reply["files"].items():
            (target / name).write_text(text, encoding="utf-8")
        status: int = reply["status"]
        return status

    def export(self, path: str | Path, *, form: str = "") -> Path:
        """Write all judgements to a file; its ending is the form (jsonl, csv, xlsx, parquet) unless given."""
        target = Path(path)
        query = {"form": form or target.suffix.removeprefix(".") or "jsonl"}
        target.write_bytes(self.client.send("GET", self.path("export"), params=query).content)
        return target

    def pause(self) -> Run:
        """Stop for now; calls in progress end and are stored."""
        return self._steer("pause")

    def resume(self) -> Run:
        """Go on where it stopped."""
        return self._steer("resume")

    def cancel(self) -> Run:
        """Stop for good; what was judged stays."""
        return self._steer("cancel")

    def path(self, path: str = "") -> str:
        """An address below the run's."""
        return self.client.path(f"runs/{self.id}/{path}".rstrip("/"))

    def _steer(self, action: str) -> Run:
        self.client.post(self.path(action))
        return self.refresh()


def _run_body(version: Version | int, candidates: Any, metrics: Any, **further: Any) -> Json:
    number = version if isinstance(version, int) else version.id
    body = {"version": number, "candidates": list(candidates), "metrics": list(metrics)}
    return body | {name: value for name, value in further.items() if value is not None}


def _looks(ask: Any, ended: Any, timeout: float | None = None) -> Iterator[Json]:
    """The states until the last one, with growing pauses. Raises TimeoutError."""
    until = None if timeout is None else time.monotonic() + timeout
    pause = FIRST_PAUSE
    while True:
        state = ask()
        yield state
        if ended(state):
            return
        if until is not None and time.monotonic() + pause > until:
            raise TimeoutError(f"Not ended after {timeout} seconds: {state['state']}.")
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)


def _sent(query: Mapping[str, Any]) -> Json:
    return {name: value for name, value in query.items() if value is not None}


def _seconds_to_wait(response: httpx.Response | None, pause: float) -> float | None:
    """How long to wait before the request is sent again; None: it is of no use."""
    if response is None:
        return pause
    if response.status_code in AGAIN or (response.status_code == 409 and "Retry-After" in response.headers):
        after = response.headers.get("Retry-After", "")
        return float(after) if after.isdecimal() else pause
    return None


def _error_of(response: httpx.Response) -> EvalsiteError:
    try:
        error = response.json()["error"]
        return EvalsiteError(response.status_code, error["code"], error["message"], error.get("fields"))
    except (ValueError, KeyError, TypeError):
        text = f"The site answered with status {response.status_code}."
        return EvalsiteError(response.status_code, "unexpected", text)


def _table(rows: Iterator[Json]) -> Any:
    """A DataFrame where pandas is installed, else the rows as a list."""
    listed = list(rows)
    try:
        import pandas as pd
    except ImportError:
        return listed
    return pd.DataFrame(listed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge a file on a site, and write the files for continuous integration. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="evalsite_client.py",
        description="Upload FILE to the site EVALSITE_URL with the token EVALSITE_TOKEN, judge it, and write a report.",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--metrics", type=Path, metavar="YAML", required=True, help="the metrics file")
    parser.add_argument("--ci", type=Path, metavar="DIR", required=True, help="folder for the report")
    parser.add_argument("--project", default="", help="its slug, if the token opens several")
    parser.add_argument("--name", default="", help="the run's name")
    parser.add_argument("--require", action="append", default=[], metavar="REQUIREMENT")
    parser.add_argument("--baseline", type=int, metavar="RUN", help="number of an earlier run")
    parser.add_argument("--texts", action="store_true", help="also show answers, which CI logs may publish")
    chosen = parser.parse_args(arguments)
    missing = [name for name in ("EVALSITE_URL", "EVALSITE_TOKEN") if not os.environ.get(name)]
    if missing:
        parser.error(f"{' and '.join(missing)} must be set in the environment.")
    try:
        with Client(
            os.environ["EVALSITE_URL"], os.environ["EVALSITE_TOKEN"], project=chosen.project
        ) as client:
            return _evaluate(client, chosen)
    except (EvalsiteError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _evaluate(client: Client, chosen: argparse.Namespace) -> int:
    metrics = [saved["name"] for saved in client.metric(chosen.metrics)]
    version = client.upload(chosen.file)
    run = client.run(version, candidates=list(version.state()["models"]), metrics=metrics, name=chosen.name)
    sys.stderr.write(f"{run.url}\n")
    run.wait(progress=sys.stderr.isatty())
    status = run.ci(chosen.ci, require=chosen.require, baseline=chosen.baseline, texts=chosen.texts)
    if run.state["state"] != "finished":
        sys.stderr.write(f"The run is {run.state['state']}.\n")
        return status or 1
    return status


if __name__ == "__main__":
    sys.exit(main())
