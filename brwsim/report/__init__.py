"""What a person sees: tables, comparisons with theory, figures, the state of the installation."""
