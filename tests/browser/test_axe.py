"""axe finds nothing serious on any page: in English, light and dark, and in Chinese. Every page is light to load.

The pages are all those of the URL conf: an address that no walk through the site meets needs a place in `prepare`,
or in NO_PAGES with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
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
    "people:export": "a file",
    "desk:items": "a part of the desk",
    "desk:mine": "a part of the desk",
    "desk:item": "a part of the desk",
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
PATIENCE = 180  # seconds: how busy the machine is, is no question of these tests
ASK = """only => {
    const still = (event) => event.preventDefault();  // nothing is swapped while axe looks
    document.addEventListener("htmx:beforeSwap", still);
    return axe.run(document, {runOnly: only, resultTypes: ["violations"]}).then(
        found => found.violations.filter(v => ["serious", "critical"].includes(v.impact)).map(
            v => v.id + ": " + v.nodes.map(n => n.target.join(" ")).join(", "))
    ).finally(() => document.removeEventListener("htmx:beforeSwap", still))
}"""
EVERYTHING = {"type": "tag", "values": RULES}
CONTRAST = ["color-contrast"]
MOST_REQUESTS, MOST_BYTES = 12, 100_000  # of a first visit, the icon included
NO_MODELS = {f"asked-{name}_FORMS": count for name, count in (("TOTAL", "0"), ("INITIAL", "0"))}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("axe")
    migrated(folder / "data" / "evalsite.sqlite3")
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def visitor(site: str, playwright: Playwright) -> Iterator[APIRequestContext]:
    """The administrator of one's own machine, without a browser."""
    context = playwright.request.new_context(timeout=PATIENCE * 1000)
    yield context
    context.dispose()


@pytest.fixture(scope="module")
def found(site: str, visitor: APIRequestContext) -> tuple[dict[str, str], set[str]]:
    starts = ["/", "/p/sample/runs/1/judgements/", *prepare(visitor, site)]
    pages, others = walk(visitor, site, starts)
    return {"accounts:sign_in": "/sign-in/", **pages}, others


@pytest.fixture(scope="module")
def reader(browser: Browser) -> Iterator[Page]:
    """A browser with axe in every page; the policy would refuse it, and has tests of its own."""
    context = browser.new_context(
        bypass_csp=True,
        viewport={"width": 1280, "height": 800},
        reduced_motion="reduce",  # colours on their way to another are nobody's
    )
    context.set_default_timeout(PATIENCE * 1000)
    context.add_init_script(path=AXE)
    yield context.new_page()
    context.close()


def look_at(reader: Page, address: str, language: str) -> None:
    """Open a page and wait until it has fetched what it fetches by itself."""
    reader.set_extra_http_headers({"Accept-Language": LANGUAGES[language]})
    reader.goto(address)
    expect(reader.locator("html")).to_have_attribute("lang", language)
    expect(reader.locator(".htmx-request")).to_have_count(0, timeout=PATIENCE * 1000)


def send(
    visitor: APIRequestContext, site: str, address: str, fields: dict[str, object], to: str = ""
) -> tuple[str, str]:
    """(address, text) of what answers when the form at an address is sent as a browser would."""
    page = visitor.get(site + address).text()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token
    given = {"csrfmiddlewaretoken": token[1], **fields}
    answer = visitor.post(site + (to or address), multipart=given, headers={"Referer": site + address})  # type: ignore[arg-type]
    assert answer.ok, (address, answer.status, answer.text()[:2000])
    return answer.url.removeprefix(site), answer.text()


