"""What `benchmarks/rivals.py` is made of: tables, arms, attackers and uses."""
