"""The evidence: ``python -m benchmarks --help``."""
