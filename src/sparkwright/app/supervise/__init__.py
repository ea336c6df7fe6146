"""`supervise`: one loop for one deployment. Sources tell what happens, the machine decides, works do it."""
