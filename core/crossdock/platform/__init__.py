"""The platform as specified, and the assumptions where the specification is silent.

Input: the section ``platform`` of a config, and credentials. Output: paths, authorized requests and tokens, and the
platform's webhooks. It may import `crossdock.mapping` and what is below it, and uses only the transport of
`crossdock.reading`.
"""
