"""Rules about a recipe: flags and variables (RCP), and engine x model x quantization x chip (COMPAT)."""
