"""What exit codes mean, and the effects of environment variables. The documentation is made from them."""

from __future__ import annotations

ENVIRONMENT_VARIABLE_MEANINGS: dict[tuple[str, ...], str] = {
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

EXIT_CODE_MEANINGS = {
    0: "everything is delivered or unchanged",
    1: (
        "finished, but records of the run's streams are open: rejected, waiting, pending or in doubt, whichever run"
        " read them; of `try`: some of the records it read were rejected; of `migrate rehearse`: some would be"
        " rejected, wait or need a decision"
    ),
    2: "invalid usage or config",
    3: (
        "could not run or finish: unreachable, unauthorized, locked, no state, the state of another platform, or an"
        " expected file is missing"
    ),
    4: (
        "refused for safety: a short, stale, growing or damaged file; too many removals or updates; a mapping that"
        " fails too often; a restored state; an outdated plan; of `migrate`: a closed gate, a source that has changed"
        " since the rehearsal or during a freeze check, a sign-off for which a fact is missing, a report that was"
        " changed"
    ),
    10: "`plan --detailed-exitcode` only: there is something to do",
    70: "a defect, or a tally that does not balance",
    130: "interrupted",
}
