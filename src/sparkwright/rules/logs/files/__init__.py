"""Causes of the family model-files-and-hub; codes LFIL."""
