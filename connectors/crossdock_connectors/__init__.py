"""The connectors that come with crossdock; they use the same door as everybody's."""
