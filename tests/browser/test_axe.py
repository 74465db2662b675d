"""axe finds no serious problem on any page, in English (light and dark) and Chinese; page weight is limited.

Covers all pages of the URL conf: a page that the crawl cannot reach by links must be added to `prepare`, or to
NO_PAGES with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import APIRequestContext, Browser, Page, Playwright, expect

from tests.browser.serving import served
from tests.browser.walking import refuses_get, walk
from tests.migrated import migrated
from tests.processes.conftest import wait_until
from tests.routes import routes

pytestmark = pytest.mark.processes

AXE = Path(__file__).parents[1] / "vendor" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
NO_PAGES = {
    "datasets:part": "a file",
    "datasets:rows_csv": "a file",
    "datasets:table_csv": "a file",
    "datasets:table_xlsx": "a file",
    "datasets:table_parquet": "a file",
    "metrics:export": "a file",
    "prometheus": "figures for a program",
    "api_description": "a description for programs",
    "api_client": "a file",
    "mcp": "for programs",
    "mail:confirm": "a link in a mail",
    "mail:reset": "a link in a mail",
    "people:export": "a file",
    "look:export": "a file",
    "look:go_on": "leads to an answer",
    "trust:versions": "a part of the page of Align",
    "trust:measurements": "a part of a gallery card's page",
    "trust:agreement": "a part of the editor",
    "desk:items": "a part of the desk",
    "desk:more": "leads to the desk unless more items are asked for",
    "desk:mine": "a part of the desk",
    "desk:item": "a part of the desk",
    "desk:guideline": "a part of the desk",
    "desk:question": "a part of the desk",
    "desk:difference": "a part of the desk",
    "accounts:oidc": "leads to the provider; off",
    "accounts:oidc_back": "comes from the provider; off",
    "datasets:attachment_unmatched": "a file",
    "runs:panel": "a part of the grid",
    "runs:pill": "a part of the grid",
    "runs:answer": "a part of the grid",
    "runs:compare_item": "a part of the comparison",
    "runs:report_agreement": "leads to the report where people and judges share no answers",
    "runs:report_verdicts": "leads to the report where an answer has one verdict",
    "runs:people_result": "a part of the evaluation's page",
    "datasets:random_row": "leads to a row",
    "runs:first_judgement": "leads to a judgement",
    "runs:at": "leads to a judgement",
    "datasets:dataset": "leads to the newest version",
}
SAMPLE = Path(__file__).parents[2] / "datasets" / "samples" / "sample.jsonl"
LANGUAGES = {"en": "en-GB", "zh-hans": "zh-CN"}
TIMEOUT = 180  # seconds: long, since these tests should not depend on the machine's load
ASK = """([only, colours]) => {
    const still = (event) => event.preventDefault();  // nothing is swapped while axe looks
    document.addEventListener("htmx:beforeSwap", still);
    const rules = {"color-contrast": {enabled: colours}};
    return axe.run(document, {runOnly: only, rules, resultTypes: ["violations"]}).then(
        found => found.violations.filter(v => ["serious", "critical"].includes(v.impact)).map(
            v => v.id + ": " + v.nodes.map(n => n.target.join(" ")).join(", "))
    ).finally(() => document.removeEventListener("htmx:beforeSwap", still))
}"""
LONG_WORDS = """() => {  // every text that may come from people or models becomes one long word
    const ours = "button, .button, option, script, style, textarea, svg, template, [hidden], nav, thead, time, "
        + "summary code, .num, .fit, .nowrap, .visually-hidden, .optional, .ci, .cut, .stats dd, .outcome b, "
        + "td:not(.text, :nth-child(2), :has(> .clamp))";
    const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode;
        if (text.parentElement.closest(ours)) continue;
        text.data = text.data.replace(/\\S(.*\\S)?/s, "W".repeat(3000));  // blanks around it stay
    }
}"""
WIDER = """() => {  // what makes the page wider than the window
    const most = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= most) return [];
    const sticksOut = (each) => each.getBoundingClientRect().right > most + 1;
    const isLeast = (each) => sticksOut(each) && ![...each.children].some(sticksOut);
    const wide = [...document.querySelectorAll("main *")].filter(isLeast).slice(0, 5);
    const named = (each) => `${each.localName}.${each.className}`;
    return wide.map(each => `${innerWidth}: ${named(each.parentElement)} > ${named(each)}`);
}"""
EVERYTHING = {"type": "tag", "values": RULES}
CONTRAST = ["color-contrast"]
MOST_REQUESTS, MOST_BYTES = 12, 100_000  # on a first visit, including the icon
UPLOADS = "/p/sample/datasets/upload/"
RUN, VERSION, CANDIDATE = "/p/sample/runs/3/", "3", "5"  # the sample's last run, its version and a candidate
NO_MODELS = {f"asked-{name}_FORMS": count for name, count in (("TOTAL", "0"), ("INITIAL", "0"))}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("axe")
    migrated(folder / "data" / "evalsite.sqlite3")
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def visitor(site: str, playwright: Playwright) -> Iterator[APIRequestContext]:
    """An HTTP client of the local administrator, without a browser."""
    context = playwright.request.new_context(timeout=TIMEOUT * 1000)
    yield context
    context.dispose()


@pytest.fixture(scope="module")
def found(site: str, visitor: APIRequestContext) -> tuple[dict[str, str], set[str]]:
    starts = ["/", f"{RUN}judgements/", *prepare(visitor, site)]
    pages, others = walk(visitor, site, starts)
    signed_out = {"accounts:sign_in": "/sign-in/", "mail:request_reset": "/password/reset/"}
    return {**signed_out, **pages}, others


@pytest.fixture(scope="module")
def reader(browser: Browser) -> Iterator[Page]:
    """A browser that loads axe into every page. It bypasses the CSP, which would block axe and has its own tests."""
    context = browser.new_context(
        bypass_csp=True,
        viewport={"width": 1280, "height": 800},
        reduced_motion="reduce",  # do not measure colours in the middle of a transition
    )
    context.set_default_timeout(TIMEOUT * 1000)
    context.add_init_script(path=AXE)
    yield context.new_page()
    context.close()


def look_at(reader: Page, address: str, language: str) -> None:
    """Open a page and wait until its htmx parts are loaded."""
    reader.set_extra_http_headers({"Accept-Language": LANGUAGES[language]})
    reader.emulate_media(color_scheme="light")
    reader.goto(address)
    expect(reader.locator("html")).to_have_attribute("lang", language)
    expect(reader.locator(".htmx-request")).to_have_count(0, timeout=TIMEOUT * 1000)


@dataclass(frozen=True)
class Visit:
    """axe's findings on a page, light and dark, with the errors of its scripts, what the page requests (distinct
    URLs, since pages with progress request the same URL repeatedly), and what makes it wider than the window if
    words are long."""

    problems: list[str]
    requested: set[str]
    loaded: float  # bytes with an empty cache
    wider: list[str]


@pytest.fixture(scope="module")
def visits(site: str, reader: Page, found: tuple[dict[str, str], set[str]]) -> dict[str, Visit]:
    """One visit to each page in English, shared by several tests, since each visit takes a second."""
    network = reader.context.new_cdp_session(reader)
    network.send("Network.enable")
    requested: dict[str, str] = {}  # URL by request
    sizes: dict[str, float] = {}  # bytes by URL; a cached response has none

    def began(event: dict[str, Any]) -> None:
        requested[event["requestId"]] = event["request"]["url"]

    def ended(event: dict[str, Any]) -> None:
        if url := requested.get(event["requestId"]):
            sizes[url] = max(sizes.get(url, 0), event["encodedDataLength"])

    network.on("Network.requestWillBeSent", began)
    network.on("Network.loadingFinished", ended)
    errors: list[str] = []
    reader.on("pageerror", lambda error: errors.append(f"script: {error}"))
    visited = {}
    for name, address in found[0].items():
        requested.clear()
        errors.clear()
        look_at(reader, site + address, "en")
        own = {url for url in requested.values() if url.startswith(site) and "favicon" not in url}
        size = sum(sizes.get(url, 0) for url in own)
        problems = reader.evaluate(ASK, [EVERYTHING, True])
        reader.emulate_media(color_scheme="dark")
        problems += [f"dark: {each}" for each in reader.evaluate(ASK, [CONTRAST, True])]
        problems += errors
        visited[f"{name} {address}"] = Visit(problems, own, size, wider_with_long_words(reader))
    network.detach()
    return visited


def wider_with_long_words(reader: Page) -> list[str]:
    """What makes the open page wider than a desktop's or phone's window if its words have 3,000 letters."""
    reader.evaluate(LONG_WORDS)
    wider = reader.evaluate(WIDER)
    reader.set_viewport_size({"width": 390, "height": 800})
    wider += reader.evaluate(WIDER)
    reader.set_viewport_size({"width": 1280, "height": 800})
    return list(wider)


def send(
    visitor: APIRequestContext, site: str, address: str, fields: dict[str, object], to: str = ""
) -> tuple[str, str]:
    """Submit the form at `address` as a browser would; return the final path and text of the response."""
    token = found_in(visitor.get(site + address).text(), r'name="csrfmiddlewaretoken" value="(\w+)"')
    given = {"csrfmiddlewaretoken": token, **fields}
    answer = visitor.post(site + (to or address), multipart=given, headers={"Referer": site + address})  # type: ignore[arg-type]
    assert answer.ok, (address, answer.status, answer.text()[:2000])
    return answer.url.removeprefix(site), answer.text()


def prepare(visitor: APIRequestContext, site: str) -> list[str]:
    """Add what a new site lacks; return the paths that no link on the sample's pages leads to."""
    again = run_again(visitor, site)
    faulty, second = upload_versions(visitor, site)
    reports = [(run, "/report/") for run in (RUN, again)]
    for address, sign in ((faulty, "/findings/"), (second, "?version="), *reports):
        wait_for(visitor, site + address, sign)
    send(visitor, site, second, {"since": "1"}, to=second + "changes/")
    send(visitor, site, "/account/", {"token-name": "x", "token-days": "30"}, to="/account/tokens/")
    return [
        f"{again}compare/?with={RUN.split('/')[-2]}",
        f"{RUN}evidence/",
        pair_of(visitor, site),
        "/p/sample/runs/mine/",
        "/p/sample/metrics/new/",
        faulty,
        second,
        second + "changes/v1/",
        "/p/sample/metrics/2/compare/",
        attach_answers(visitor, site, second),
        import_results(visitor, site),
        import_table(visitor, site),
        *look_at_answers(visitor, site),
        *draw_a_test(visitor, site),
        *(licensed := license_a_judge(visitor, site)),
        watch_a_judge(visitor, site, licensed[0]),
        *begin_a_drill(visitor, site),
        *try_another_judge(visitor, site),
        *evaluate(visitor, site),
        add_webhook(visitor, site),
        invite(visitor, site),
        share_report(visitor, site),
    ]


