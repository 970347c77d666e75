"""The typed client: one method for each operation of the platform's API, for programs that keep no state.

Input: a base address, a tenant and credentials. Output: stored resources as models. It may import what
`crossdock.platform` may import, and httpx, whose `Auth` and transports its users give.
"""
