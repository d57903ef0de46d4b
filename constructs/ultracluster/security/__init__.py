"""Key, roles and the reasons for security findings that stand."""