def run_again(visitor: APIRequestContext, site: str) -> str:
    """Start another run of the sample; return its path."""
    new = "/p/sample/runs/new/"
    chosen = {"version": VERSION, "candidates": CANDIDATE, "metrics": "1", "seed": "1", "priority": "0"}
    made, _ = send(
        visitor, site, f"{new}?version={VERSION}", {**chosen, "name": "Again", **NO_MODELS}, to=new
    )
    return made


def upload_versions(visitor: APIRequestContext, site: str) -> tuple[str, str]:
    """Upload a file with bad rows and a second version of the sample's data; return their paths."""
    bad = SAMPLE.read_bytes() + b'{"broken"\n{"messages": []}\n' * 40
    faulty, _ = send(visitor, site, UPLOADS, {"name": "Bad", "file": file_of(bad)})
    shorter = b"\n".join(SAMPLE.read_bytes().splitlines()[1:]) + b"\n"
    second, _ = send(visitor, site, UPLOADS, {"name": "Everyday questions", "file": file_of(shorter)})
    return faulty, second


def attach_answers(visitor: APIRequestContext, site: str, version: str) -> str:
    answers = b'{"line": 1, "model": "new", "response": "Yes."}\n'
    fields = {"match_by": "line", "file": file_of(answers)}
    address, _ = send(visitor, site, version + "attach/", fields)
    return address


