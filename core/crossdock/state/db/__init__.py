"""The state's database: engine, schema, migrations, statements, run lease and errors.

Input: the address of a SQLite file or of a PostgreSQL database. Output: connections with the current schema. It may
import errors and `crossdock.values`.
"""
