"""The connectors that come with crossdock, built on the same public interface as all others."""
