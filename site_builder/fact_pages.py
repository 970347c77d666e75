"""The pages about exit codes, environment variables and limits, from the constants that the code uses."""

from __future__ import annotations

from collections.abc import Iterator

from crossdock.cli.exit_code_and_variable_meanings import ENVIRONMENT_VARIABLE_MEANINGS, EXIT_CODE_MEANINGS
from crossdock.reading.formats.strict_delimited_parser import MAX_COLUMNS
from crossdock.reading.formats.text_decoding import MAX_RECORD_BYTES
from crossdock.reading.sources.paginated_api_client import MAX_ADDRESS, MAX_PAGES
from crossdock.reading.wrappers.wrapper import FREE_BYTES, FREE_LINES, MAX_LINES_PER_BYTE, UnpackingLimits
from crossdock.reading.wrappers.zip_archives import MAX_DIRECTORY, ZipSettings
from crossdock.values import config_file, exact_json, yaml_reader
from crossdock.values.config_base_types import MAX_SECRET_BYTES
from crossdock.values.field_types import MAX_ID_LENGTH
from crossdock.values.record_keys import MAX_KEY_BYTES
from crossdock.values.texts_of_numbers_and_times import byte_size_text
from site_builder.markdown_text import code, table


def _size(size: int) -> str:
    return byte_size_text(size).replace(".0 ", " ")


_UNPACKING = UnpackingLimits()
_LIMITS = {
    "config file": (
        f"{_size(config_file.MAX_BYTES)}, {yaml_reader.MAX_DEPTH} levels, {yaml_reader.MAX_VALUES:,} keys and values"
    ),
    "secret file": _size(MAX_SECRET_BYTES),
    "exported file": (
        f"{_UNPACKING.max_bytes // 10**9} GB; {MAX_COLUMNS:,} columns; {_size(MAX_RECORD_BYTES)} per record; what is"
        f" packed unpacks to at most {_UNPACKING.max_ratio} times its size (beyond {FREE_BYTES // 10**6} MB; a"
        f" [setting](config/wrapped.md)) and {MAX_LINES_PER_BYTE} lines per byte (beyond {FREE_LINES:,} lines)"
    ),
    "zip archive": (
        f"{ZipSettings(kind='zip').max_members:,} members that are read (a setting), and a list of members of"
        f" {_size(MAX_DIRECTORY)}"
    ),
    "record key": f"{MAX_KEY_BYTES:,} bytes for each part",
    "platform id": f"1 to {MAX_ID_LENGTH} printable characters",
    "JSON page or response": (
        f"{exact_json.MAX_DEPTH} levels, {exact_json.MAX_VALUES:,} values, numbers of at most"
        f" {exact_json.MAX_EXPONENT + 1:,} digits and exponents up to {exact_json.MAX_EXPONENT:,}"
    ),
    "pagination": f"next-page URL of {MAX_ADDRESS:,} characters; {MAX_PAGES:,} pages",
    "memory": "the batch plus 40 bytes per snapshot key",
}
_ABOUT = {
    "CROSSDOCK_PERSON": "[The audit log](../how_to/console/audit.md)",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "[Traces](../how_to/schedule/traces.md)",
    "HTTPS_PROXY": "[Proxies and certificates](../how_to/configure/proxies_and_certificates.md)",
}


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page."""
    yield (
        "reference/exit_codes.md",
        "# Exit codes\n\nWhat the exit code of a command means, for scripts and schedulers.\n\n"
        + table(("exit", "meaning"), ((str(number), meaning) for number, meaning in EXIT_CODE_MEANINGS.items()))
        + "\n[Fix](../how_to/fix/exit_codes.md) says what to do.\n",
    )
    yield (
        "reference/environment_variables.md",
        "# Environment variables\n\nThe variables of the environment that crossdock reads. A config also reads what it"
        " refers to as `env:NAME`, a secret, or as `${NAME}`, a value.\n\n"
        + table(("variable", "effect", ""), map(_variable, ENVIRONMENT_VARIABLE_MEANINGS.items())),
    )
    yield (
        "reference/limits.md",
        "# Limits\n\nThe most that crossdock accepts of a file, a record, an answer and a config, and its"
        " memory usage.\n\n" + table(("what", "limit"), _LIMITS.items()),
    )


def _variable(item: tuple[tuple[str, ...], str]) -> tuple[str, str, str]:
    names, effect = item
    return ", ".join(map(code, names)), effect, _ABOUT.get(names[0], "")
