"""The sample shop and the sample 3PL of ``crossdock demo --shop``."""
