"""Access to every URL. A URL missing from the table fails the test, and so does any other response."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.conf import LazySettings
from django.db import transaction
from django.http import HttpResponseBase
from django.test import Client
from django.utils import timezone

from datasets.models import Attachment, FileImport, Version
from evalsite.accounts.invitations import invitation_create
from evalsite.accounts.models import Project, User
from evalsite.accounts.tokens import token_create
from evalsite.mail.models import MailAddress, PasswordReset
from evalsite.secrets import hashed
from evalsite.webhooks.events import emit_test
from evalsite.webhooks.models import Delivery
from evalsite.webhooks.services import webhook_create
from judging.core.licensing import Sizes
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.licence import licence_figures
from judging.core.statistics.uses import Thresholds
from judging.endpoints.models import Endpoint
from judging.look.groups import group_create
from judging.look.models import GroupProposal, Look, LookAnswer, SetAside
from judging.look.services import note_save
from judging.metrics.models import Metric, MetricVersion
from judging.people import assignments
from judging.people.asking.models import SendingRule
from judging.people.import_models import RatingsImport
from judging.people.inviting.links import study_link_create
from judging.people.inviting.models import RaterGroup
from judging.people.questions.services import question_ask
from judging.reports.sharing import report_link_create
from judging.review.models import SavedView
from judging.rubrics.models import RubricDraft
from judging.teamwork.comments import comment_add
from judging.teamwork.marks import Change, change_one
from judging.transfer.results_import.models import ResultsImport
from judging.trust.disagreement_page import Disagreements
from judging.trust.drawing import Asking, sealed_test_draw
from judging.trust.drill_pages.models import Drill
from judging.trust.models import Licence, Measurement, PromptSuggestion, Suspension
from judging.trust.sources import Source
from judging.trust.succession.models import Succession
from judging.trust.watch.models import Watch
from tests.conftest import ClientOf, person
from tests.datasets.conftest import answers, jsonl, question, upload
from tests.judging.judged import a_judged_run, first_of
from tests.judging.people.make import give, legacy, make_evaluation, rate_each
from tests.make import a_metric, a_run
from tests.routes import patterns, routes

__all__ = ["upload"]  # a fixture

ROLES = {"alice": "analyst", "rita": "rater", "bob": "reviewer", "adam": "administrator"}
OUTSIDE = ("charlie", "nobody")  # administers another project; belongs to none
EVERYBODY = ("anonymous", *ROLES, "olga", *OUTSIDE)

# Letters stand for analyst, rater, reviewer and administrator; a superuser may do what an administrator may.
MEMBERS, READ, WORK, MANAGE, RATE, REVIEW = (
    "alice rita bob adam",
    "alice bob adam",
    "alice adam",
    "adam",
    "rita adam",
    "bob adam",
)
SITE = ""  # superusers only
SIGNED_IN = "signed in"
PUBLIC = "public"
NOBODY = "nobody"
PROGRAMS = "everybody is asked for a token"
GET, POST = "get", "post"


@dataclass(frozen=True)
class Rule:
    """How a URL is requested and which project members may; other members get the status `refusal`."""

    method: str
    may: str
    refusal: str = "403"
    superuser: str = "in"


TABLE: dict[str, Rule] = {}


def table(method: str, may: str, names: str, refusal: str = "403", superuser: str = "in") -> None:
    """Add URLs to the table."""
    TABLE.update({name: Rule(method, may, refusal, superuser) for name in names.split()})


table(GET, PUBLIC, "accounts:sign_in accounts:join shared_report api_docs api_description api_client")
table(POST, PUBLIC, "accounts:sign_out accounts:language accounts:theme")
table(GET, NOBODY, "accounts:oidc accounts:oidc_back", "404")  # single sign-on is off
table(POST, NOBODY, "accounts:view_as", "403")  # local mode only
table(GET, PUBLIC, "mail:request_reset mail:reset")
table(GET, "rita", "mail:confirm", "404", "404")  # her own address
table(POST, SIGNED_IN, "accounts:mail")
table(GET, SIGNED_IN, "home inbox help guide search accounts:account accounts:password")
table(POST, SIGNED_IN, "accounts:make_token inbox_read")
table(POST, "rita", "accounts:revoke_token", "404", "404")  # her own token
table(GET, SITE, "status components accounts:site_log accounts:site_log_csv accounts:create_project")
table(GET, PROGRAMS, "prometheus")
table(GET, NOBODY, "mcp", "401")  # takes tokens only
table(GET, MEMBERS, "project")
table(GET, MANAGE, "accounts:project_settings accounts:project_log accounts:project_log_csv accounts:members")
table(GET, MANAGE, "deletion:delete")
table(
    POST,
    MANAGE,
    "accounts:archive_project accounts:restore_project accounts:add_member accounts:create_member accounts:invite "
    "accounts:revoke_invitation accounts:set_roles accounts:remove_member accounts:reset_password",
)
table(
    GET,
    READ,
    "datasets:list datasets:formats datasets:sample datasets:dataset datasets:version datasets:original datasets:part "
    "datasets:bad_rows datasets:rows_jsonl datasets:rows_csv datasets:table_csv datasets:table_xlsx "
    "datasets:table_parquet datasets:changes_since "
    "datasets:findings datasets:rows datasets:random_row "
    "datasets:row datasets:raw_row datasets:original_row",
)
table(
    GET,
    WORK,
    "datasets:upload datasets:import datasets:attach datasets:attachment datasets:attachment_unmatched "
    "datasets:edit_row datasets:edits",
)
table(
    POST,
    WORK,
    "datasets:archive datasets:restore datasets:repair datasets:cancel datasets:again datasets:read_as "
    "datasets:leave_out datasets:attachment_use datasets:attachment_name datasets:attachment_discard "
    "datasets:import_begin datasets:edit_decide datasets:edits_make",
)
table(POST, READ, "datasets:changes")
table(GET, WORK, "endpoints:list endpoints:endpoint")
table(POST, WORK, "endpoints:test")
table(GET, MANAGE, "endpoints:new endpoints:edit endpoints:address")
table(POST, MANAGE, "accounts:draft")  # of an endpoint; test_drafts.py covers each form's permission
table(POST, MANAGE, "endpoints:try endpoints:publish endpoints:archive endpoints:restore")
table(
    GET,
    WORK,
    "metrics:list metrics:new metrics:gallery metrics:rules_start metrics:rules_new metrics:rules_reference "
    "metrics:reference metrics:import metrics:export_all metrics:edit metrics:export metrics:compare "
    "metrics:export_version metrics:versions metrics:version metrics:reading metrics:keep",
)
table(
    POST,
    WORK,
    "metrics:preview metrics:lint metrics:try metrics:rules_preview metrics:rules_lint metrics:rules_try "
    "metrics:past_replies metrics:leave metrics:copy metrics:archive metrics:restore metrics:restore_version",
)
table(GET, RATE, "rating:queue")
table(POST, RATE, "rating:join")
table(GET, RATE, "desk:more", superuser="404")
table(
    GET, RATE, "desk:page desk:items desk:mine desk:guideline", superuser="404"
)  # Rita and Adam are its raters
table(POST, RATE, "desk:undo desk:give_back desk:understood", superuser="404")
table(GET, "rita", "desk:item desk:difference", superuser="404")  # Rita's own item
table(
    POST,
    "rita",
    "desk:question desk:verdict desk:skip desk:draft desk:verdict_by_number desk:skip_by_number desk:draft_by_number",
    superuser="404",
)
table(
    GET,
    WORK,
    "people:inviting people:groups people:group "
    "people:new people:gold people:import people:imported people:rename_sides people:schedule "
    "people:thresholds people:payment people:payment_sheet "
    "people:change_gold people:try_item people:rater people:guideline people:qualification people:change "
    "people:questions",
)
table(
    POST,
    WORK,
    "people:open people:pause people:resume people:end_pilot people:close people:reopen people:archive "
    "people:restore people:add_raters people:leave people:reassign "
    "people:read_list people:add_group people:delete_group people:change_quota people:offer "
    "people:use_as_gold people:remove_gold people:gold_rule people:pause_rater people:resume_rater "
    "people:set_aside people:count_again people:stop_import people:let_in people:try_again people:answer",
)
table(POST, MANAGE, "people:create_link people:revoke_link")
table(GET, READ, "people:list people:detail people:items people:item people:export")
table(GET, REVIEW, "people:inbox people:adjudicate")
table(
    GET,
    READ,
    "runs:list runs:detail runs:judgements runs:judgement runs:export runs:report runs:report_pair runs:report_file "
    "runs:report_agreement runs:report_verdicts runs:people_result "
    "runs:compare runs:compare_item runs:filter_menu runs:items runs:answer runs:pill runs:panel runs:leaderboard",
)
table(
    GET,
    WORK,
    "runs:metric_people runs:new runs:ask runs:sending_rules runs:read_again runs:judge_again runs:import_results "
    "runs:results_import "
    "runs:report_links",
)
table(
    POST,
    WORK,
    "runs:archive runs:restore runs:pause runs:resume runs:cancel runs:retry runs:extend runs:keep_answers "
    "runs:import_confirm runs:import_discard runs:report_revoke_link runs:pause_rule runs:resume_rule runs:end_rule",
)
table(GET, MANAGE, "webhooks:list webhooks:webhook")
table(
    POST,
    MANAGE,
    "webhooks:rotate webhooks:test webhooks:on webhooks:off webhooks:delete webhooks:send_again",
)
table(GET, READ, "trust:judges")
table(GET, MANAGE, "trust:thresholds")
table(GET, READ, "look:list look:groups look:export look:new look:go_on look:answer")
table(
    POST,
    READ,
    "look:note look:create_group look:move look:change_group look:merge look:delete_group look:take",
)
table(POST, WORK, "look:propose")
table(GET, WORK, "rubrics:row")
table(POST, WORK, "rubrics:draft rubrics:decide")
table(GET, READ, "trust:watch")
table(GET, WORK, "trust:watch_begin")
table(POST, WORK, "trust:watch_schedule trust:watch_end")
table(POST, MANAGE, "trust:watch_ceilings")
table(GET, READ, "trust:align trust:licence trust:versions trust:agreement trust:disagreements")
table(POST, WORK, "trust:take_example trust:doubt trust:decide")
table(GET, READ, "trust:drills trust:drill trust:drill_items trust:successions trust:succession")
table(GET, WORK, "runs:evidence")
table(POST, MANAGE, "runs:evidence_rules")
table(GET, WORK, "trust:close trust:further trust:open trust:suggest trust:drill_new trust:succession_new")
table(POST, WORK, "trust:succession_margin")
table(POST, MANAGE, "trust:expire trust:lift")
table(GET, WORK, "trust:measurements")
table(POST, WORK, "trust:measure trust:measure_stop")
table(GET, READ, "runs:mine runs:actions runs:at runs:first_judgement")
table(GET, REVIEW, "runs:act")
table(
    POST,
    REVIEW,
    "runs:override runs:withdraw runs:mark runs:comment runs:undo_action",
)
table(POST, READ, "runs:save_view runs:choose_columns")
table(POST, "bob", "runs:comment_change runs:change_view runs:delete_view", superuser="403")  # Bob's own


Places = dict[str, dict[str, Any]]


@pytest.fixture
def places(
    settings: LazySettings, cast: dict[str, User], project: Project, upload: Callable[..., Version]
) -> Places:
    """URL parameters of existing objects, by namespace or URL name."""
    settings.LOCAL_MODE = False
    mail = {"site_url": "https://evals.example", "email_url": "memorymail://"}
    settings.CONFIG = replace(settings.CONFIG, **mail)
    version = two_versions(upload, cast["alice"])
    return {
        "guide": {"page": "glossary"},
        **account_places(project, cast),
        **dataset_places(project, version, Path(settings.DATA_DIR)),
        **metric_places(project),
        **rating_places(project, cast),
        **run_places(project, cast, version),
        **look_places(project, version, cast["bob"]),
        **rubric_places(project, version),
        **trust_places(project, cast),
        **webhook_places(project),
    }


def two_versions(upload: Callable[..., Version], alice: User) -> Version:
    """The second version of a data set, which has a bad row and one part."""
    rows = [
        question("1+1?", model_outputs=answers(alpha="2")),
        question("2+2?", model_outputs=answers(alpha="4")),
    ]
    upload(jsonl(*rows), read=True, user=alice)
    version = upload(jsonl(*rows, {"messages": []}), read=True, user=alice)
    version.parts = [{**file_of(version), "encoding": "utf-8", "first_line": 1, "skipped": 0}]
    version.save(update_fields=["parts"])
    return version


def file_of(version: Version) -> dict[str, Any]:
    return {"name": "x", "size": 1, "sha256": version.sha256, "stored_as": version.stored_as}


def account_places(project: Project, cast: dict[str, User]) -> Places:
    rita = cast["rita"]
    token, _secret = token_create(user=rita, name="x", days=None)
    invitation, secret = invitation_create(
        project=project, roles=["rater"], note="x", days=7, by=cast["adam"]
    )
    later = timezone.now() + timedelta(days=1)
    MailAddress.objects.create(user=rita, pending="r@x.example", token_hash=hashed("s"), token_until=later)
    PasswordReset.objects.create(user=rita, token_hash=hashed("s"), expires_at=later)
    return {
        "mail": {"secret": "s"},
        "accounts:join": {"secret": secret},
        "accounts:revoke_token": {"pk": token.pk},
        "accounts:revoke_invitation": {"pk": invitation.pk},
        "accounts": {"user_id": rita.pk},
        "accounts:draft": {"form": "endpoint", "key": "new"},
    }


def dataset_places(project: Project, version: Version, data_dir: Path) -> Places:
    (data_dir / "unmatched").write_bytes(b"")
    attachment, unmatched = (
        Attachment.objects.create(version=version, file_name="x", stored_as="x", unmatched_as=name)
        for name in ("", "unmatched")
    )
    draft = FileImport.objects.create(project=project, name="x", source="table", files=[file_of(version)])
    in_version = {"dataset": version.dataset_id, "number": version.number, "old": 1, "code": "messages.empty"}
    return {
        "datasets:sample": {"name": "judge_only.jsonl"},
        "datasets:changes": {"fields": {"since": 1}},
        "datasets:attachment_unmatched": {"attachment": unmatched.pk},
        "datasets": {**in_version, "line": 1, "part": 1, "attachment": attachment.pk, "draft": draft.pk},
    }


def metric_places(project: Project) -> Places:
    endpoint = Endpoint.objects.create(project=project, name="Judge", url="http://127.0.0.1:9/v1", model="m")
    metric = Metric.objects.create(project=project, name="quality")
    definition = a_metric("", endpoint=endpoint.pk, model="").to_json()
    MetricVersion.objects.create(metric=metric, number=1, definition=definition)
    return {
        "endpoints": {"endpoint": endpoint.pk},
        "metrics": {"metric": metric.pk, "number": 1, "page": "prompts", "card": "faithful"},
        "runs:metric_people": {"metric": metric.pk},
    }


def rating_places(project: Project, cast: dict[str, User]) -> Places:
    """URL parameters of an evaluation Rita and Adam rate differently, and of one that compares two legacy files."""
    rita, adam = cast["rita"], cast["adam"]
    evaluation = make_evaluation(project, [rita, adam], rows=2, overlap=2)
    first, second = assignments.claim(evaluation=evaluation, user=rita, count=2)
    give(first, "A>B")
    (other,) = assignments.claim(evaluation=evaluation, user=adam, count=1)
    give(other, "B>A")
    here, there = (legacy(project, False, name) for name in ("one", "two"))
    files = make_evaluation(
        project, version=here, scheme="versions", choice={"candidates": (), "other_version": there}
    )
    files.items.filter(number=1).update(gold='{"0": "A=B"}', needed=0, free=0)
    imported = RatingsImport.objects.create(
        evaluation=evaluation, file_name="x", stored_as="x", size=1, created_by=cast["alice"]
    )
    group = RaterGroup.objects.create(project=project, name="Lab")
    link, _secret = study_link_create(evaluation=evaluation, most_uses=5, days=5, by=adam)
    asked = question_ask(assignment=second, text="Which one?", key=uuid4())
    return {
        "people:add_group": {"fields": {"group": group.pk}},
        "people:group": {"group": group.pk},
        "people:delete_group": {"group": group.pk},
        "people:revoke_link": {"link": link.pk},
        "rating": {"pk": evaluation.run_id},
        "people:rename_sides": {"pk": files.run_id},
        "people:change_gold": {"pk": files.run_id},
        "people:remove_gold": {"pk": files.run_id},
        "runs:people_result": {"pk": evaluation.run_id},
        "people:reassign": {"number": second.item.number, "fields": {"assignment": second.pk}},
        "people:imported": {"number": imported.pk},
        "people:stop_import": {"number": imported.pk},
        "people:answer": {"question": asked.pk},
        "people": {"pk": evaluation.run_id, "number": 1, "rater": first.rater_id, "form": "jsonl"},
        "people:payment_sheet": {"form": "csv"},
        "desk": {"pk": evaluation.run_id, "token": second.token},
        **{f"desk:{name}_by_number": {"token": second.pk} for name in ("verdict", "skip", "draft")},
    }


def look_places(project: Project, version: Version, bob: User) -> Places:
    """URL parameters of a look with a note in one of two groups and a draft of a model."""
    row = version.data_rows.filter(valid=True).order_by("line").last()  # the first is set aside
    look = Look.objects.create(project=project, version=version, seed=1, size=1, population=1)
    drawn = LookAnswer.objects.create(
        look=look, place=1, row=row, response=row.responses.all()[0], drawn_with=1.0
    )
    note = note_save(answer=drawn, user=bob, text="", passed=False, new_kind=True, seen=0)
    group = group_create(look=look, user=bob, name="Wrong", notes=[note.pk])
    other = group_create(look=look, user=bob, name="Else")
    proposed = [{"name": "Wrong", "definition": "", "notes": [note.pk], "taken": False}]
    draft = GroupProposal.objects.create(look=look, state="draft", model="m", groups=proposed, created_by=bob)
    endpoint = Endpoint.objects.get(project=project)
    return {
        "look:propose": {"fields": {"endpoint": endpoint.pk}},  # without a text nothing is sent
        "look:merge": {"fields": {"into": other.pk}},
        "look:take": {"fields": {"take": "0"}},
        "look": {
            "pk": look.pk,
            "place": 1,
            "group": group.pk,
            "proposal": draft.pk,
            "form": "csv",
        },
    }


def rubric_places(project: Project, version: Version) -> Places:
    """URL parameters of a row with a draft of its rubric."""
    lines = [{"criterion": "Is short.", "points": 1, "decision": ""}]
    draft = RubricDraft.objects.create(version=version, line=1, state="draft", model="m", lines=lines)
    row = {"dataset": version.dataset_id, "number": version.number, "line": 1, "pk": draft.pk}
    SetAside.objects.create(version=version, seed=1, rows=[version.data_rows.get(line=1).pk])
    endpoint = Endpoint.objects.get(project=project)
    return {
        "rubrics:draft": {
            **row,
            "fields": {"endpoint": endpoint.pk},
        },  # the row is set aside: nothing is sent
        "rubrics": {**row, "fields": {"line-0": "discarded"}},
    }


def webhook_places(project: Project) -> Places:
    """URL parameters of a webhook with a delivery."""
    webhook, _secret = webhook_create(project=project, url="https://hooks.example/", events=["run.finished"])
    emit_test(webhook)
    return {"webhooks": {"webhook": webhook.pk, "delivery": Delivery.objects.get(webhook=webhook).pk}}


def trust_places(project: Project, cast: dict[str, User]) -> Places:
    """URL parameters of a test that is being rated, of a train row on which Rita contradicts the judge, and of a
    suspended licence."""
    metric = Metric.objects.get(project=project)
    run = a_judged_run(project, models=["alpha"])
    run.metrics.update(metric_version=metric.versions.get())
    split = sealed_test_draw(
        metric=metric,
        definition=MetricDefinition.from_json(metric.versions.get().definition),
        source=Source(run.version, run),
        sizes=Sizes(2, 0, 1),
        user=cast["adam"],
        asking=Asking([cast["rita"]]),
        seed=1,
    )
    split.refresh_from_db()
    assert split.test.evaluation is not None
    rate_each(split.test.evaluation, cast["rita"], lambda _item: 10)
    (judgement, *_others) = Disagreements(split, run.metrics.get()).by_judgement
    licence = Licence.objects.create(
        metric_version=metric.versions.get(),
        definition_hash="x",
        judge="m",
        opening_number=1,
        figures=asdict(licence_figures(np.zeros(1), np.zeros(1), np.zeros(1, int), "passes")),
        answers=[["x", "alpha", 1, "", 0, False, False]],
        thresholds=asdict(Thresholds()),
        tier="one",
        labels_before=False,
        dataset_name="x",
        dataset_version=1,
        opened_at=timezone.now(),
    )
    suspension = Suspension.objects.create(licence=licence, reason="x")
    of_test = {"split": split.pk, "run_metric": run.metrics.get().pk, "licence": licence.pk}
    of_test |= {"suspension": suspension.pk, "judgement": judgement}
    measurement = Measurement.objects.create(
        project=project, card="faithful", language="en", model="m", definition="{}", answers=1, most_calls=1
    )
    of_card = {"card": "faithful", "measurement": measurement.pk}
    draft = PromptSuggestion.objects.create(
        split=split, metric_version=metric.versions.get(), state="draft", model="m", template="x"
    )
    of_test |= {"suggestion": draft.pk, "watch": a_watch(licence).pk}
    drill = Drill.objects.create(
        project=project, metric_version=metric.versions.get(), run=run, dataset_version=1, rows=1
    )
    judged_again = a_run(run.version, a_metric("http://127.0.0.1:9/v1"))
    succession = Succession.objects.create(
        project=project,
        metric_version=metric.versions.get(),
        old=run.metrics.get(),
        run=judged_again,
        margin=0.1,
    )
    of_succession = {"pk": succession.pk, "run": run.pk, "number": 0}
    return {
        "trust:succession": of_succession,
        "trust:succession_new": of_succession,
        "trust:succession_margin": of_succession,
        "trust": {"metric": metric.pk, "pk": drill.pk, "defect": "empty", **of_test, **of_card},
        "trust:lift": {"fields": {"reason": "x"}},
        "trust:watch_ceilings": {"watch": of_test["watch"], "fields": {"calls": 500}},
    }


def a_watch(licence: Licence) -> Watch:
    """The watch of another licence that says the same."""
    watched = Licence.objects.get(pk=licence.pk)
    watched.pk = None
    watched.save()
    return Watch.objects.create(
        licence=watched,
        seed=1,
        sentinels=[],
        definition=licence.metric_version.definition,
        sitting_calls=30,
        ceiling_calls=1200,
        created_at=timezone.now(),
    )


def run_places(project: Project, cast: dict[str, User], version: Version) -> Places:
    run, bob = a_judged_run(project), cast["bob"]
    judgement = run.judgements.order_by("position")[0]
    results = ResultsImport.objects.create(
        project=project, version=version, name="x", file_name="x", stored_as="x", size=1
    )
    view = SavedView.objects.create(project=project, owner=bob, name="x", query="state=error")
    rule = SendingRule.objects.create(
        project=project,
        name="x",
        query="state=error",
        evaluation=make_evaluation(project, side_by_side=False),
        a_day=1,
    )
    link, secret = report_link_create(run=run, note="", days=7, by=cast["alice"])
    comment = comment_add(judgement=first_of(run), text="x", by=bob)
    tagged = change_one(judgement=first_of(run), change=Change("tag", "x"), by=bob)
    of_import = ("results_import", "import_confirm", "import_discard")
    return {
        "shared_report": {"secret": secret},
        "runs:report_revoke_link": {"link_pk": link.pk},
        "runs:export": {"form": "jsonl"},
        "deletion:delete": {"kind": "run", "pk": run.pk},
        **{f"runs:{name}": {"pk": results.pk} for name in of_import},
        "runs:report_pair": {"fields": {"metric": "quality", "a": "alpha", "b": "beta"}},
        "runs": {
            "pk": run.pk,
            "metric": run.metrics.get().pk,
            "judgement_pk": judgement.pk,
            "name": "report.json",
            "response": judgement.response_id,
            "comment_pk": comment.pk,
            "action_pk": tagged.pk,
            "kind": "tag",
            "view_pk": view.pk,
            "rule": rule.pk,
            "response_pk": judgement.response_id,
            "other": run.pk,
            "first": judgement.pk,
            "second": judgement.pk,
        },
    }


def address(name: str, route: str, places: Places) -> str:
    known = {"slug": "physics", **places.get(name.partition(":")[0], {}), **places.get(name, {})}
    return "/" + re.sub(r"<\w+:(\w+)>", lambda found: str(known[found[1]]), route)


def asked(client: Client, method: str, address: str, fields: dict[str, Any]) -> str:
    """The outcome of a request, whose changes are rolled back."""
    with transaction.atomic():
        answer = getattr(client, method)(address, fields)
        got = outcome(answer)
        if answer.streaming:
            list(answer)  # read to the end, so that its file is closed
        transaction.set_rollback(True)
    return got


def outcome(response: HttpResponseBase) -> str:
    """`in` if the request was allowed, otherwise how it was refused; what may be stored by caches is neither."""
    if response.headers.get("Cache-Control") != "private, no-store":
        return "may be stored"
    if response.status_code == 302 and response.headers["Location"].startswith("/sign-in/?next="):
        return "sign in"
    status = response.status_code
    return str(status) if status in (401, 403, 404, 405) or status >= 500 else "in"


def expected(rule: Rule, name: str) -> str:
    if rule.may in (PUBLIC, NOBODY):
        return "in" if rule.may == PUBLIC else rule.refusal
    if rule.may == PROGRAMS:
        return "401"
    if name == "anonymous":
        return "sign in"
    if rule.may == SIGNED_IN:
        return "in"
    if name == "olga":
        return rule.superuser
    if rule.may == SITE:
        return "403"
    if name in OUTSIDE or (name == "adam" and rule.may == "rita"):
        return "404"
    return "in" if name in rule.may.split() else rule.refusal


@pytest.mark.parametrize("who", EVERYBODY)
def test_every_address_lets_in_who_may_and_nobody_else(
    cast: dict[str, User], client_of: ClientOf, places: Places, who: str
) -> None:
    """Check the table with one request per URL."""
    people = {**cast, "nobody": person("nobody")}
    cookies = client_of(people[who]).cookies if who in people else None
    wrong = []
    for name, route in pages().items():
        if (rule := TABLE.get(name)) is None:
            wrong.append(f"{name}: not in the table")
            continue
        fields = places.get(name, {}).get("fields", {})
        client = Client(raise_request_exception=False)
        client.cookies = copy.copy(cookies or client.cookies)
        wanted = {expected(rule, who)}
        got = asked(client, rule.method, address(name, route, places), fields)
        if got in wanted and got != "in" and rule.method == GET:  # then POST must be refused as well
            wanted.add("405")
            got = asked(client, POST, address(name, route, places), fields)
        if got not in wanted:
            wrong.append(f"{name} ({rule.method}): {got}, not {expected(rule, who)}")
    assert wrong == [], "\n".join(wrong)
    assert TABLE.keys() <= routes().keys()


def pages() -> dict[str, str]:
    """All addresses but the API's (tests/evalsite/api/test_every_address.py)."""
    return {name: route for name, route in routes().items() if not name.startswith("api:")}


def test_every_address_has_a_name_and_so_a_line_in_the_table() -> None:
    assert [str(pattern.pattern) for pattern in patterns() if not pattern.name] == []
