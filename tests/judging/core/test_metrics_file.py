"""The metrics file: what it may contain, and that every error is reported with its line."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import indent

import pytest

from judging.core.builtin import BUILTINS
from judging.core.metrics_file import MetricsFile, MetricsFileError, read_metrics_file
from judging.core.yaml_tree import YamlProblem

JUDGE = "{name: j, url: 'http://h/v1', model: m, judge_template_content: t}"


def metric_with(judge: str = JUDGE, more: str = "") -> str:
    return f"metrics:\n- name: one\n{more}  pipeline:\n  - type: JUDGE_MODEL\n    judge_model: {judge}\n"


def judge_with(more: str, template: str = "judge_template_content: t") -> str:
    return metric_with("{name: j, url: 'http://h/v1', model: m, " + template + ", " + more + "}")


def step_with(step: str) -> str:
    return f"metrics:\n- name: one\n  pipeline:\n  - {step}\n"


def read(text: str, folder: Path = Path("/nonexistent")) -> MetricsFile:
    return read_metrics_file(text, folder)


def problems(text: str, folder: Path = Path("/nonexistent")) -> list[YamlProblem]:
    with pytest.raises(MetricsFileError) as caught:
        read_metrics_file(text, folder)
    return list(caught.value.problems)


def codes(text: str, folder: Path = Path("/nonexistent")) -> list[tuple[int, str]]:
    return [(problem.line, problem.code) for problem in problems(text, folder)]


THE_SPECIFICATION = """\
- data_name: physics
  candidates:                     # + only to infer; uploaded answers need none
  - {name: qwen3, url: http://127.0.0.1:8001/v1, model: qwen3-8b, api_key_env: QWEN_KEY, n: 2,
     system_prompt: null, generation_params: {temperature: 0.7}}
  metrics:
  - name: correctness
    min_score: 1                  # + default 1
    max_score: 10                 # + default 10
    undefined: strict             # + or lenient
    sandbox: batch                # + or item
    pipeline:
    - type: PREPROCESS
      filename: scripts/clean.py  # or file_content: |-
    - type: JUDGE_MODEL
      judge_model:
        name: deepseek
        source: URL
        url: http://127.0.0.1:8000/v1
        model: deepseek-r1
        api_key_env: JUDGE_KEY
        system_prompt: You are strict.
        judge_template_content: |-   # or judge_template_file, or builtin: single_turn_score.en
          {{ data.question }} …
        generation_params: {temperature: 0, max_tokens: 2048}
        parse: score              # + score | comparison | {regex: "…(\\\\d+)…"} | {json_path: a.b}
        repeats: 1                # +
        both_orders: false        # + comparison only
    - type: POSTPROCESS
      file_content: |-
        def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs): …
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "clean.py").write_text("def preprocess(data, resp): return 1\n")
    return tmp_path


def test_the_example_of_the_specification_is_read_whole(folder: Path) -> None:
    file = read(THE_SPECIFICATION, folder)
    (metric,), (candidate,) = file.metrics, file.candidates
    assert (file.data_name, candidate.n, candidate.params) == ("physics", 2, {"temperature": 0.7})
    before, after = metric.scripts
    assert (metric.name, before.source) == ("correctness", "def preprocess(data, resp): return 1\n")
    assert (after.kind, after.after) == ("postprocess", 1)
    assert after.source.startswith("def postprocess(")
    (judge,) = metric.judges
    assert judge.template == "{{ data.question }} …"
    assert (judge.api_key_env, judge.params) == ("JUDGE_KEY", {"temperature": 0, "max_tokens": 2048})


def test_one_mapping_is_a_list_of_one() -> None:
    assert read(metric_with()) == read("-\n" + indent(metric_with(), "  "))


def test_what_is_left_out_has_the_specified_defaults() -> None:
    metric = read(metric_with()).metrics[0]
    assert (metric.min_score, metric.max_score, metric.undefined, metric.sandbox) == (
        1,
        10,
        "strict",
        "batch",
    )
    assert (metric.judges[0].parse, metric.judges[0].repeats) == ("score", 1)


def test_numbers_follow_json_not_yaml_1_1() -> None:
    params = "generation_params: {temperature: 1e-3, stop: no, user: 2024-01-01}"
    judge = read(judge_with(params)).metrics[0].judges[0]
    assert judge.params == {"temperature": 0.001, "stop": "no", "user": "2024-01-01"}


