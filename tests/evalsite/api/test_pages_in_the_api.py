"""A new page has its address in the API, or stands here with the reason why it has none."""

from tests.evalsite.api.test_every_address import RUN, VERSION
from tests.evalsite.api.test_every_address import TABLE as API
from tests.evalsite.test_every_address import TABLE as PAGES

DATASETS, METRICS, RUNS = ("projects/{slug}/" + name for name in ("datasets", "metrics", "runs"))
ENDPOINTS, WEBHOOKS, STUDIES = (
    "projects/{slug}/" + name for name in ("endpoints", "webhooks", "evaluations")
)
STUDY, JUDGEMENT = STUDIES + "/{evaluation}", RUN + "/judgements/{judgement}"
RATER = STUDY + "/raters/{rater}"

IN_THE_API = {
    "get projects": "home",
    "get log": "accounts:site_log accounts:site_log_csv",
    "get projects/{slug}/log": "accounts:project_log accounts:project_log_csv",
    f"get {DATASETS}": "project datasets:list",
    f"post {DATASETS}": "datasets:upload datasets:import datasets:import_begin",
    f"get {DATASETS}/{{dataset}}": "datasets:dataset",
    f"get {VERSION}": "datasets:version",
    f"get {VERSION}/findings": "datasets:findings",
    f"get {VERSION}/rows": "datasets:rows datasets:row datasets:raw_row datasets:original_row",
    f"get {VERSION}/download": (
        "datasets:original datasets:part datasets:bad_rows datasets:rows_jsonl datasets:rows_csv "
        "datasets:table_csv datasets:table_xlsx datasets:table_parquet"
    ),
    f"post {VERSION}/repairs": "datasets:repair",
    f"post {VERSION}/answers": "datasets:attach",
    f"get {VERSION}/answers/{{attachment}}": "datasets:attachment",
    f"get {ENDPOINTS}": "endpoints:list",
    f"post {ENDPOINTS}": "endpoints:new",
    f"get {ENDPOINTS}/{{endpoint}}": "endpoints:endpoint",
    f"get {METRICS}": "metrics:list metrics:export_all",
    f"post {METRICS}": "metrics:new metrics:import metrics:edit metrics:rules_new",
    f"get {METRICS}/{{metric}}": "metrics:export metrics:export_version metrics:version metrics:versions",
    f"post {METRICS}/{{metric}}/preview": "metrics:preview metrics:rules_preview",
    "get projects/{slug}/judges": (
        "trust:judges trust:licence trust:drills trust:drill trust:watch trust:successions trust:succession"
    ),
    f"get {WEBHOOKS}": "webhooks:list webhooks:webhook",
    f"delete {WEBHOOKS}/{{webhook}}": "webhooks:delete",
    f"get {RUNS}": "runs:list",
    f"post {RUNS}": "runs:new",
    f"get {RUN}": "runs:detail",
    f"post {RUN}/pause": "runs:pause",
    f"post {RUN}/resume": "runs:resume",
    f"post {RUN}/cancel": "runs:cancel",
    f"post {RUN}/retry": "runs:retry",
    f"post {RUN}/judge-again": "runs:judge_again",
    f"post {RUNS}/import": "runs:import_results",
    f"get {RUNS}/import/{{results_import}}": "runs:results_import",
    f"post {RUNS}/import/{{results_import}}/confirm": "runs:import_confirm",
    f"get {RUNS}/{{a}}/compare/{{b}}": "runs:compare runs:compare_item",
    f"get {RUN}/disagreements": "trust:disagreements trust:agreement",
    f"get {RUN}/judgements": "runs:judgements runs:items runs:panel runs:pill runs:answer",
    f"get {JUDGEMENT}": "runs:judgement",
    f"post {JUDGEMENT}/override": "runs:override",
    f"post {JUDGEMENT}/comments": "runs:comment",
    f"get {RUN}/export": "runs:export",
    f"get {RUN}/report": (
        "runs:report runs:leaderboard runs:report_pair runs:report_agreement runs:report_verdicts "
        "runs:people_result runs:metric_people"
    ),
    f"get {RUN}/report/{{name}}": "runs:report_file",
    f"get {STUDIES}": "people:list",
    f"post {STUDIES}": "people:new runs:ask",
    f"get {STUDY}": "people:detail",
    f"post {STUDY}/state": "people:open people:pause people:resume people:close people:reopen",
    f"post {STUDY}/schedule": "people:schedule",
    f"post {STUDY}/end-pilot": "people:end_pilot",
    f"get {STUDY}/gold": "people:gold",
    f"post {STUDY}/gold": "people:use_as_gold",
    f"post {STUDY}/gold/{{item}}": "people:change_gold",
    f"delete {STUDY}/gold/{{item}}": "people:remove_gold",
    f"post {STUDY}/gold-rule": "people:gold_rule",
    f"get {STUDY}/raters": "people:inviting",
    f"post {STUDY}/raters/add": "people:add_raters people:read_list",
    f"post {STUDY}/quota": "people:change_quota",
    f"post {STUDY}/offer": "people:offer",
    "get projects/{slug}/rater-groups": "people:groups people:group",
    "post projects/{slug}/rater-groups": "people:add_group",
    "delete projects/{slug}/rater-groups/{group}": "people:delete_group",
    f"post {RATER}/pause": "people:pause_rater",
    f"post {RATER}/resume": "people:resume_rater",
    f"get {STUDY}/payment": "people:payment people:payment_sheet",
    f"get {STUDY}/figures": "people:rater",
    f"post {STUDY}/thresholds": "people:thresholds",
    f"post {RATER}/set-aside": "people:set_aside",
    f"post {RATER}/count-again": "people:count_again",
    f"post {STUDY}/guideline": "people:guideline",
    f"post {STUDY}/qualification": "people:qualification",
    f"post {RATER}/let-in": "people:let_in",
    f"post {RATER}/try-again": "people:try_again",
    f"get {STUDY}/questions": "people:questions",
    f"post {STUDY}/questions/{{question}}/answer": "people:answer",
    f"post {STUDY}/change": "people:change",
    f"get {STUDY}/ratings": "people:export people:items people:item",
    f"post {STUDY}/ratings": "people:import",
    f"get {STUDY}/ratings/imports/{{ratings_import}}": "people:imported",
    "get projects/{slug}/looks/{look}/notes": "look:list look:groups look:export",
}

