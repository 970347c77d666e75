"""What a merchant sets up before the first sale; prints the token of the staff as JSON."""

import json

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from oscar.core.loading import get_model  # noqa: E402
from rest_framework.authtoken.models import Token  # noqa: E402

STAFF = get_user_model().objects.create_superuser("staff", "staff@shop.example", None)
for code, name in (("NL", "Netherlands"), ("DE", "Germany")):
    get_model("address", "Country").objects.create(
        iso_3166_1_a2=code, printable_name=name, name=name, is_shipping_country=True
    )
get_model("catalogue", "ProductClass").objects.create(name="Goods", slug="goods", requires_shipping=True)
for name in ("Store", "Depot"):
    get_model("partner", "Partner").objects.create(name=name, code=name.lower())
everything = get_model("offer", "Range").objects.create(name="Everything", includes_all_products=True)
get_model("offer", "ConditionalOffer").objects.create(
    name="Seven per cent off from 60 euros",
    condition=get_model("offer", "Condition").objects.create(range=everything, type="Value", value=60),
    benefit=get_model("offer", "Benefit").objects.create(range=everything, type="Percentage", value=7),
)
print(json.dumps({"token": Token.objects.create(user=STAFF).key}))
