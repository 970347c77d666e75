"""From operation to outcome: targets define requests and answers, and delivery sends each operation once.

Input: operations. Output: outcomes in the state, including operations in doubt. The package may import the platform,
HTTP, pacing and the state.
"""
