"""What all tests share."""

from workers import pytest_addoption, pytest_configure, pytest_runtestloop

__all__ = ["pytest_addoption", "pytest_configure", "pytest_runtestloop"]
