"""Causes of the family cuda-toolchain; codes LCUD."""
