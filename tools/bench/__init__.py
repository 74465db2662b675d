"""The figures of docs/benchmarks.md. Each is a ratio to a bare loop in the same run, so that machines compare."""
