"""What monitoring systems read: health, metrics and traces."""
