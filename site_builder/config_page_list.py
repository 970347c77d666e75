"""Which page explains which sections of a config file."""

from __future__ import annotations

from typing import NamedTuple


class Root(NamedTuple):
    """A section of the config that a page begins with: its definition in the JSON Schema, and where it stands."""

    definition: str
    path: str


class Page(NamedTuple):
    file: str
    title: str
    about: str
    roots: tuple[Root, ...]


_FORMATS = [
    *("Delimited", "FixedWidth", "Sheet", "JsonLines", "Json", "Xml"),
    *("X12", "Edifact", "Parquet", "Arrow", "WholeFile"),
]
_CONTENTS = ["Delimited", "FixedWidth", "JsonLines", "Json", "Xml", "X12", "Edifact"]
_FORMS = ["FromColumn", "Const", "Template", "RefTo", "Nested", "Each", "When"]
_WRAPPERS = ["Gzip", "Bz2", "Xz", "Zstd", "Zip", "Pgp"]
_PAGINATIONS = [
    *("SinglePage", "LinkHeaderPages", "NextUrlPages", "CursorInBodyPages", "CursorInHeaderPages", "AfterIdPages"),
    *("PageNumberPages", "OffsetPages", "GraphQLPages"),
]
_CREDENTIALS = [
    *("HeaderCredential", "BearerCredential", "BasicCredential", "ClientCredentialsGrant", "RefreshTokenGrant"),
    *("AuthorizationCode", "LoginRequest"),
]
FIRST_KINDS = ("sftp_warehouse", "folder_warehouse", "http_json", "platform")
PAGES = (
    Page("platform", "Platform", "The keys of `platform`.", (Root("Profile", "platform"),)),
    Page(
        "streams",
        "Streams",
        "The keys of a stream that reads files, below `connections.NAME.streams`. Streams of an API and of the platform"
        " have many of them.",
        (Root("WarehouseStreamConfig", "streams.NAME"),),
    ),
    Page(
        "streams_http_json",
        "Streams of an API",
        "The keys of a stream of a connection of kind `http_json`.",
        (Root("HttpJsonStreamConfig", "streams.NAME"),),
    ),
    Page(
        "streams_platform",
        "Streams of the platform",
        "The keys of a stream of a connection of kind `platform`.",
        (Root("PlatformStreamConfig", "streams.NAME"),),
    ),
    Page(
        "streams_of_connectors",
        "Streams of a connector",
        "The keys that change a stream of a connector in Python. All of them are optional.",
        (Root("StreamOverrides", "streams.NAME"),),
    ),
    Page(
        "sources",
        "Sources",
        "The keys of a source, files that several streams share, below `connections.NAME.sources`.",
        (Root("SourceConfig", "sources.NAME"),),
    ),
    Page(
        "map",
        "Map",
        "How a member of a resource is made: the forms below `map` of a stream.",
        tuple(Root(each, "map.MEMBER") for each in _FORMS),
    ),
    Page(
        "conditions", "Conditions", "The keys of a condition, such as one below `skip`.", (Root("Filter", "skip.NAME"),)
    ),
    Page(
        "format",
        "Format",
        "How a file is read: the keys of `format`, by `kind`. The default kind is `delimited`.",
        tuple(Root(f"{each}Format", "format") for each in _FORMATS),
    ),
    Page(
        "wrapped",
        "Wrapped files",
        "What files are wrapped in: a list of at most two below `wrapped`, the outermost first, each a kind alone, such"
        " as `gzip`, or a section with the keys of its kind.",
        tuple(Root(f"{each}Settings", "wrapped") for each in _WRAPPERS),
    ),
    Page(
        "content",
        "Content",
        "What a file for a partner contains: the keys of `content`, by `kind`.",
        tuple(Root(f"{each}Content", "content") for each in _CONTENTS),
    ),
    Page(
        "pagination",
        "Pagination",
        "How an API splits its lists into pages: the keys of `pagination`, by `kind`.",
        tuple(Root(each, "pagination") for each in _PAGINATIONS),
    ),
    Page(
        "credentials",
        "Credentials of an API",
        "The keys of `auth` of a connection of kind `http_json`, by `kind`.",
        tuple(Root(each, "auth") for each in _CREDENTIALS),
    ),
    Page(
        "target",
        "Target",
        "What may be written to an API: the keys of `target` of a connection of kind `http_json`.",
        (Root("TargetConfig", "target"),),
    ),
    Page(
        "file_target",
        "File target",
        "Which files a partner takes: the keys of `target` of a connection that reads files.",
        (Root("FileTargetConfig", "target"),),
    ),
    Page("jobs", "Jobs", "The keys of a job, below `jobs`.", (Root("JobConfig", "jobs.NAME"),)),
    Page(
        "fleet",
        "Fleet",
        "What the tenants of a fleet have in common, in its base file.",
        (Root("FleetConfig", "fleet"),),
    ),
    Page("notify", "Notify", "Who is told how runs end.", (Root("NotifyConfig", "notify"),)),
    Page(
        "migration",
        "Migration",
        "What `crossdock migrate` moves, and in which order.",
        (Root("MigrationConfig", "migration"),),
    ),
    Page("listen", "Listen", "How webhooks reach `crossdock listen`.", (Root("ListenConfig", "listen"),)),
)
