"""The common fixtures of all tests."""

from workers import pytest_addoption, pytest_configure, pytest_runtestloop

__all__ = ["pytest_addoption", "pytest_configure", "pytest_runtestloop"]
