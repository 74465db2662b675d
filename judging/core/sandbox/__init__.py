"""Where templates and scripts that people write are run. What it promises stands in README.md beside this file."""