def import_results(visitor: APIRequestContext, site: str) -> str:
    """Upload a results file; return the path of the page that asks for confirmation."""
    verdict = b'{"line": 1, "model": "heron-large", "judge": "elsewhere", "value": 8}\n'
    fields = {"version": VERSION, "name": "Elsewhere", "file": file_of(verdict)}
    address, _ = send(visitor, site, "/p/sample/runs/import/", fields)
    wait_for(visitor, site + address, "/confirm/")
    return address


def import_table(visitor: APIRequestContext, site: str) -> str:
    """Upload a table; return the path of the page that asks for its columns."""
    table = file_of(b"question;answer\nWhy?;So.\n", "table.csv", "text/csv")
    address, _ = send(visitor, site, UPLOADS, {"name": "Table", "file": table})
    wait_for(visitor, site + address, "/datasets/import/")
    return found_in(visitor.get(site + address).text(), r"(/p/sample/datasets/import/\d+/)")


def look_at_answers(visitor: APIRequestContext, site: str) -> list[str]:
    """Draw answers of the sample, note a fault and group it; return the paths of the pages."""
    new = "/p/sample/look/new/?run=1"
    answer, _ = send(visitor, site, new, {"size": "20"})
    send(visitor, site, answer, {"text": "Wrong date", "passed": "0", "seen": "0"})
    groups = answer.removesuffix("1/") + "groups/"
    send(visitor, site, groups, {"name": "Dates"}, to=groups + "new/")
    send(visitor, site, groups, {"chosen": "1-0", "into": "1", "act": "move"}, to=groups + "move/")
    return [new, answer, groups]


