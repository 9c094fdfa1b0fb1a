"""The verbs that show a checkout: on a full screen, and on a page in the browser."""
