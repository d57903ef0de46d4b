"""Who may open a connection to whom, told from templates: groups, routes, endpoints, and who stands where."""
