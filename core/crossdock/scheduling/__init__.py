"""When jobs are due: the calendar of a schedule, as arithmetic that reads no clock and keeps no state."""
