"""The environment variables that crossdock reads, with their effects. The documentation is made from them."""

from __future__ import annotations

VARIABLES: dict[tuple[str, ...], str] = {
    ("CROSSDOCK_CONFIG",): (
        "the config file, or several separated by `:`, if `-C` is not given; default `crossdock.yaml`"
    ),
    ("CROSSDOCK_PERSON", "CROSSDOCK_ADDRESS", "CROSSDOCK_REASON"): (
        "who starts a command, from where, and why, for the audit log; default: the user of the process, the command"
        " line with its host, and nothing"
    ),
    ("CROSSDOCK_WAIT_FOR_RUN_S",): (
        "whole seconds that a command waits for the end of a run that uses the state, before it is refused; default 0,"
        " and 10 for commands that the console starts"
    ),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"): (
        "where traces are sent; the other variables of OpenTelemetry are read with them"
    ),
    ("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"): (
        "proxy and certificates, only with `trust_env: true`"
    ),
    ("XDG_STATE_HOME",): (
        "the folder of a file by which a restored state is noticed; default `.local/state` in the home folder"
    ),
    ("PGOPTIONS",): (
        "settings of sessions with PostgreSQL, such as the schema of the state, unless its address has `options`; the"
        " other variables of libpq are read with it"
    ),
    ("DISPLAY", "WAYLAND_DISPLAY"): "without both, `connect` opens no browser on Linux",
    ("COLUMNS", "NO_COLOR"): "width of tables; no colors",
}
