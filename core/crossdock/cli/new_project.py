"""``crossdock new``: a folder with a connector that works, to change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

import click

from crossdock.cli.new_templates import LAYOUTS, filled, layout_of
from crossdock.cli.plain_text import counted, say
from crossdock.cli.shared_options import as_json, example, utf8
from crossdock.cli.terminal_output import print_json
from crossdock.errors import ConfigError

_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
_LONGEST = 50  # characters of a name
_READS_API = {"http", "declarative"}

_SET_UP = (
    """Set `base_url` in crossdock.yaml to that of your API, and export {upper}_TOKEN, before you read from it. """
)
_SETTINGS_OF_TESTS = """\
SETTINGS = {{"base_url": "https://api.example.com", "token": "env:{upper}_TOKEN"}}
ENVIRONMENT = {{"{upper}_TOKEN": "token-of-the-tests"}}"""


@click.command(epilog=example("crossdock new acme-shop", "crossdock new acme-exports --kind files"))
@click.argument("name", callback=utf8)
@click.option(
    "--kind",
    type=click.Choice(list(LAYOUTS)),
    default="http",
    show_default=True,
    help="http: a paged JSON API, in Python. files: exports in a folder, in Python. declarative, declarative-files: the"
    " same by a config alone.",
)
@click.option("--target", is_flag=True, help="Also a target, to which streams send records, and a fake of the partner.")
@click.option("--webhooks", is_flag=True, help="Also the webhooks of the API.")
@click.option("--graphql", is_flag=True, help="Read the API by a GraphQL query.")
@as_json
def new(name: str, *, kind: str, target: bool, webhooks: bool, graphql: bool, as_json: bool) -> None:
    """Write a project with a connector, its tests and a config into the new folder NAME.

    The project works as it is: its tests pass. Nothing is overwritten.
    """
    package = name.replace("-", "_")
    _check(name, package)
    wanted = {"target": target, "webhooks": webhooks, "graphql": graphql}
    features = {feature for feature, is_wanted in wanted.items() if is_wanted}
    if features and kind != "http":
        raise ConfigError(f"--{min(features)} is for connectors of --kind http, not {kind}")
    values = {"name": name, "package": package, "upper": package.upper(), "kind": kind, "stream": f"{package}.products"}
    values |= _of_features(features, values)
    layout = layout_of(kind, features, values)
    values["before"] = _SET_UP.format(**values) if kind in _READS_API else ""
    values["files"] = "\n".join(f"| `{path}` | {purpose} |" for path, (_, purpose) in layout.items())
    contents = {path: filled(template, features, values) for path, (template, _) in layout.items()}
    contents["README.md"] = filled("README.md.txt", features, values)
    _write(name, contents)
    if as_json:
        print_json({"folder": name, "kind": kind, "files": sorted(contents)})
    else:
        say(f"{name}: {counted(len(contents), 'file')} written", f"next: cd {name}; README.md says what to do")


def _of_features(features: set[str], values: Mapping[str, str]) -> dict[str, str]:
    """Return what is filled into the templates of *features*, which gets those of the example target as well."""
    found = {"topic": "product", "hinted": "products", "settings_of_tests": _SETTINGS_OF_TESTS.format(**values)}
    if "target" in features:
        from crossdock.cli import new_target

        features |= new_target.EXAMPLE.features
        found |= new_target.values(new_target.EXAMPLE, values["package"])
    return found


def _write(name: str, contents: Mapping[str, str]) -> None:
    folder = Path(name)
    try:
        folder.mkdir()
        for path, content in contents.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
    except FileExistsError:
        raise ConfigError("exists already", where=name, hint="give another name, or remove it") from None
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", where=name) from error


def _check(name: str, package: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or iskeyword(package):
        hint = f"use at most {_LONGEST} lower case ASCII letters, digits and single - or _, a letter first"
        raise ConfigError(f"{name!r} cannot be the name of a package", hint=hint)
    if find_spec(package) is not None:
        raise ConfigError(f"a package {package!r} is installed already", hint="choose another name")
