"""A first look at crossdock: a made-up warehouse, the emulated platform, and two nights between them."""