def draw_a_test(visitor: APIRequestContext, site: str) -> list[str]:
    """Draw a test for a metric of the sample; return the paths of the pages."""
    align, sizes = "/p/sample/judges/1/", {"test": "5", "dev": "1", "train": "0", "overlap": "1"}
    send(visitor, site, align, {"source": "run-1", **sizes})
    test = "/p/sample/judges/tests/1"
    return [align, "/p/sample/judges/2/", f"{test}/further/", f"{test}/close/", f"{test}/open/"]


def license_a_judge(visitor: APIRequestContext, site: str) -> list[str]:
    """Draw a test from the sample's ratings, which closes it, and open it; return the paths of the licence, of the
    disagreements and of suggested prompts."""
    align = "/p/sample/judges/1/"
    drawn_from = f"{align}?source=run-{RUN.split('/')[-2]}"
    wait_for(visitor, site + drawn_from, 'name="labels"')
    labels = found_in(visitor.get(site + drawn_from).text(), r'name="labels".*?<option value="(\d+)"')
    sizes = {"test": "20", "dev": "1", "train": "1", "overlap": "1"}
    sent = {"source": f"run-{RUN.split('/')[-2]}", "labels": labels, **sizes}
    send(visitor, site, drawn_from, sent, to=align)
    opening = "/p/sample/judges/tests/2/open/"
    judged = found_in(visitor.get(site + opening).text(), r'name="run_metric" value="(\d+)"')
    licence, _ = send(visitor, site, opening, {"run_metric": judged})
    differing = f"/p/sample/judges/tests/2/disagreements/{judged}/"
    return [licence, differing, f"{differing}suggest/"]


def watch_a_judge(visitor: APIRequestContext, site: str, licence: str) -> str:
    """Watch the licensed judge of the sample until its first sitting is done; return the path of the page. It is ended
    because the page that begins one leads to one that goes on."""
    begin = f"{licence}watch/"
    watch, _ = send(visitor, site, begin, {"sentinels": "30", "schedule": ""})
    wait_for(visitor, site + watch, 'aria-labelledby="checks"')
    wait_for(visitor, site + watch, "interval-inline")
    send(visitor, site, watch, {}, to=f"{watch}end/")
    return watch


def begin_a_drill(visitor: APIRequestContext, site: str) -> list[str]:
    """Begin a drill of the sample's judge and wait for its figures; return the paths of the pages."""
    new = f"/p/sample/judges/drills/new/?run={RUN.split('/')[-2]}"
    text = visitor.get(site + new).text()
    source = found_in(text, r'name="source".*?<option value="([\w-]+)"')
    metric = found_in(text, r'name="metric".*?<option value="(\d+)"')
    drill, _ = send(visitor, site, new, {"metric": metric, "source": source, "rows": "4", "seed": "0"})
    wait_for(visitor, site + drill, 'id="flags"')
    return [new, "/p/sample/judges/drills/", drill, f"{drill}negated/"]


