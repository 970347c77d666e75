# The daily commands; `just --list` shows them.

# What must pass before a commit.
check:
    ruff format .
    ruff check .
    mypy
    lint-imports

# The suite, or some of it: just test tests/unit
test *what:
    pytest -n 2 {{what}}

# The suite, tests/nightly, and each test of a state on both databases.
nightly:
    pytest -n 2 --nightly

# Everything at full size; hours.
long *what="tests/long":
    pytest -n 2 -rP {{what}}

# What CI does, on an empty machine.
ci:
    bash .ci/run

# The documentation site in site/, with the reference from the code; fails on warnings and broken links.
site:
    python -m site_builder --output site

# Renew .ci/requirements.lock.
lock:
    uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes --only-binary :all: --no-header --upgrade -o .ci/requirements.lock
