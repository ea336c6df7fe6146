"""Causes of the family driver-and-gpu-fault; codes LDRV."""
