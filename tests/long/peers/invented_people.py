"""The names and towns of people at a live shop, and how they connect."""

from __future__ import annotations

import httpx

NOT_KEPT = httpx.Limits(max_keepalive_connections=0)  # of hundreds of people none closes a connection
GIVEN = ("Ann", "Björn", "Chloé", "Dũng", "Émile", "Fatma", "Gül", "Hans-Jürgen", "Íñigo", "Jo")
FAMILY = ("O'Brien", "van der Berg", "Søndergård", "Łukasz", "Müller", "Şahin", "Nguyễn", "de la Cruz")
CITIES = (("NL", "Delft"), ("NL", "'s-Hertogenbosch"), ("DE", "Köln"), ("DE", "Mülheim an der Ruhr"))
