"""The scoring-rule language (`# DSL`).

reading = read_program(text)                              check.py: a program, or every error with its position
evaluation = plan(reading.program, answer, reference)     evaluate.py: scores mechanical lines, lists open ones
result = conclude(evaluation, results)                    evaluate.py: with the open lines' results → score, error
"""
