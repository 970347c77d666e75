"""A transport for tests that answers GraphQL requests with the members that they select, as an API does."""

from __future__ import annotations

import httpx

from crossdock.testing.graphql_selection import GraphQLRequest
from crossdock.values import exact_json


class SelectedMembersTransport(httpx.BaseTransport):
    """Passes requests on, and leaves out of answers to GraphQL requests what they do not select.

    Attributes:
        left_out: Where answers have had such members.
    """

    def __init__(self, network: httpx.BaseTransport) -> None:
        self._network = network
        self.left_out: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked = GraphQLRequest.parse_body(request.read())
        response = self._network.handle_request(request)
        if asked is None:
            return response
        try:
            body = exact_json.loads(response.read())
        except ValueError:
            return response
        if not (lacking := asked.unselected_members(body)):
            return response
        self.left_out += (each for each in lacking if each not in self.left_out)
        headers = [(name, value) for name, value in response.headers.items() if name != "content-length"]
        content = exact_json.dumps(asked.answer_with_selected_members(body))
        return httpx.Response(response.status_code, headers=headers, content=content, extensions=response.extensions)
