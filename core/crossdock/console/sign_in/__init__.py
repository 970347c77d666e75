"""How people sign in to a console that others than the users of this machine can reach.

Input: names with passwords, or answers of an OpenID Connect provider. Output: sessions, each of a `Person`. The pages
are in `crossdock.console.sign_in_pages`.
"""
