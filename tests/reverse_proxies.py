"""nginx and Caddy with the configs of the page about them, on a free port of the loopback interface."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
from abc import abstractmethod
from pathlib import Path

import httpx
import trustme
from tests.documentation.fences import the_fence
from tests.tls_servers import written

from crossdock.testing.server_process import ServerProcess

HOOKS, CONSOLE = "hooks.example.com", "console.example.com"
_SEARCHED = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
_NGINX = """\
{user}
daemon off;
error_log stderr;
pid {folder}/pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{servers}
}}
"""
_CADDY = """\
{{
    admin off
    auto_https disable_redirects
    default_bind 127.0.0.1
}}
{sites}
"""


class ReverseProxy(ServerProcess):
    """A proxy for both names of the page.

    Args:
        upstreams: The ports of crossdock by those that the page names.
    """

    def __init__(self, upstreams: dict[str, int]) -> None:
        super().__init__()
        self._upstreams, self._authority = upstreams, trustme.CA()

    @classmethod
    def program(cls) -> str | None:
        """The path of the program; None if this machine has none."""
        return shutil.which(cls.name, path=_SEARCHED)

    def prepare(self) -> None:
        certificate = self._authority.issue_cert(HOOKS, CONSOLE)
        certificate.private_key_and_cert_chain_pem.write_to_path(str(self.place / "both.pem"))
        own = {"HOME": str(self.place), "XDG_DATA_HOME": str(self.place), "XDG_CONFIG_HOME": str(self.place)}
        self.switch = {"env": os.environ | own}

    def accepts_connections(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1):
                return True
        except OSError:
            return False

    def client(self, name: str, *, address: str = "127.0.0.1") -> httpx.Client:
        """A client with the loopback *address* that finds the host *name* here, as if DNS said so."""
        context = ssl.create_default_context(cafile=str(written(self.place, self._authority)))
        transport = _NamedTransport(httpx.HTTPTransport(verify=context, local_address=address), name)
        url = f"https://{self.host}:{self.port}"
        return httpx.Client(base_url=url, transport=transport, headers={"host": name}, timeout=60)

    @abstractmethod
    def config(self, text: str) -> str:
        """The config of the page, which is in *text*, for this port and certificate."""

    def documented(self, language: str) -> Path:
        """Write the config of the page to a file."""
        text = the_fence(language, "").text
        for documented, port in self._upstreams.items():
            assert f"127.0.0.1:{documented}" in text
            text = text.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{port}")
        path = self.place / "config"
        path.write_text(self.config(text), encoding="utf-8")
        return path


class Nginx(ReverseProxy):
    name = "nginx"

    def command(self) -> list[str]:
        return [str(self.program()), "-p", str(self.place), "-e", "stderr", "-c", str(self.documented("nginx"))]

    def config(self, text: str) -> str:
        text = text.replace("listen 443 ssl;", f"listen {self.host}:{self.port} ssl;")
        text = re.sub(r"(ssl_certificate(?:_key)?) \S+;", rf"\1 {self.place}/both.pem;", text)
        user = "user root;" if os.getuid() == 0 else ""  # nobody else may enter the folder of the test
        return _NGINX.format(user=user, folder=self.place, servers=text)


class Caddy(ReverseProxy):
    name = "caddy"

    def command(self) -> list[str]:
        config = str(self.documented("caddyfile"))
        return [str(self.program()), "run", "--adapter", "caddyfile", "--config", config]

    def config(self, text: str) -> str:
        site = rf"\1:{self.port} {{\n    tls {self.place}/both.pem {self.place}/both.pem"
        return _CADDY.format(sites=re.sub(r"^(\S+\.example\.com) \{", site, text, flags=re.MULTILINE))


class _NamedTransport(httpx.BaseTransport):
    def __init__(self, transport: httpx.BaseTransport, name: str) -> None:
        self._transport, self._name = transport, name

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["sni_hostname"] = self._name
        return self._transport.handle_request(request)

    def close(self) -> None:
        self._transport.close()
