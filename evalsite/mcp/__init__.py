"""The site for agents, by the Model Context Protocol: one table of tools over the HTTP API, by means of its client."""
