"""The pages of human evaluations."""
