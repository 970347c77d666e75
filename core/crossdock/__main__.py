"""``python -m crossdock``."""

from crossdock.cli.main import main

main()