def try_another_judge(visitor: APIRequestContext, site: str) -> list[str]:
    """Have the sample's answers judged again and wait for the figures; return the paths of the pages."""
    new = f"/p/sample/judges/successions/new/{RUN.split('/')[-2]}/0/"
    endpoint = found_in(visitor.get(site + new).text(), r'name="judge-0".*?<option value="(\d+)"')
    succession, _ = send(visitor, site, new, {"judge-0": endpoint, "margin": "2.5"})
    wait_for(visitor, site + succession, 'id="shift"')
    return [new, "/p/sample/judges/successions/", succession]


def add_webhook(visitor: APIRequestContext, site: str) -> str:
    """Add a webhook with a delivery that waits; return the path of its page."""
    _, text = send(
        visitor, site, "/p/sample/webhooks/", {"url": "https://hooks.invalid/", "events": "mention"}
    )
    page = found_in(text, r'"(/p/sample/webhooks/\d+/)"')
    send(visitor, site, page, {}, to=f"{page}test/")
    return page


def invite(visitor: APIRequestContext, site: str) -> str:
    people = "/p/sample/people/"
    fields = {"invite-note": "Dora", "invite-days": "7", "invite-roles": "rater"}
    _, text = send(visitor, site, people, fields, to=people + "invite/")
    return found_in(text, r"(/join/[\w-]+/)")


def share_report(visitor: APIRequestContext, site: str) -> str:
    _, text = send(visitor, site, f"{RUN}report/links/", {"note": "board", "days": "30"})
    return found_in(text, r"(/shared/[\w-]+/)")


def file_of(content: bytes, name: str = "sample.jsonl", kind: str = "application/jsonl") -> dict[str, object]:
    """A file for a multipart form field."""
    return {"name": name, "mimeType": kind, "buffer": content}


def wait_for(visitor: APIRequestContext, address: str, sign: str) -> None:
    """Wait until a page contains the text."""
    wait_until(lambda: sign in visitor.get(address).text(), TIMEOUT)


def found_in(text: str, pattern: str) -> str:
    """Group 1 of a pattern that the text must contain."""
    found = re.search(pattern, text, re.DOTALL)
    assert found, pattern
    return found[1]


def pair_of(visitor: APIRequestContext, site: str) -> str:
    """Path of the items of two of the sample's candidates under its first metric."""
    report = f"{RUN}report/"
    candidates = visitor.get(f"{site}{report}report.json").json()["candidates"]
    (a, metrics), (b, _) = list(candidates.items())[:2]
    return f"{report}pair/?{urlencode({'metric': next(iter(metrics)), 'a': a, 'b': b})}"


def evaluate(visitor: APIRequestContext, site: str) -> list[str]:
    """Create an evaluation of the sample's answers; return the paths of its desk and organiser pages."""
    new = "/p/sample/evaluations/new/"
    typed = typed_in(visitor.get(f"{site}{new}?version={VERSION}").text())
    chosen = {"kind": "single", "candidates": CANDIDATE, "criteria-0-scale": "five", "overlap": "2"}
    made, _ = send(visitor, site, f"{new}?version={VERSION}", {**typed, **chosen}, to=new)
    differ(visitor, site, made, typed["criteria-0-name"])
    gold = add_gold(visitor, site, made)
    desk = made.replace("/evaluations/", "/desk/")
    return [
        made,
        f"{made}differences/1/",
        f"{made}items/",
        f"{made}items/1/",
        f"{made}differences/",
        f"{gold}change/",
        f"{made}gold/",
        f"{made}guideline/",
        f"{made}change/",
        f"{made}questions/",
        f"{made}qualification/",
        f"{made}schedule/",
        f"{made}inviting/",
        rater_group(visitor, site),
        f"{made}import/",
        desk,
        f"{compare_files(visitor, site)}sides/",
    ]


def rater_group(visitor: APIRequestContext, site: str) -> str:
    """Save a group of raters; return the path of its page."""
    groups = "/p/sample/evaluations/groups/"
    rater = found_in(visitor.get(site + groups).text(), r'name="users" value="(\d+)"')
    _path, page = send(visitor, site, groups, {"name": "Lab", "users": rater})
    return found_in(page, rf'href="({groups}\d+/)"')


