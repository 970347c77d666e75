"""``crossdock new``: a folder with a connector that works, to change. Input: options, or an OpenAPI document."""
