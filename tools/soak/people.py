"""The simulated users. Each repeats its step, with a pause in between."""

from __future__ import annotations

import json
import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from tools.soak.browser import Browser, Form, Requests, Unexpected, form_in

PROJECT = "/p/soak"
ROWS, CANDIDATES = 1_000, ("alpha", "beta")
RATED_ROWS = 30
WAIT = 900.0  # seconds after which an unfinished upload or run counts as an error
ARRIVING = 60.0  # seconds over which the users sign in
ITEM = re.compile(r'data-item="([\w-]+)"')
PILL = re.compile(r'class="pill" [^>]*data-pk="(\d+)"')
NEXT = re.compile(r'rel="next"[^>]* href="([^"]*)"')
_WORDS = (
    "the",
    "answer",
    "names",
    "both",
    "causes",
    "and",
    "leaves",
    "one",
    "out",
    "回答列出了两个原因",
    "但遗漏了一个",
    "第三步的推理不完整",
)


@dataclass
class Person:
    """Signs in once, then repeats `step` until `stop` is set, pausing about `pause` seconds in between."""

    name: str
    password: str
    site: str
    requests: Requests
    stop: threading.Event
    runs: list[int]  # ids of finished runs, newest last; analysts append to it
    pause: float
    role: ClassVar[str]
    random: random.Random = field(default_factory=random.Random)

    def live(self) -> None:
        self.browser = Browser(self.site, self.requests)
        signed_in = False
        self.stop.wait(self.random.random() * ARRIVING)
        while not self.stop.is_set():
            try:
                if not signed_in:
                    self.browser.sign_in(self.name, self.password)
                    signed_in = True
                self.step()
            except Exception as error:  # any error of one user fails the whole soak test
                self.requests.fail(f"{self.name}: {type(error).__name__}: {error}")
            self.stop.wait(self.pause * self.random.uniform(0.5, 1.5))

    def step(self) -> None:
        raise NotImplementedError

    def a_run(self) -> str:
        """Path of a random recent run; "" while there is none."""
        return f"{PROJECT}/runs/{self.random.choice(self.runs[-20:])}/" if self.runs else ""

    def wait_for(self, true: Callable[[], object], what: str) -> None:
        until = time.monotonic() + WAIT
        while not true():
            if time.monotonic() > until:
                raise Unexpected(f"{what} was not done within {WAIT:.0f} s")
            if self.stop.wait(1.0):
                return


class Analyst(Person):
    """Uploads a file, runs a metric over it, opens the report, and starts an evaluation of a sample."""

    role = "analyst"

    def step(self) -> None:
        version = self.upload()
        if self.stop.is_set():
            return
        run = self.start_run(version)
        self.wait_for(lambda: self.run_ended(run), run)
        if self.stop.is_set():
            return
        self.runs.append(int(run.rstrip("/").rpartition("/")[2]))
        self.browser.get("report", f"{run}report/")
        self.browser.get("export", f"{run}export/csv/")
        self.start_evaluation(version)

    def upload(self) -> str:
        """Upload a file; return the new version's id once it can be used in a run."""
        page = f"{PROJECT}/datasets/upload/"
        form = form_in(self.browser.get("upload page", page).text, "")
        name = f"{self.name} {uuid.uuid4().hex[:8]}"
        files = {"file": (f"{name}.jsonl", rows_of(self.random))}
        address = self.browser.send_json("upload", page, {**form.fields, "name": name}, files)["address"]
        found: list[str] = []

        def usable() -> bool:
            found.extend(re.findall(r"runs/new/\?version=(\d+)", self.browser.get("data set", address).text))
            return bool(found)

        self.wait_for(usable, f"reading {address}")
        return found[0] if found else ""

    def start_run(self, version: str) -> str:
        page = f"{PROJECT}/runs/new/"
        form = form_in(self.browser.get("new run", page, version=version).text, "run-form")
        form.fields["name"] = [f"{self.name} {uuid.uuid4().hex[:8]}"]
        started = self.browser.send("start run", page, form, rows_wanted="all")
        return started.url.path

    def run_ended(self, run: str) -> bool:
        page = self.browser.get("run", run).text
        if 'data-run-state="failed"' in page or 'data-run-state="paused"' in page:
            raise Unexpected(f"{run} did not finish")
        return 'data-run-state="finished"' in page

    def start_evaluation(self, version: str) -> None:
        """Start an evaluation in which two raters rate each sampled row."""
        page = f"{PROJECT}/evaluations/new/"
        form = form_in(self.browser.get("new evaluation", page, version=version).text, "evaluation-form")
        form.fields["name"] = [f"{self.name} {uuid.uuid4().hex[:8]}"]
        self.browser.send("start evaluation", page, form, sample_size=RATED_ROWS, overlap=2)


