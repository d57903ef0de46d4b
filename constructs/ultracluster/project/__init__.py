"""A project: the folder with app.py, cdk.json and environments/; the checkout, or a team's own repository."""