FOR_PEOPLE_ONLY = {
    "documents, help and the search of pages": (
        "help guide search datasets:formats datasets:sample metrics:reference metrics:rules_reference "
        "metrics:rules_start metrics:gallery metrics:reading"
    ),
    "the API's own documents": "api_docs api_description api_client",
    "an address of its own for programs": "mcp prometheus",
    "the state of the site, which /metrics/ has for programs": "status components",
    "signing in, accounts and passwords": (
        "accounts:sign_in accounts:sign_out accounts:join accounts:oidc accounts:oidc_back accounts:view_as "
        "accounts:language accounts:theme accounts:mail accounts:account accounts:password mail:request_reset "
        "mail:reset mail:confirm"
    ),
    "tokens, members and roles: a token must not make or widen another": (
        "accounts:make_token accounts:revoke_token accounts:create_project accounts:project_settings "
        "accounts:members accounts:archive_project accounts:restore_project accounts:add_member "
        "accounts:create_member accounts:invite accounts:revoke_invitation accounts:set_roles "
        "accounts:remove_member accounts:reset_password"
    ),
    "deleting is decided by a person who has read what goes": "deletion:delete",
    "archiving only keeps lists short": (
        "datasets:archive datasets:restore metrics:archive metrics:restore endpoints:archive endpoints:restore "
        "people:archive people:restore runs:archive runs:restore"
    ),
    "one person's messages, drafts and views": (
        "inbox inbox_read accounts:draft metrics:keep metrics:leave runs:save_view runs:choose_columns "
        "runs:change_view runs:delete_view runs:mine"
    ),
    "links without sign-in are given by a person": (
        "shared_report runs:report_links runs:report_revoke_link people:create_link people:revoke_link"
    ),
    "keys and addresses of servers are entered by a person": (
        "endpoints:edit endpoints:address endpoints:publish endpoints:test endpoints:try"
    ),
    "editing rows by hand": (
        "datasets:edit_row datasets:edits datasets:edit_decide datasets:edits_make datasets:leave_out "
        "datasets:read_as datasets:again datasets:cancel"
    ),
    "what a program compares from rows": "datasets:changes datasets:changes_since datasets:random_row",
    "answering what an upload asks; the API takes it with the upload": (
        "datasets:attachment_unmatched datasets:attachment_use datasets:attachment_name "
        "datasets:attachment_discard runs:import_discard people:stop_import people:rename_sides"
    ),
    "trying things in an editor; `lint` and `evaluate` do it in a shell": (
        "metrics:lint metrics:try metrics:rules_lint metrics:rules_try metrics:past_replies metrics:compare "
        "metrics:copy metrics:restore_version"
    ),
    "raters rate with their own hands": (
        "rating:queue rating:join desk:more desk:page desk:items desk:mine desk:guideline desk:undo "
        "desk:give_back desk:understood desk:item desk:difference desk:question desk:verdict desk:skip desk:draft "
        "desk:verdict_by_number desk:skip_by_number desk:draft_by_number people:try_item people:leave "
        "people:reassign"
    ),
    "reading and settling item by item": (
        "people:inbox people:adjudicate look:new look:go_on look:answer look:note look:create_group look:move "
        "look:change_group look:merge look:delete_group look:take look:propose trust:take_example trust:doubt "
        "trust:decide rubrics:row rubrics:draft rubrics:decide runs:withdraw runs:mark runs:comment_change"
    ),
    "parts of lists and ways into them": (
        "runs:filter_menu runs:actions runs:undo_action runs:act runs:at runs:first_judgement trust:drill_items"
    ),
    "a judge is licensed, drilled, watched and replaced by a person who answers for it": (
        "trust:thresholds trust:align trust:versions trust:close trust:open trust:suggest trust:expire trust:lift "
        "trust:further trust:drill_new trust:succession_new trust:succession_margin trust:watch_begin "
        "trust:watch_schedule trust:watch_end trust:watch_ceilings trust:measurements trust:measure trust:measure_stop"
    ),
    "money is spent further only by a person's word": "runs:extend runs:keep_answers runs:read_again",
    "rules that send items to people": "runs:sending_rules runs:pause_rule runs:resume_rule runs:end_rule",
    "`manage.py evidence` writes it for programs": "runs:evidence runs:evidence_rules",
    "a webhook's secret and deliveries": (
        "webhooks:rotate webhooks:test webhooks:on webhooks:off webhooks:send_again"
    ),
}


def test_every_page_is_in_the_api_or_has_a_reason() -> None:
    pages = [name for names in (*IN_THE_API.values(), *FOR_PEOPLE_ONLY.values()) for name in names.split()]
    assert sorted(pages) == sorted(PAGES)
    assert set(IN_THE_API) <= set(API)
