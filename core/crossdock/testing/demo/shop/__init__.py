"""The sample shop and the sample 3PL of ``crossdock demo --shop``.

Input: requests to the APIs of the shop and of the 3PL. Output: their answers, and orders that are shipped. It may
import `crossdock.testing.demo` and what that may import.
"""