def prepare(visitor: APIRequestContext, site: str) -> list[str]:
    """Bring about what a fresh site lacks: another run, bad rows, a second version, answers, an invitation, a token."""
    uploads = "/p/sample/datasets/upload/"
    chosen = {
        "version": "1",
        "candidates": "1",
        "metrics": "1",
        "seed": "1",
        "priority": "0",
        "name": "Again",
    }
    again, _ = send(
        visitor, site, "/p/sample/runs/new/?version=1", {**chosen, **NO_MODELS}, to="/p/sample/runs/new/"
    )
    bad = SAMPLE.read_bytes() + b'{"broken"\n{"messages": []}\n' * 60
    more = b"\n".join(SAMPLE.read_bytes().splitlines()[1:]) + b"\n"
    sample = {"name": "sample.jsonl", "mimeType": "application/jsonl"}
    faulty, _ = send(visitor, site, uploads, {"name": "Bad", "file": {**sample, "buffer": bad}})
    second, _ = send(
        visitor, site, uploads, {"name": "Everyday questions", "file": {**sample, "buffer": more}}
    )
    reports = [(run, "/report/") for run in ("/p/sample/runs/1/", again)]
    for address, sign in ((faulty, "/findings/"), (second, "?version="), *reports):
        wait_until(lambda address=address, sign=sign: sign in visitor.get(site + address).text(), PATIENCE)
    send(visitor, site, second, {"since": "1"}, to=second + "changes/")
    answers = b'{"line": 1, "model": "new", "response": "Yes."}\n'
    attach = second + "attach/"
    attached, _ = send(visitor, site, attach, {"match_by": "line", "file": {**sample, "buffer": answers}})
    verdict = b'{"line": 1, "model": "heron-large", "judge": "elsewhere", "value": 8}\n'
    results = {"version": "1", "name": "Elsewhere", "file": {**sample, "buffer": verdict}}
    imported, _ = send(visitor, site, "/p/sample/runs/import/", results)
    wait_until(lambda: "/confirm/" in visitor.get(site + imported).text(), PATIENCE)
    rated = evaluate(visitor, site)
    people = "/p/sample/people/"
    invitation = {"invite-note": "Dora", "invite-days": "7", "invite-roles": "rater"}
    _, text = send(visitor, site, people, invitation, to=people + "invite/")
    link = re.search(r"(/join/[\w-]+/)", text)
    assert link
    report_links = "/p/sample/runs/1/report/links/"
    _, text = send(visitor, site, report_links, {"note": "board", "days": "30"})
    shared = re.search(r"(/shared/[\w-]+/)", text)
    assert shared
    send(visitor, site, "/account/", {"token-name": "x", "token-days": "30"}, to="/account/tokens/")
    table = {"name": "table.csv", "mimeType": "text/csv", "buffer": b"question;answer\nWhy?;So.\n"}
    columns, _ = send(visitor, site, uploads, {"name": "Table", "file": table})
    wait_until(lambda: "/datasets/import/" in visitor.get(site + columns).text(), PATIENCE)
    unconfirmed = re.search(r"/p/sample/datasets/import/\d+/", visitor.get(site + columns).text())
    assert unconfirmed
    return [
        f"{again}compare/?with=1",
        imported,
        unconfirmed[0],
        pair_of(visitor, site),
        "/p/sample/runs/mine/",
        faulty,
        second,
        second + "changes/v1/",
        attached,
        "/p/sample/metrics/2/compare/",
        *rated,
        link[1],
        shared[1],
    ]


def pair_of(visitor: APIRequestContext, site: str) -> str:
    """The items of two candidates of the sample under its first metric."""
    report = "/p/sample/runs/1/report/"
    candidates = visitor.get(f"{site}{report}report.json").json()["candidates"]
    (a, metrics), (b, _) = list(candidates.items())[:2]
    return f"{report}pair/?{urlencode({'metric': next(iter(metrics)), 'a': a, 'b': b})}"


def evaluate(visitor: APIRequestContext, site: str) -> list[str]:
    """Have people rate the sample's answers: where they do, and where it is organised."""
    new = "/p/sample/evaluations/new/"
    typed = typed_in(visitor.get(f"{site}{new}?version=1").text())
    chosen = {"kind": "single", "candidates": "1", "criteria-0-scale": "five", "overlap": "2"}
    made, _ = send(visitor, site, f"{new}?version=1", {**typed, **chosen}, to=new)
    differ(visitor, site, made, typed["criteria-0-name"])
    desk = made.replace("/evaluations/", "/desk/")
    return [
        made,
        f"{made}differences/1/",
        f"{made}items/",
        f"{made}items/1/",
        f"{made}differences/",
        f"{made}gold/",
        f"{made}import/",
        desk,
        f"{compare_files(visitor, site)}sides/",
    ]


def typed_in(page: str) -> dict[str, object]:
    """What the form of a new evaluation is sent with when nothing is changed, without what is chosen."""
    fields = dict(re.findall(r'<input type="(?:text|number|hidden)" name="([^"]+)" value="([^"]*)"', page))
    return {**fields, "criteria-0-required": "on", "order": "random", "raters": "1", "next": ""}


