"""The years of dates that people give. They leave room for arithmetic within Python's years 1 to 9999."""

USABLE_YEARS = range(1900, 9999)
USABLE_YEARS_TEXT = f"the years {USABLE_YEARS[0]} to {USABLE_YEARS[-1]}"
