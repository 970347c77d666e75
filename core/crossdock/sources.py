"""The building blocks for connectors: files with their intake checks, and paged HTTP.

A name is imported when it is first used: a connector that reads folders needs no SSH library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossdock.config.http_api_connector_settings import HttpSettings
    from crossdock.errors import ConfigError, RemoteError, UnavailableError
    from crossdock.mapping.external_ids import NameForm, Ours
    from crossdock.mapping.lookup_and_join_settings import Join, Lookup
    from crossdock.mapping.row_order_and_cursors import Checkpoint, Cursor, Window, windows
    from crossdock.mapping.stream_declaration import AdoptBy, OpenUntil, Reread
    from crossdock.pacing.answer_headers import stated_wait_s
    from crossdock.pacing.rate_limit_and_retry_settings import RateLimit
    from crossdock.reading.formats.delimited_layout import DelimitedFormat
    from crossdock.reading.formats.file_formats import FileFormat
    from crossdock.reading.sources.api_declaration import Api
    from crossdock.reading.sources.api_requests_and_answers import ApiAnswer, ApiRequest
    from crossdock.reading.sources.errors_in_api_answers import GraphQLError
    from crossdock.reading.sources.expected_and_late_files import Expect, Expectation, Wait
    from crossdock.reading.sources.file_lookups_and_joins import Joined, JoinedFiles, Part, Rule
    from crossdock.reading.sources.file_order import NameOrder, Order
    from crossdock.reading.sources.file_source import FileSource, StreamId, warnings_about_newest
    from crossdock.reading.sources.listed_and_known_files import ArchiveFolder, check_intake
    from crossdock.reading.sources.manifests_and_done_markers import Manifest, MarkerTemplate
    from crossdock.reading.sources.paginated_api_client import ApiClient
    from crossdock.reading.sources.pagination import (
        AfterId,
        CursorInBody,
        CursorInHeader,
        GraphQLConnection,
        LinkHeader,
        NextUrl,
        Offset,
        OverlappingPages,
        PageNumber,
        Paginator,
        Stop,
    )
    from crossdock.reading.sources.retried_requests import NotFoundError
    from crossdock.reading.sources.run_context import SourceContext
    from crossdock.reading.transport.authorization_code_tokens import AuthorizationCodeAuth
    from crossdock.reading.transport.client_assertions import ClientAssertion, SignatureAlgorithm
    from crossdock.reading.transport.file_store import FileStore, WritableStore, any_case, list_below, split_pattern
    from crossdock.reading.transport.folder_store import FolderStore
    from crossdock.reading.transport.http_auth import (
        BasicAuth,
        BearerAuth,
        ClientCredentialsAuth,
        HeaderAuth,
        LoginAuth,
        RefreshTokenAuth,
        TimedAuth,
    )
    from crossdock.reading.transport.proxy_and_tls_settings import HttpConnection
    from crossdock.reading.transport.sftp_store import SftpLogin, connect
    from crossdock.reading.transport.ssh_connection_and_sftp_protocol import OldAlgorithm
    from crossdock.reading.wrappers.wrapping_and_unwrapping import Wrapped, WrappedIn
    from crossdock.values.config_base_types import BaseUrl, ConfigPath, HostName, Name, SecretRef
    from crossdock.values.json_access import JsonAccess
    from crossdock.values.raw_rows_and_records import Proof

_NAMES = {
    "values.config_base_types": "BaseUrl ConfigPath HostName Name SecretRef",
    "mapping.row_order_and_cursors": "Checkpoint Cursor Window windows",
    "errors": "ConfigError RemoteError UnavailableError",
    "reading.formats.delimited_layout": "DelimitedFormat",
    "reading.formats.file_formats": "FileFormat",
    "config.http_api_connector_settings": "HttpSettings",
    "mapping.lookup_and_join_settings": "Join Lookup",
    "mapping.external_ids": "NameForm Ours",
    "mapping.stream_declaration": "AdoptBy OpenUntil Reread",
    "values.json_access": "JsonAccess",
    "values.raw_rows_and_records": "Proof",
    "pacing.rate_limit_and_retry_settings": "RateLimit",
    "pacing.answer_headers": "stated_wait_s",
    "reading.sources.api_declaration": "Api",
    "reading.sources.paginated_api_client": "ApiClient",
    "reading.sources.api_requests_and_answers": "ApiAnswer ApiRequest",
    "reading.sources.errors_in_api_answers": "GraphQLError",
    "reading.sources.pagination": "AfterId CursorInBody CursorInHeader GraphQLConnection LinkHeader NextUrl Offset"
    " OverlappingPages PageNumber Paginator Stop",
    "reading.transport.authorization_code_tokens": "AuthorizationCodeAuth",
    "reading.transport.client_assertions": "ClientAssertion SignatureAlgorithm",
    "reading.transport.http_auth": "BasicAuth BearerAuth ClientCredentialsAuth HeaderAuth LoginAuth RefreshTokenAuth"
    " TimedAuth",
    "reading.transport.proxy_and_tls_settings": "HttpConnection",
    "reading.sources.listed_and_known_files": "ArchiveFolder check_intake",
    "reading.sources.expected_and_late_files": "Expect Expectation Wait",
    "reading.sources.file_order": "NameOrder Order",
    "reading.sources.file_source": "FileSource StreamId warnings_about_newest",
    "reading.sources.file_lookups_and_joins": "Joined JoinedFiles Part Rule",
    "reading.sources.manifests_and_done_markers": "Manifest MarkerTemplate",
    "reading.sources.retried_requests": "NotFoundError",
    "reading.sources.run_context": "SourceContext",
    "reading.transport.file_store": "FileStore WritableStore any_case list_below split_pattern",
    "reading.transport.folder_store": "FolderStore",
    "reading.transport.sftp_store": "SftpLogin connect",
    "reading.transport.ssh_connection_and_sftp_protocol": "OldAlgorithm",
    "reading.wrappers.wrapping_and_unwrapping": "Wrapped WrappedIn",
}
_HOME_OF = {name: f"crossdock.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AdoptBy", "AfterId", "Api", "ApiAnswer", "ApiClient", "ApiRequest", "ArchiveFolder", "AuthorizationCodeAuth",
    "BaseUrl", "BasicAuth", "BearerAuth", "Checkpoint", "ClientAssertion", "ClientCredentialsAuth", "ConfigError",
    "ConfigPath", "Cursor", "CursorInBody", "CursorInHeader", "DelimitedFormat", "Expect", "Expectation",
    "FileFormat", "FileSource", "FileStore", "FolderStore", "GraphQLConnection", "GraphQLError", "HeaderAuth",
    "HostName", "HttpConnection", "HttpSettings", "Join", "Joined", "JoinedFiles", "JsonAccess", "LinkHeader",
    "LoginAuth", "Lookup", "Manifest", "MarkerTemplate", "Name", "NameForm", "NameOrder", "NextUrl", "NotFoundError",
    "Offset", "OldAlgorithm", "OpenUntil", "Order", "Ours", "OverlappingPages", "PageNumber", "Paginator", "Part",
    "Proof", "RateLimit", "RefreshTokenAuth", "RemoteError", "Reread", "Rule", "SecretRef", "SftpLogin",
    "SignatureAlgorithm", "SourceContext", "Stop", "StreamId", "TimedAuth", "UnavailableError", "Wait", "Window",
    "Wrapped", "WrappedIn", "WritableStore", "any_case", "check_intake", "connect", "list_below", "split_pattern",
    "stated_wait_s", "warnings_about_newest", "windows",
]  # fmt: skip


if not TYPE_CHECKING:  # type checkers would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module 'crossdock.sources' has no attribute {name!r}")
        return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
