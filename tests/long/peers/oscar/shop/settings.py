"""A Django project with django-oscar and django-oscar-api, as their documentation sets one up: a shop with tokens."""

import os
from pathlib import Path

from oscar.defaults import *  # noqa: F403

HERE = Path(os.environ["SHOP_DATA"])
SECRET_KEY = "for tests only"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "shop.urls"
SITE_ID = 1
USE_TZ = True
TIME_ZONE = "America/Chicago"
STATIC_URL = "/static/"
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # hundreds of users, quickly
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": HERE / "shop.db",
        "OPTIONS": {"timeout": 60, "transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL;"},
    }
}
OSCAR_APPS = (
    *("address", "analytics", "basket", "catalogue", "checkout", "communication", "customer", "offer"),
    *("order", "partner", "payment", "search", "shipping", "voucher", "wishlists"),
)
DASHBOARD_APPS = (
    *("catalogue", "communications", "offers", "orders", "pages", "partners", "ranges", "reports", "reviews"),
    *("shipping", "users", "vouchers"),
)
INSTALLED_APPS = [
    *(f"django.contrib.{name}" for name in ("auth", "contenttypes", "sessions", "messages", "sites", "flatpages")),
    "oscar.config.Shop",
    *(f"oscar.apps.{name}.apps.{name.title()}Config" for name in OSCAR_APPS),
    "oscar.apps.catalogue.reviews.apps.CatalogueReviewsConfig",
    "oscar.apps.dashboard.apps.DashboardConfig",
    *(f"oscar.apps.dashboard.{name}.apps.{name.title()}DashboardConfig" for name in DASHBOARD_APPS),
    *("widget_tweaks", "haystack", "treebeard", "django_tables2"),
    *("rest_framework", "rest_framework.authtoken", "oscarapi"),
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
HAYSTACK_CONNECTIONS = {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.TokenAuthentication"],
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.PageNumberPagination",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "PAGE_SIZE": 40,
}
OSCAR_DEFAULT_CURRENCY = "EUR"
OSCAR_ALLOW_ANON_CHECKOUT = True
OSCAR_INITIAL_ORDER_STATUS = OSCAR_INITIAL_LINE_STATUS = "Pending"
OSCAR_ORDER_STATUS_PIPELINE = {"Pending": ("Shipped", "Cancelled"), "Shipped": (), "Cancelled": ()}
OSCARAPI_BLOCK_ADMIN_API_ACCESS = False
OSCARAPI_ENABLE_REGISTRATION = True
OSCAR_SEND_REGISTRATION_EMAIL = False
OSCARAPI_INITIAL_ORDER_STATUS = "Pending"
# What an integrator adds to the fields that the API shows by default.
OSCARAPI_ADMIN_USER_FIELDS = ("url", "id", "username", "email", "first_name", "last_name", "date_joined")
OSCARAPI_ORDERLINE_FIELDS = ("id", "product", "partner_sku", "quantity", "unit_price_incl_tax", "price_incl_tax")
