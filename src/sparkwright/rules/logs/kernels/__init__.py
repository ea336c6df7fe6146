"""Causes of the family sm12x-kernel-support; codes LKRN."""
