"""Texts that repeat themselves with good reason, and loops of models: the measure of the gateway's loop guard."""