def add_gold(visitor: APIRequestContext, site: str, made: str) -> str:
    """Make an item a gold item; return the path of its gold pages. Rows of a drawn test can be none."""
    for number in range(2, 25):
        item = f"{made}items/{number}/"
        _, text = send(visitor, site, item, {"value_0": "4"}, to=f"{item}gold/")
        if "1 gold item added." in text:
            return f"{item}gold/"
    raise AssertionError("no item can be gold")


def typed_in(page: str) -> dict[str, object]:
    """The initial data of the new evaluation form, without select and radio choices."""
    fields = dict(re.findall(r'<input type="(?:text|number|hidden)" name="([^"]+)" value="([^"]*)"', page))
    return {**fields, "criteria-0-required": "on", "order": "random", "raters": "1", "next": ""}


def compare_files(visitor: APIRequestContext, site: str) -> str:
    """Create an evaluation that compares two legacy files; return its path."""
    for name in ("one", "two"):
        row = json.dumps({"conversation": [{"prompt": "Why?", "response": name}]}).encode() + b"\n"
        address, _ = send(visitor, site, UPLOADS, {"name": name, "file": file_of(row, f"{name}.jsonl")})
        wait_for(visitor, site + address, "?version=")
    new = "/p/sample/evaluations/new/"  # preselects the newest version and the other file
    page = visitor.get(site + new).text()
    other = found_in(page, r'name="other_version".*?value="(\d+)" selected')
    chosen = {"kind": "versions", "other_version": other, "criteria-0-scale": "steps"}
    made, _ = send(visitor, site, new, {**typed_in(page), **chosen})
    return made


def differ(visitor: APIRequestContext, site: str, made: str, criterion: str) -> None:
    """Add a second rater, and verdicts of both raters on the first item that are far apart."""
    people = "/p/sample/people/"
    send(visitor, site, people, {"new-username": "ravi", "new-roles": "rater"}, to=people + "new/")
    second = found_in(visitor.get(site + made).text(), r'name="user" value="(\d+)"')
    send(visitor, site, made, {"user": second}, to=made + "raters/add/")
    given = [{"item": 1, "rater": f"R{n}", "values": {criterion: value}} for n, value in ((1, 1), (2, 5))]
    text = "\n".join(map(json.dumps, given)).encode()
    send(visitor, site, made + "import/", {"file": file_of(text, "ratings.jsonl")})


def test_every_address_is_a_page_that_is_looked_at_or_known_to_be_none(
    site: str, visitor: APIRequestContext, found: tuple[dict[str, str], set[str]]
) -> None:
    pages, others = found
    known = pages.keys() | others | NO_PAGES.keys()
    unknown = {name: route for name, route in routes().items() if name not in known and name[:4] != "api:"}
    unseen = [name for name in unknown if not refuses_get(visitor, f"{site}/{unknown[name]}")]
    assert not unseen, unseen


def test_axe_finds_nothing_serious_on_any_page_in_english(visits: dict[str, Visit]) -> None:
    problems = {page: visit.problems for page, visit in visits.items() if visit.problems}
    assert problems == {}, json.dumps(problems, indent=1)


def test_axe_finds_nothing_serious_on_any_page_in_chinese(
    site: str, reader: Page, found: tuple[dict[str, str], set[str]]
) -> None:
    """Colours are not checked again: they are those of the English pages, and cost most of axe's time."""
    problems = {}
    for name, address in found[0].items():
        look_at(reader, site + address, "zh-hans")
        if result := reader.evaluate(ASK, [EVERYTHING, False]):
            problems[f"{name} {address}"] = result
    assert problems == {}, json.dumps(problems, indent=1)


def test_a_first_visit_of_any_page_makes_few_requests_and_loads_little(visits: dict[str, Visit]) -> None:
    heavy = {
        page: (len(visit.requested), visit.loaded, sorted(visit.requested))
        for page, visit in visits.items()
        if len(visit.requested) + 1 > MOST_REQUESTS or visit.loaded > MOST_BYTES  # + 1: the icon
    }
    assert heavy == {}, json.dumps(heavy, indent=1)


def test_words_without_a_blank_make_no_page_wider_than_the_window(visits: dict[str, Visit]) -> None:
    wider = {page: visit.wider for page, visit in visits.items() if visit.wider}
    wider.pop("components /status/components/", None)  # its texts are our own
    assert wider == {}, json.dumps(wider, indent=1)
