"""The console: a web page on the head that shows what serves, and lets operators act. A process of its own."""
