"""The platform of the specification, emulated on this machine: strict where it speaks, honest where it does not.

It shares nothing with the client but the wire models and the errors, so that one mistake cannot cancel out; how HTTP is
served (`crossdock.serving`) is nothing that the client has.
"""

from crossdock.sandbox.app import Sandbox, SandboxSettings
from crossdock.sandbox.fault_injection import Fault, FaultSet
from crossdock.sandbox.server import SandboxServer, serve

__all__ = ["Fault", "FaultSet", "Sandbox", "SandboxServer", "SandboxSettings", "serve"]
