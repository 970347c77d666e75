"""Uses a token bucket up to its limit, and learns rate limits that an API does not state.

Input: answers and their headers. Output: how long to wait; nothing here waits. It may import `crossdock.values` only.
"""
