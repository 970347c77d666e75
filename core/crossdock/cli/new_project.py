"""``crossdock new``: a folder with a connector that works, to change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Any

import click

from crossdock.cli.plain_text import counted, say
from crossdock.cli.shared_options import as_json, example, utf8
from crossdock.cli.terminal_output import print_json
from crossdock.errors import ConfigError

_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
_LONGEST = 50  # characters of a name
_IN_PYTHON = {  # path in the project -> template, and what the README says of it; $package is filled in
    "pyproject.toml": ("pyproject.toml.txt", "the package, and the entry point that makes its name a `kind`"),
    "$package/__init__.py": ("$kind/__init__.py.txt", "the constant `CONNECTOR`"),
    "$package/settings.py": ("$kind/settings.py.txt", "what a connection is configured with"),
    "$package/streams.py": ("$kind/streams.py.txt", "reading"),
    "$package/mapping.py": ("$kind/mapping.py.txt", "pure functions from records to drafts"),
    "$package/py.typed": (None, "the package has types"),
    "tests/test_streams.py": ("$kind/test_streams.py.txt", "the contract tests of crossdock, and your own"),
    "crossdock.yaml": ("$kind/crossdock.yaml.txt", "a config with one connection"),
}
_SAMPLE = {"exports/ITEMS_20261119.txt": ("ITEMS_20261119.txt", "a sample export")}
_CONFIG_ONLY = {
    "pyproject.toml": ("declarative/pyproject.toml.txt", "what the tests need"),
    "crossdock.yaml": ("$kind/crossdock.yaml.txt", "a config with one connection and its mapping"),
    "tests/test_config.py": ("$kind/test_config.py.txt", "tests of the mapping"),
}
_READS_API = {"http", "declarative"}
_LAYOUTS: Mapping[str, Mapping[str, tuple[str | None, str]]] = {
    "http": _IN_PYTHON,
    "files": _IN_PYTHON | _SAMPLE,
    "declarative": _CONFIG_ONLY,
    "declarative-files": _CONFIG_ONLY | _SAMPLE,
}

_SET_UP = (
    """Set `base_url` in crossdock.yaml to that of your API, and export {upper}_TOKEN, before you read from it. """
)


@click.command(epilog=example("crossdock new acme-shop", "crossdock new acme-exports --kind files"))
@click.argument("name", callback=utf8)
@click.option(
    "--kind",
    type=click.Choice(list(_LAYOUTS)),
    default="http",
    show_default=True,
    help="http: a paged JSON API, in Python. files: exports in a folder, in Python. declarative, declarative-files: the"
    " same by a config alone.",
)
@as_json
def new(name: str, *, kind: str, as_json: bool) -> None:
    """Write a project with a connector, its tests and a config into the new folder NAME.

    The project works as it is: its tests pass. Nothing is overwritten.
    """
    package = name.replace("-", "_")
    _check(name, package)
    folder = Path(name)
    values = {"name": name, "package": package, "upper": package.upper(), "kind": kind, "stream": f"{package}.products"}
    layout = {Template(path).substitute(values): content for path, content in _LAYOUTS[kind].items()}
    values["before"] = _SET_UP.format(**values) if kind in _READS_API else ""
    values["files"] = "\n".join(f"| `{path}` | {purpose} |" for path, (_, purpose) in layout.items())
    try:
        folder.mkdir()
        for path, (template, _) in {**layout, "README.md": ("README.md.txt", "")}.items():
            target = folder / path
            target.parent.mkdir(exist_ok=True)
            target.write_text(_filled(template, values), encoding="utf-8")
    except FileExistsError:
        raise ConfigError("exists already", where=name, hint="give another name, or remove it") from None
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", where=name) from error
    paths = [*layout, "README.md"]
    if as_json:
        print_json({"folder": name, "kind": kind, "files": sorted(paths)})
    else:
        say(f"{name}: {counted(len(paths), 'file')} written", f"next: cd {name}; README.md says what to do")


def _check(name: str, package: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or iskeyword(package):
        hint = f"use at most {_LONGEST} lower case ASCII letters, digits and single - or _, a letter first"
        raise ConfigError(f"{name!r} cannot be the name of a package", hint=hint)
    if find_spec(package) is not None:
        raise ConfigError(f"a package {package!r} is installed already", hint="choose another name")


def _filled(template: str | None, values: Mapping[str, Any]) -> str:
    if template is None:
        return ""
    path = Template(template).substitute(values)
    content = (files("crossdock.cli") / "project_templates" / path).read_text(encoding="utf-8")
    return (
        Template(content).substitute(values)
        if path.endswith((".py.txt", ".toml.txt", ".yaml.txt", ".md.txt"))
        else content
    )
