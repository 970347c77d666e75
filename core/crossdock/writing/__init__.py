"""From operation to outcome: targets define requests and answers, and delivery sends each operation once."""
