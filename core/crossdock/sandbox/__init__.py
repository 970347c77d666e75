"""The sandbox: an emulation of the platform on this machine. What its specification leaves open is marked as assumed.

Input: HTTP requests. Output: the platform's answers, signed webhooks, faults on demand, and a log of effects. It shares
only the resources, the errors, `crossdock.values.serving` and `crossdock.values.html_templates` with the rest of
crossdock, so that one side finds the mistakes of the other.
"""

from crossdock.sandbox.app import Sandbox, SandboxSettings
from crossdock.sandbox.fault_injection import Fault, FaultSet
from crossdock.sandbox.server import SandboxServer, serve

__all__ = ["Fault", "FaultSet", "Sandbox", "SandboxServer", "SandboxSettings", "serve"]
