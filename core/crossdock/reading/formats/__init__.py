"""The formats of files. A file that deviates from its declared layout is refused.

Input: the bytes of a file, and its layout. Output: frames of text columns with the line of each row. It may import
records, errors and `crossdock.values`.
"""
