"""Who may do what with the templates of an environment, asked of an IAM evaluator that nobody here wrote."""