def test_a_builtin_comes_with_its_own_way_of_reading() -> None:
    name = "multi_turn_comparison.zh"
    judge = read(judge_with("both_orders: yes", f"builtin: {name}")).metrics[0].judges[0]
    assert (judge.template, judge.parse, judge.both_orders) == (BUILTINS[name].source, "comparison", True)


@pytest.mark.parametrize("parse", ["score", "comparison", {"regex": r"(\d+)"}, {"json_path": "a.b"}])
def test_every_specified_parser_is_read(parse: object) -> None:
    assert read(judge_with(f"parse: {json.dumps(parse)}")).metrics[0].judges[0].parse == parse


def test_a_merged_mapping_gives_what_is_not_said() -> None:
    text = (
        metric_with()
        + "- name: two\n  pipeline:\n  - type: JUDGE_MODEL\n    judge_model: {<<: *j, model: other}\n"
    )
    judge = read(text.replace("judge_model: {name", "judge_model: &j {name")).metrics[1].judges[0]
    assert (judge.url, judge.model) == ("http://h/v1", "other")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [(1, "empty_file")]),
        ("[]", [(1, "no_metrics")]),
        ("a: [", [(1, "yaml_syntax")]),
        ("a: 1\n\x07", [(2, "yaml_syntax")]),
        ("- 3", [(1, "not_a_mapping")]),
        ("data_name: x\nmetrcs: []", [(1, "missing_key"), (2, "unknown_key")]),
        ("metrics:\n- name: a\n  pipeline: []", [(3, "not_a_list")]),
        ("metrics: 3", [(1, "not_a_list")]),
        ("metrics:\n- !!python/object:os.system {}", [(2, "unknown_tag")]),
        (metric_with(more="  name: two\n"), [(3, "duplicate_key")]),
        (metric_with(more="  min_score: ten\n"), [(3, "not_a_number")]),
        (metric_with(more="  min_score: 5\n  max_score: 5\n"), [(4, "empty_scale")]),
        (metric_with(more="  undefined: maybe\n"), [(3, "not_an_option")]),
        (metric_with() + metric_with()[9:], [(6, "duplicate_metric")]),
        (metric_with("5"), [(5, "not_a_mapping")]),
    ],
)
def test_a_mistake_in_the_frame_is_reported_with_its_line(text: str, found: list[tuple[int, str]]) -> None:
    assert codes(text) == found


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("api_key: sk-1", "unknown_key"),
        ("api_key_env: sk-123", "no_variable_name"),
        ("source: HUB", "unknown_source"),
        ("judge_template_file: a.txt", "several_templates"),
        ("builtin: nothing", "several_templates"),
        ("parse: maths", "unknown_parser"),
        ("parse: {regex: '('}", "bad_regex"),
        ("parse: {json_path: a..b}", "bad_json_path"),
        ("repeats: 0", "not_a_whole_number"),
        ("repeats: true", "not_a_whole_number"),
        ("both_orders: true", "both_orders_without_comparison"),
        ("both_orders: maybe", "not_true_or_false"),
        ("generation_params: 3", "not_a_mapping"),
        ("generation_params: {temperature: .nan}", "no_json_value"),
    ],
)
def test_a_mistake_in_a_judge_model_is_reported_with_its_line(more: str, code: str) -> None:
    assert codes(judge_with(more)) == [(5, code)]


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("{type: RULES}", "no_script"),
        ('{type: RULES, file_content: "# DSL\\n甲:精确匹佩\\n@格式限制:JSON"}', "rules_error"),
        ('{type: RULES, file_content: "# DSL\\n甲:模糊匹配\\n@格式限制:JSON"}', "rules_need_judge"),
        ("{type: POLISH}", "not_an_option"),
        ("{type: JUDGE_MODEL}", "missing_key"),
        ("{type: PREPROCESS}", "no_script"),
        ("{type: PREPROCESS, filename: a, file_content: b}", "several_scripts"),
        ("{type: PREPROCESS, file_content: b, judge_model: {}}", "key_of_other_step"),
    ],
)
def test_a_mistake_in_a_step_is_reported_with_its_line(step: str, code: str) -> None:
    assert codes(step_with(step)) == [(4, code)]