def compare_files(visitor: APIRequestContext, site: str) -> str:
    """Have people compare the answers of two legacy files; the evaluation's address."""
    for name in ("one", "two"):
        row = json.dumps({"conversation": [{"prompt": "Why?", "response": name}]}).encode() + b"\n"
        file = {"name": f"{name}.jsonl", "mimeType": "application/jsonl", "buffer": row}
        address, _ = send(visitor, site, "/p/sample/datasets/upload/", {"name": name, "file": file})
        wait_until(lambda address=address: "?version=" in visitor.get(site + address).text(), PATIENCE)
    new = "/p/sample/evaluations/new/"  # it proposes the newest version, and the other file beside it
    page = visitor.get(site + new).text()
    other = re.search(r'name="other_version".*?value="(\d+)" selected', page, re.DOTALL)
    assert other
    chosen = {"kind": "versions", "other_version": other[1], "criteria-0-scale": "steps"}
    made, _ = send(visitor, site, new, {**typed_in(page), **chosen})
    return made


def differ(visitor: APIRequestContext, site: str, made: str, criterion: str) -> None:
    """A second rater, and verdicts of both on the first item that are far apart."""
    people = "/p/sample/people/"
    send(visitor, site, people, {"new-username": "ravi", "new-roles": "rater"}, to=people + "new/")
    second = re.search(r'name="user" value="(\d+)"', visitor.get(site + made).text())
    assert second
    send(visitor, site, made, {"user": second[1]}, to=made + "raters/add/")
    given = [{"item": 1, "rater": f"R{n}", "values": {criterion: value}} for n, value in ((1, 1), (2, 5))]
    text = "\n".join(map(json.dumps, given)).encode()
    ratings = {"name": "ratings.jsonl", "mimeType": "application/jsonl", "buffer": text}
    send(visitor, site, made + "import/", {"file": ratings})


def test_every_address_is_a_page_that_is_looked_at_or_known_to_be_none(
    site: str, visitor: APIRequestContext, found: tuple[dict[str, str], set[str]]
) -> None:
    pages, others = found
    known = pages.keys() | others | NO_PAGES.keys()
    unknown = {name: route for name, route in routes().items() if name not in known}
    unseen = [name for name in unknown if not refuses_get(visitor, f"{site}/{unknown[name]}")]
    assert not unseen, unseen


@pytest.mark.parametrize("language", LANGUAGES)
def test_axe_finds_nothing_serious_on_any_page(
    site: str, reader: Page, found: tuple[dict[str, str], set[str]], language: str
) -> None:
    """Colours are the same in both languages: dark ones are looked at in one of them."""
    problems = {}
    for name, address in found[0].items():
        reader.emulate_media(color_scheme="light")
        look_at(reader, site + address, language)
        result = reader.evaluate(ASK, EVERYTHING)
        if language == "en":
            reader.emulate_media(color_scheme="dark")
            result += [f"dark: {each}" for each in reader.evaluate(ASK, CONTRAST)]
        if result:
            problems[f"{name} {address}"] = result
    assert problems == {}, json.dumps(problems, indent=1)


def test_a_first_visit_of_any_page_makes_few_requests_and_loads_little(
    site: str, browser: Browser, found: tuple[dict[str, str], set[str]]
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.setCacheDisabled", {"cacheDisabled": True})
    asked: set[str] = set()  # what shows progress asks the same address again
    loaded: list[float] = []
    network.on("Network.requestWillBeSent", lambda event: asked.add(event["request"]["url"]))
    network.on("Network.loadingFinished", lambda event: loaded.append(event["encodedDataLength"]))
    heavy = {}
    for name, address in found[0].items():
        asked.clear()
        loaded.clear()
        page.goto(site + address)
        expect(page.locator(".htmx-request")).to_have_count(0, timeout=PATIENCE * 1000)
        requests = len([url for url in asked if url.startswith(site) and "favicon" not in url]) + 1
        if requests > MOST_REQUESTS or sum(loaded) > MOST_BYTES:
            heavy[f"{name} {address}"] = (requests, sum(loaded), sorted(asked))
    context.close()
    assert heavy == {}, json.dumps(heavy, indent=1)
