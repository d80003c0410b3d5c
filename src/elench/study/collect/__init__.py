"""A running study: the web application and where its ratings are kept."""