def test_steps_may_come_in_any_order_and_number() -> None:
    script, judge = (
        "type: {}, file_content: x",
        "type: JUDGE_MODEL, judge_model: {url: 'http://h/v1', model: m, builtin: single_turn_score.en}",
    )
    post, pre = script.format("POSTPROCESS"), script.format("PREPROCESS")
    steps = [post, pre, judge, pre, judge, judge, post, post]
    (metric,) = read(
        "- {metrics: [{name: m, pipeline: [" + ", ".join(f"{{{step}}}" for step in steps) + "]}]}"
    ).metrics
    assert [step.type for step in metric.steps] == [
        step.split(",")[0].removeprefix("type: ") for step in steps
    ]
    assert [script.after for script in metric.scripts] == [0, 0, 1, 3, 3]


def test_a_pipeline_has_one_rule_program_and_no_judge_model_beside_it() -> None:
    rules = '{type: RULES, file_content: "# DSL\\n@单个字段:字数限制:60\\n@格式限制:字符串"}'
    assert codes(step_with(f"{rules}\n  - {rules}")) == [(5, "rules_twice")]


def test_a_written_key_is_not_repeated_in_the_error() -> None:
    assert "sk-123" not in repr(problems(judge_with("api_key_env: sk-123")))
    assert "hunter2" not in repr(problems(metric_with(JUDGE.replace("h/v1", "u:hunter2@h"))))


def test_an_unknown_key_names_the_one_that_was_meant() -> None:
    (problem,) = problems(metric_with(more="  min_scor: 1\n"))
    assert (problem.params["key"], problem.params["near"]) == ("min_scor", "min_score")


def test_all_mistakes_are_reported_at_once() -> None:
    text = metric_with("{nme: j, url: 'ftp://h', judge_template_content: t}", "  sandbox: none\n")
    assert [code for _, code in codes(text)] == ["not_an_option", "unknown_key", "bad_url", "missing_key"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../out.py", "file_outside"),
        ("/etc/hostname", "file_outside"),
        ("link.py", "file_outside"),
        ("scripts", "file_missing"),
        ("none.py", "file_missing"),
        ("circle", "file_unreadable"),
        ("latin.py", "file_not_utf8"),
        ("blank.py", "blank"),
        ("long.py", "file_too_long"),
        ('"a\\0b"', "file_unreadable"),
    ],
)
def test_nothing_but_a_readable_file_of_the_folder_is_read(folder: Path, path: str, code: str) -> None:
    (folder / "in").mkdir()
    inner = folder / "in"
    (folder / "out.py").write_text("secret")
    (inner / "scripts").mkdir()
    (inner / "link.py").symlink_to(folder / "out.py")
    (inner / "circle").symlink_to(inner / "circle")
    (inner / "latin.py").write_bytes("é".encode("latin-1"))
    (inner / "blank.py").write_text("\n")
    (inner / "long.py").write_text("#" * (2**20 + 1))
    assert codes(step_with(f"{{type: PREPROCESS, filename: {path}}}"), inner) == [(4, code)]


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "short.py").symlink_to(folder / "scripts" / "clean.py")
    metric = read(step_with("{type: PREPROCESS, filename: short.py}"), folder).metrics[0]
    assert metric.scripts[0].source.startswith("def preprocess")


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (BOMB, "too_many_values"),
        ("&a [*a]", "too_deep"),
        ("[" * 5000, "too_deep"),
        ("# " + "x" * 2**23, "too_long"),
    ],
)
def test_a_file_that_means_harm_ends_at_a_bound(text: str, code: str) -> None:
    assert [found for _, found in codes(text)] == [code]


RULES = "# DSL\n主题:模糊匹配\n@格式限制:JSON\n"


def with_rules(step: str) -> str:
    return "metrics:\n- name: 字段\n  pipeline:\n  - {type: RULES, " + step + "}"


def test_a_rule_program_may_be_next_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "f.dsl").write_text(RULES.replace("模糊", "精确"))
    (metric,) = read_metrics_file(with_rules("filename: f.dsl"), tmp_path).metrics
    assert (metric.rules, metric.judges, metric.max_score) == (RULES.replace("模糊", "精确"), (), 5)


def test_the_judge_model_of_rules_has_no_template(tmp_path: Path) -> None:
    (tmp_path / "f.dsl").write_text(RULES)
    judge = "judge_model: {url: 'http://h/v1', model: m, generation_params: {temperature: 0}}"
    (metric,) = read_metrics_file(with_rules(f"filename: f.dsl, {judge}"), tmp_path).metrics
    assert [(one.model, one.template) for one in metric.judges] == [("m", "")]


def test_a_metric_has_rules_or_judge_models() -> None:
    both = with_rules("file_content: x") + "\n  - {type: JUDGE_MODEL, judge_model: {}}"
    assert (5, "rules_beside_judges") in codes(both)
