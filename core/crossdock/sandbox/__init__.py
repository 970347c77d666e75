"""The sandbox: an emulation of the platform on this machine. What its specification leaves open is marked as assumed.

It shares only the wire models, the errors and `crossdock.values.serving` with the rest of crossdock, so that a mistake on one
side is found by the other.
"""

from crossdock.sandbox.app import Sandbox, SandboxSettings
from crossdock.sandbox.fault_injection import Fault, FaultSet
from crossdock.sandbox.server import SandboxServer, serve

__all__ = ["Fault", "FaultSet", "Sandbox", "SandboxServer", "SandboxSettings", "serve"]
