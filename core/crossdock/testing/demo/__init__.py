"""The demo: a made-up warehouse, the sandbox, and two daily runs between them."""