@dataclass
class Rater(Person):
    """Rates assigned items one by one; looks for another evaluation when none are left."""

    role = "rater"
    desk: str = ""
    form: Form = field(default_factory=lambda: Form(""))
    items: set[str] = field(default_factory=set)  # tokens of the items on the page

    def step(self) -> None:
        if not self.items:
            self.find_work()
        if not self.items:
            return
        item = self.items.pop()
        values = {name: self.random.choice(of) for name, of in self.form.choices.items() if name[0] == "v"}
        fields = {**self.form.fields, **values, "key": str(uuid.uuid4()), "seconds": "9"}
        self.browser.send_json("rating", f"{self.desk}{item}/verdict/", fields)
        have = ",".join(self.items)
        more = self.browser.get("next items", f"{self.desk}items/", have=have).json()["items"]
        self.items.update(ITEM.findall("".join(one["html"] for one in more)))

    def find_work(self) -> None:
        """Open the first evaluation in the queue that has items left for this rater."""
        queue = self.browser.get("queue", f"{PROJECT}/rating/").text
        for desk in re.findall(r'class="button small primary" href="([^"]+)"', queue):
            page = self.browser.get("desk", desk).text
            self.items = set(ITEM.findall(page))
            if self.items:
                self.desk, self.form = desk, form_in(page, "verdict")
                return


class Reviewer(Person):
    """Pages through a run's judgements, opens one of them, and overrides it one time in ten."""

    role = "reviewer"

    def step(self) -> None:
        run = self.a_run()
        if not run:
            self.browser.get("run list", f"{PROJECT}/runs/")
            return
        grid = self.browser.get("grid", f"{run}items/")
        if further := NEXT.search(grid.text):
            grid = self.browser.get("grid", str(grid.url.join(further[1].replace("&amp;", "&"))))
        self.stop.wait(self.pause)
        self.browser.get("list", f"{run}judgements/", sort="-score", q=self.random.choice(_WORDS))
        self.stop.wait(self.pause)
        judgement = self.random.choice(PILL.findall(grid.text))
        self.browser.get("panel", f"{run}judgements/{judgement}/panel/")
        page = self.browser.get("judgement", f"{run}judgements/{judgement}/")
        if self.random.random() < 0.1:
            action = f"{run}judgements/{judgement}/override/"
            form = form_in(page.text, action)
            self.browser.send("override", action, form, value=self.random.randint(1, 10), reason="checked")


class Reader(Person):
    """Opens the project's pages and reports, and downloads report files."""

    role = "analyst"

    def step(self) -> None:
        run = self.a_run()
        pages = {"home": "/", "project": f"{PROJECT}/", "run list": f"{PROJECT}/runs/"}
        if run:
            pages |= {"report": f"{run}report/", "report file": f"{run}report/report.html"}
            pages |= {"leaderboard": f"{PROJECT}/runs/leaderboard/", "run": run}
        for kind, path in pages.items():
            self.browser.get(kind, path)
            self.stop.wait(self.pause)
        self.browser.get("search", "/search/", q=self.random.choice(_WORDS))


def rows_of(chance: random.Random) -> bytes:
    """A judge-only file with rows of about 2 KB: a question in two languages and one answer per candidate."""

    def text(words: int) -> str:
        return " ".join(chance.choices(_WORDS, k=words))

    lines = []
    for number in range(1, ROWS + 1):
        outputs = [{"model_name": one, "responses": [{"content": text(60)}]} for one in CANDIDATES]
        question = f"Question {number}: {text(30)}"
        row = {
            "messages": [{"role": "user", "content": question}],
            "ref_answer": text(20),
            "category": chance.choice(("maths", "数学", "writing")),
            "model_outputs": outputs,
        }
        lines.append(json.dumps(row, ensure_ascii=False))
    return ("\n".join(lines) + "\n").encode()


PEOPLE: dict[type[Person], tuple[int, float]] = {
    Analyst: (3, 120.0),
    Rater: (20, 15.0),
    Reviewer: (5, 4.0),
    Reader: (2, 4.0),
}
"""Number of users of each kind, and mean seconds between their steps."""


def everyone() -> Iterator[tuple[type[Person], str, float]]:
    """The kind, the username and the pause of each user."""
    for kind, (count, pause) in PEOPLE.items():
        for number in range(count):
            yield kind, f"{kind.__name__.lower()}{number}", pause
