"""Removing the answers from a row's text leaves the rest unchanged, wherever the answers were."""

import json

import pytest

from datasets.core.rows import RawRow

OUTPUTS = '[{"model_name": "lark", "responses": [{"content": "a, b"}, {"content": "\\u00e9"}]}]'


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ('{"a": 1.50, "model_outputs" : OUTPUTS}', '{"a": 1.50}'),
        ('{"model_outputs": OUTPUTS, "a": 1.50}', '{"a": 1.50}'),
        ('{"a": 1.50 , "model_outputs":OUTPUTS , "b": 2}', '{"a": 1.50, "b": 2}'),
        ('{"model_outputs": OUTPUTS}', "{}"),
        ('{"a": "model_outputs", "model_outputs": OUTPUTS}', '{"a":"model_outputs"}'),
        ('{"a": {"model_outputs": 1}, "model_outputs": OUTPUTS}', '{"a":{"model_outputs": 1}}'),
        ('{"a": 1, "model\\u005foutputs": OUTPUTS}', '{"a":1}'),
        ('{"a": {"model_outputs": OUTPUTS}, "model_outputs": OUTPUTS}', '{"a":{"model_outputs": OUTPUTS}}'),
        ('{"model_outputs": OUTPUTS, "a": {"model_outputs": OUTPUTS}}', '{"a":{"model_outputs": OUTPUTS}}'),
        (
            '{"a": {"model_outputs": OUTPUTS}, "model\\u005foutputs": OUTPUTS}',
            '{"a":{"model_outputs": OUTPUTS}}',
        ),
        ('{"a\\"model_outputs": 1, "model_outputs": OUTPUTS}', '{"a\\"model_outputs": 1}'),
        ('{"a\\"model_outputs": OUTPUTS, "model_outputs": OUTPUTS}', '{"a\\"model_outputs": OUTPUTS}'),
        ('{"a": [1], "model_outputs": OUTPUTS, "b": [1]}', '{"a": [1], "b": [1]}'),
    ],
)
def test_the_answers_are_cut_out(written: str, left: str):
    line = written.replace("OUTPUTS", OUTPUTS).encode()
    row = RawRow(1, True, line, line)
    assert json.loads(row.data) == json.loads(left.replace("OUTPUTS", OUTPUTS))
    assert row.responses == (("lark", 1, '{"content": "a, b"}'), ("lark", 2, '{"content": "\\u00e9"}'))


def test_custom_fields_stay_byte_for_byte():
    line = b'{"n": 1.50,  "big": 12345678901234567890123, "model_outputs": []}'
    assert RawRow(1, True, line, line).data == '{"n": 1.50,  "big": 12345678901234567890123}'
